"""Watching the site: logs, metrics, traces, and the status page."""
