"""Reads that bring labels and verdicts together."""
