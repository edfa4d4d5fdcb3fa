"""A materialisation in a state directory: saved, opened, and its history."""
