"""Who may change whose account."""

from common.problems import InputProblem
from labeling.models.people import User


def check_manages(*, person: User, by: User) -> None:
    """Raise InputProblem where a lead would change a superuser."""
    if person.is_superuser and not by.is_superuser:
        raise InputProblem("Only a superuser can change the account of a superuser.")
