"""What a run may spend."""

BUDGET_REACHED = "the budget is reached"
