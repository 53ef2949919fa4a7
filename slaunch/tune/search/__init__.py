"""Search algorithms: which setting is tried next. Pure."""
