"""Data sets, and their downloads."""
