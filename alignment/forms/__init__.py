"""Forms of the alignment pages."""
