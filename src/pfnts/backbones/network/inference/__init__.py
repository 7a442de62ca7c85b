"""Serving the network: histories with cached keys and values."""
