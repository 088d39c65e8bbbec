"""Counts of verdicts by day, kept in the transaction that stores the verdicts."""
