"""Kinds of imports that need several apps."""
