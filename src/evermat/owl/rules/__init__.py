"""Axioms to rules."""
