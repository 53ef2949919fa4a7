"""The tuner's configuration file: its keys, their check, and the study that it describes."""
