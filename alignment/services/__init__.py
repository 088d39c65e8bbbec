"""What people ask of labels and verdicts together."""
