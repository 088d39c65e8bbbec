"""Reads of experiments: pages from stored sums; the worker and exports from chats and metric rows."""
