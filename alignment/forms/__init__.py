"""Forms of the alignment pages, a module for each kind of page."""
