"""Forms of the labelling pages, a module for each kind of page."""
