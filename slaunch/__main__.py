"""`python -m slaunch`: the same as the console script `slaunch`."""

import sys

from slaunch.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
