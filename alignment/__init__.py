"""Labels times verdicts: agreement, reports, the gate; imports evaluation and labeling."""
