"""What was tried: the journal, and the tables made from it."""
