"""The tuner: runs a program again and again with other settings of its parallelism, and finds the fastest that fits."""
