"""Page "Your posterior": fit or upload, check, and what to change."""
