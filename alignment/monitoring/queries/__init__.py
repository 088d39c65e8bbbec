"""Reads of the monitoring pages: from counts by day, never from verdicts, but for the lists of chats."""
