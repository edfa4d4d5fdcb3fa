"""Outputs of a program that Spark's executors write."""
