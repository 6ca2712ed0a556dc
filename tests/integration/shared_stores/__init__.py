"""Stores that processes share, with real processes and a real Redis."""
