"""Updates that arrive one after the other: from Python, a directory of change files, or Spark Structured Streaming."""
