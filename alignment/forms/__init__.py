"""Forms of alignment's pages: what a person may ask for, and what is refused."""
