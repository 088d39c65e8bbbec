"""Backups: one checked archive of the database and the key that signs certificates."""
