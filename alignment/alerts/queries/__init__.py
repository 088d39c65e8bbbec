"""Reads of alerts: nights to evaluate, gaps, lists and pages."""
