"""The JVM and the session of the command line."""
