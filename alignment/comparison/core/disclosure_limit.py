"""The smallest number of chats on which figures about holdout chats are disclosed."""

# On fewer chats a share says next to nothing, and a count comes close to disclosing a single answer.
FEWEST = 10
