"""Reads of issues: the texts to cluster, the list, one issue."""
