"""Reads of the data about one chat or one person."""
