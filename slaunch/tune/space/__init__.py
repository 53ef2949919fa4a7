"""Which settings there are, and in which order they are tried. Pure."""
