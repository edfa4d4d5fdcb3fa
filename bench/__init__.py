"""Benchmarks: the same workloads, inputs and checks for Evermat and for other engines."""
