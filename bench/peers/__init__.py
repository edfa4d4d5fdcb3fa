"""One module for each engine: how it is started, and where it is a library, its process."""
