"""Plans over batches of bindings."""
