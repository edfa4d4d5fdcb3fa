"""One materialisation while it lives: ingest, update, query, persist."""
