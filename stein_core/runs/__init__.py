"""Programs of a run: assembled, compiled, kept, looked at."""
