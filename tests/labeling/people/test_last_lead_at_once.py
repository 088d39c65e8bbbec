"""Leads who take each other's role away at the same moment never leave a workspace without a lead."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection

from common.problems import FieldProblem, InputProblem
from labeling.models.people import Invitation, Role, User
from labeling.people.services.invitations import (
    first_lead_create,
    invitation_accept,
    invitation_create,
    setup_code,
)
from labeling.people.services.people import account_change, account_deactivate
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(*calls: Callable[[], object]) -> list[bool]:
    """Start the calls together; which of them were not refused."""
    start = Barrier(len(calls))

    def one(call: Callable[[], object]) -> bool:
        try:
            start.wait(20)
            call()
        except (InputProblem, FieldProblem):
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(one, calls))


def active_leads() -> int:
    return User.objects.filter(groups=Group.objects.get(name=Role.LEAD), is_active=True).count()


def test_two_leads_who_deactivate_and_demote_each_other_leave_one() -> None:
    one, two = make_user("ines", Role.LEAD), make_user("ola", Role.LEAD)
    fields: dict[str, Any] = {"name": "", "email": "", "roles": ["rater"], "groups": []}
    done = at_once(
        lambda: account_deactivate(person=two, by=one),
        lambda: account_change(person=one, by=two, **fields),
    )
    assert sorted(done) == [False, True]
    assert active_leads() == 1


def test_an_invitation_that_two_people_use_at_once_makes_one_account() -> None:
    secret = invitation_create(by=make_user("ines", Role.LEAD), role="rater").secret
    more = {"secret": secret, "name": "", "email": "", "password": "a long own password"}
    done = at_once(*(lambda n=n: invitation_accept(username=f"nora-{n}", **more) for n in range(4)))
    assert sum(done) == 1
    assert User.objects.filter(username__startswith="nora").count() == 1
    assert Invitation.objects.get().used_by is not None


def test_of_two_first_accounts_one_is_made() -> None:
    more = {"code": setup_code(), "name": "", "email": "", "password": "a long own password"}
    done = at_once(*(lambda n=n: first_lead_create(username=f"ines-{n}", **more) for n in range(3)))
    assert sum(done) == 1
    assert User.objects.count() == 1
