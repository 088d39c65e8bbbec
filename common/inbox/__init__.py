"""The inbox: what a user was assigned, asked or answered; comments, and mentions in them."""
