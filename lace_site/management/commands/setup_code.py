"""Prints the link with the setup code that creates the first account of an empty workspace."""

import json
from typing import Any

from django.conf import settings

from common.commands import WorkbenchCommand
from common.problems import InputProblem
from labeling.people.queries.people import accounts_exist
from labeling.people.services.invitations import setup_code


class Command(WorkbenchCommand):
    """Print the link that creates the first account; exit 2 once there is one."""

    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        if accounts_exist():
            raise InputProblem(
                "the workspace has accounts already: sign in, or let a lead invite you on the page People"
            )
        code = setup_code()
        self.answer({"code": code}, setup_link(site_url(), code))


def site_url() -> str:
    """Return the address at which `serve` runs this site, else the one in the settings."""
    try:
        told = json.loads((settings.SITE_DIR / "serve.json").read_text("utf-8"))
        return str(told["url"] or settings.SITE_URL)
    except (OSError, ValueError, KeyError, TypeError):
        return str(settings.SITE_URL)


def setup_link(site: str, code: str) -> str:
    """Return the address of the page that creates the first account."""
    return f"{site}/welcome/?code={code}"
