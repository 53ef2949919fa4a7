"""Checks of a site: what was looked at, what was found, what to do."""
