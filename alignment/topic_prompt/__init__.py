"""Topics of chats from a model, for chats that come without one."""
