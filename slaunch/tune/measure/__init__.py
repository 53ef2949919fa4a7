"""What a trial showed: its metric, its memory, and how it ended, from its logs."""
