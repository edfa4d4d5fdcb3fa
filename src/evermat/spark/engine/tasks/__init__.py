"""What runs inside executors."""
