"""Other launchers' command lines: the first word, or the name of a link to the program, and the module that knows its options."""

DIALECTS = {"torchrun": "slaunch.cli.torchrun", "paddle": "slaunch.cli.paddle", "fleetrun": "slaunch.cli.paddle"}
