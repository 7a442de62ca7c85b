"""Pretraining of the network."""
