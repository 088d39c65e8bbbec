"""Forms of alignment."""
