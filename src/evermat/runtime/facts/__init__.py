"""Facts as users have them, on their way into an engine."""
