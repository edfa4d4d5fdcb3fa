"""The two engines behind the protocol `engine`, and where Spark evaluates strata."""
