"""Syntaxes of ontologies, to triples."""
