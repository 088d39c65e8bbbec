"""Forms of the evaluation pages."""
