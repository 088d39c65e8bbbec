#!/usr/bin/env python
"""Django's command line, with exit codes to rely on: wrong usage is 2, never 1 by accident."""

import os
import sys
from typing import NoReturn

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import ManagementUtility, get_commands
from django.core.management.base import BaseCommand
from django.db import DatabaseError, InterfaceError

from common.commands import CommandExit, database_problem


class CommandLine(ManagementUtility):
    """Django's own exits with 1 on an unknown command; 1 means "the answer is no" here."""

    def fetch_command(self, subcommand: str) -> BaseCommand:
        """The command of that name."""
        if subcommand not in get_commands():
            refuse(f"there is no command {subcommand!r} (see manage.py help)")
        return super().fetch_command(subcommand)


def refuse(message: str, code: int = 2) -> NoReturn:
    """One clear line, exit 2 unless another code is given."""
    sys.stderr.write(f"error: {' '.join(message.split())}\n")
    sys.exit(code)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lace_site.settings")
    try:
        settings.INSTALLED_APPS  # noqa: B018  Django itself keeps a wrong setting to itself until much later
    except ImproperlyConfigured as error:
        refuse(str(error))
    except OSError as error:  # a folder or a key that the settings could not create
        place = "LACE_DATA_DIR names the folder for data"
        refuse(f"{error.filename} cannot be written: {error.strerror} ({place})", 4)
    try:
        CommandLine(sys.argv).execute()
    except ImproperlyConfigured as error:
        refuse(str(error))
    except (DatabaseError, InterfaceError) as error:  # of Django's own commands
        problem = database_problem(error)
        if not isinstance(problem, CommandExit):
            raise
        refuse(str(problem), problem.returncode)
