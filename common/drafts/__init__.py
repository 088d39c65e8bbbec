"""Drafts of forms: what a user has typed survives a closed page, another link and an expired session."""
