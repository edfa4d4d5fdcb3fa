"""Spark Structured Streaming: changes that arrive in micro-batches, and the changes of a state as a stream.

- `query` starts queries and gives every batch a name that survives restarts.
- `sink` makes an update of a batch of rows; `files` finds out which files of changes are new.
- `source` is a data source: the changes of a relation, version by version.
"""
