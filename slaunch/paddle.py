"""`python -m slaunch.paddle …`: Paddle's command line, in the place of `python -m paddle.distributed.launch …`."""

import sys

from slaunch.cli.main import main

if __name__ == "__main__":
    sys.argv.insert(1, "paddle")
    sys.exit(main())
