"""Tables of integers with their indexes, counters and dictionary."""
