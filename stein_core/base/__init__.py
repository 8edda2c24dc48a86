"""What needs nothing else of the core."""
