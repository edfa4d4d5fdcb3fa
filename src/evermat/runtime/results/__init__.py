"""What users get: answers, output files, RDF and views."""
