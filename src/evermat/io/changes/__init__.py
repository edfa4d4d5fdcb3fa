"""Files of changes."""
