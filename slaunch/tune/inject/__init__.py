"""How a setting reaches the user's program: options, files, variables."""
