"""What an ontology states, from its triples."""
