"""Chats from outside, without Django: readers of traces, topic rules, redaction, upsert, retention."""
