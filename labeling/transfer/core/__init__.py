"""Labels as other tools export them, read with a mapping file; plain Python."""
