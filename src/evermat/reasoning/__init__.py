"""The algorithms of the papers, one file each, over the algebra of fact sets. No engine is known here."""
