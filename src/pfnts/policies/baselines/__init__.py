"""The baselines of the paper, and their mathematics."""
