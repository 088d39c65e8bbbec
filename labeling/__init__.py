"""Chats, rubric, raters and labels; imports neither evaluation nor alignment."""
