"""What a worker does for regression tests."""
