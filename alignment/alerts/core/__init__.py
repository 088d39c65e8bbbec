"""Detection of drift in judged rates, and which of bot and judge an alarm names."""
