"""What a run is: targets, methods, guides, knobs, a Spec and a Recipe."""
