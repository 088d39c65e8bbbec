"""Writes of alerts: the nightly evaluation, notices, and what leads do with an alert."""
