"""Forms of alignment pages."""
