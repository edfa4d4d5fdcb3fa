"""Equal terms, represented by one."""
