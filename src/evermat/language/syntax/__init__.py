"""Text to tokens to an untyped tree."""
