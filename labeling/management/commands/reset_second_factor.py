"""Removes the second factors of an account: for a lead whom no other lead can help."""

from argparse import ArgumentParser
from typing import Any

from common.commands import WorkbenchCommand
from common.problems import InputProblem
from labeling.models.people import User
from labeling.people.services.second_factor import second_factor_reset


class Command(WorkbenchCommand):
    """Remove all second factors of an account and end its sessions."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="user name")

    def handle(self, *args: Any, user: str, **options: Any) -> None:
        person = User.objects.filter(username=user).first()
        if person is None:
            raise InputProblem(f"there is no account {user!r}")
        second_factor_reset(person=person, by=None)
        self.answer({"user": user}, f"{user} signs in with the password alone now")
