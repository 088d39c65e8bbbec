"""What workers do for issues: cluster a week, ask a model for a name."""
