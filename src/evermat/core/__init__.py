"""The foundation: what every floor may import, and what imports only the standard library."""
