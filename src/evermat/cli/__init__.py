"""The command line: what users type."""
