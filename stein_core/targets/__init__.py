"""One family of targets a file."""
