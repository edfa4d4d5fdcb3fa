"""Shapes of rules that better algorithms or storage exist for."""
