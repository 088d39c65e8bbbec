"""How passwords are stored."""

from django.contrib.auth.hashers import Argon2PasswordHasher


class Argon2id(Argon2PasswordHasher):
    """
    Argon2id with 19 MiB, two rounds and one thread.

    Source: OWASP, Password Storage Cheat Sheet, section "Argon2id". Django's own setting takes 100 MiB for
    each of the sign-ins that a web process does at once.
    """

    memory_cost = 19 * 1024  # KiB
    time_cost = 2
    parallelism = 1
