"""Exports of other labelling tools, read with a mapping file; plain Python."""
