"""Public bandit libraries as policies, to be compared with; each needs the extra ``peers``."""
