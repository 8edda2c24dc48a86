"""Posteriors of one's own."""
