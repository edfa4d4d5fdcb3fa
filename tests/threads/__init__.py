"""Many threads on one materialisation: every answer is that of one version, readers wait for nobody, and writers take turns."""
