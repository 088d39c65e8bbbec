"""Disclosure limit: the smallest number of holdout chats on which figures are shown."""

# On fewer chats a share is useless, and a count nearly discloses a single answer.
MINIMUM_HOLDOUT_CHATS = 10
