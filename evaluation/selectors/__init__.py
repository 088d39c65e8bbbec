"""Reads of the judge's side."""
