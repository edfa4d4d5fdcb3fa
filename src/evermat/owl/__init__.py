"""Ontologies to programs, and rule sets for RDFS and OWL 2 RL."""
