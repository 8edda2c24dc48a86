"""Page "Benchmarks": published results beside ours."""
