"""Chats, rubric, raters and their labels; imports nothing of evaluation or alignment."""
