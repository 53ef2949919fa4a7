"""The torchrun that is installed has no option that slaunch does not know."""

import re
import subprocess
import sys

from slaunch.cli.torchrun import ROWS


def test_every_option_is_known() -> None:
    call = [sys.executable, "-m", "torch.distributed.run", "--help"]
    text = subprocess.run(call, capture_output=True, text=True, check=True, timeout=100).stdout
    theirs = set(re.findall(r"^  (-\w|--[\w-]+)", text, re.MULTILINE)) - {"-h"}
    assert len(theirs) > 25, text
    assert theirs <= {name for row in ROWS for name in row.names}
