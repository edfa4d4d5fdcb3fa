"""Spark Structured Streaming: changes that arrive in micro-batches.

- `query` starts queries and gives every batch a name that survives restarts.
- `sink` turns a batch of rows into an update; `file_source` lists new files of changes.
"""
