"""Pages; each is a few lines over selectors."""
