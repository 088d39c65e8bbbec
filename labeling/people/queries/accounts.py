"""Who can add accounts and give them roles."""

from common.problems import OPERATOR
from labeling.models.people import User

SHOWN = 3


def who_adds_accounts() -> str:
    """Return whom to ask for another rater: the superusers by name, else the operator; one query."""
    active = User.objects.filter(is_superuser=True, is_active=True).order_by("username")
    names = list(active.values_list("username", flat=True)[:SHOWN])
    *others, last = names or [OPERATOR]
    return f"{', '.join(others)} or {last}" if others else last
