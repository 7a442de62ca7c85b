"""Synthetic tables that the network is trained on."""
