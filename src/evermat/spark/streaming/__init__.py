"""Spark Structured Streaming: changes that arrive in micro-batches, and the changes of a state as a stream.

- `query` starts queries and gives every batch a name that survives restarts.
- `sink` turns a batch of rows into an update; `file_source` lists new files of changes.
- `change_source` is a data source: the changes of a relation, version by version.
"""
