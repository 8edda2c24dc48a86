"""Kernels, bandwidths, and the forces that they make."""
