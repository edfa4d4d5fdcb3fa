"""Inputs read by tasks."""
