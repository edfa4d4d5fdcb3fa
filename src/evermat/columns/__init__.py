"""The in-memory engine: facts as columns of integers, worked on by a fixed set of compiled kernels."""
