"""Contextual bandits that just work on tabular data."""
