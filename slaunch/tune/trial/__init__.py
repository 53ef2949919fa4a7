"""One trial: its command, its run with deadlines, and the class of its end."""
