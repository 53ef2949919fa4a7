"""Texts of the configuration that say something of a setting: predicates and Paddle's strategies."""
