"""Pure parts of issues: clusters of rationales, their identity over weeks, their names."""
