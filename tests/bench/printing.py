"""A worker that prints as fast as it can, one write for each line, and notes how long that took: `printing.py LINES FILE`."""

import os
import sys
import time

count, place = int(sys.argv[1]), sys.argv[2]
lines = [b"epoch 3 step %07d loss 1.234567 lr 0.000300 tokens/s 81234.5\n" % number for number in range(count)]
started = time.monotonic()
for line in lines:
    os.write(1, line)
took = time.monotonic() - started
with open(f"{place}.{os.environ.get('RANK', '0')}", "w") as file:
    file.write(str(took))
