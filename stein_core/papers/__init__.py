"""The papers' experiments and tables."""
