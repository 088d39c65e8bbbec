"""Creates the demo workspace; with --evaluate also its history with the simulated judge."""

import time
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.hashers import check_password
from django.db import connection

from alignment.comparison.queries.scope import Scope
from alignment.demo_workspace.services.demo_workspace import demo_begin, demo_password, people_ensure
from alignment.demo_workspace.services.history import live_run_ensure
from alignment.demo_workspace.services.steps import Demo, Step, steps_run
from alignment.reports.core.terminal_table import report_table
from alignment.reports.queries.reports import alignment_report
from common.commands import WorkbenchCommand
from common.garbage import few_collections
from common.problems import InputProblem
from evaluation.gateway.embedded import EMBEDDED_NOTICE
from evaluation.gateway.simulated import SIMULATED_NOTICE
from evaluation.models.runs import Run
from labeling.models.chats import Chat
from labeling.models.people import User


class Command(WorkbenchCommand):
    """Create or complete the demo workspace, marked as such; what exists stays."""

    help = __doc__
    on_stop = "finished steps are saved: the same command continues"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--evaluate",
            action="store_true",
            help="add the history with the simulated judge, and eight weeks in production",
        )
        parser.add_argument("--chats", type=int, help="compose only this many chats, for a quick look")

    def handle(self, *args: Any, **options: Any) -> None:
        begun, first_day, password = time.monotonic(), demo_begin(), demo_password()
        users = people_ensure(password=password)
        rater, author, lead = users
        demo = Demo(first_day, rater, author, lead, password, chats=options["chats"])
        steps = demo.labelling() + (demo.judging() if options["evaluate"] else [])
        with few_collections():
            self._write_quickly()
            self._steps(steps, demo)
        if options["evaluate"]:
            self._live(lead)
        self.note(f"ready after {time.monotonic() - begun:.0f} s")
        raters = [rater.account for rater in demo.team.raters]
        everyone = [*users, *User.objects.filter(username__in=raters).order_by("username")]
        runs = Run.objects.filter(options__demo=True).order_by("pk")
        lines = [*self._report_lines(runs.filter(options__split="", options__limit=None).last())]
        document = {
            "chats": Chat.objects.count(),
            "users": [user.get_username() for user in everyone],
            "password": password,
            "runs": list(runs.values_list("pk", flat=True)),
        }
        self.answer(document, "\n\n".join([*lines, sign_in_line(everyone, password)]))

    def _write_quickly(self) -> None:
        """Keep the pages in memory, and do not wait for the disk at each commit.

        A crash of the machine may take the last steps, no more.
        """
        if connection.vendor == "sqlite" and not connection.in_atomic_block:
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA synchronous=NORMAL")
                cursor.execute("PRAGMA cache_size=-250000")

    def _steps(self, steps: list[Step], demo: Demo) -> None:
        begun = time.monotonic()
        for number, (step, earlier) in enumerate(steps_run(steps, first_day=demo.first_day), 1):
            took = "already there" if earlier else f"{time.monotonic() - begun:.1f} s"
            self.note(f"{number:>2} of {len(steps)}  {step.name}: {took}")
            begun = time.monotonic()

    def _live(self, lead: User) -> None:
        try:
            run = live_run_ensure(by=lead)
        except InputProblem as problem:
            self.note(f"no live run: {problem}")
            return
        if run.state == Run.State.RUNNING:
            self.note(f"run {run.pk}: the embedded model ({EMBEDDED_NOTICE}) goes on in the worker")

    def _report_lines(self, run: Run | None) -> list[str]:
        if run is None:
            return []
        table = report_table(alignment_report(Scope(run.chat_set, run)))
        return [f"{table}\n({SIMULATED_NOTICE})"]


def sign_in_line(users: list[User], password: str) -> str:
    """Usernames and password for signing in; accounts that existed before keep their own password."""
    fits = {stored: check_password(password, stored) for stored in {user.password for user in users}}
    open_to = [user.get_username() for user in users if fits[user.password]]
    others = [user.get_username() for user in users if user.get_username() not in open_to]
    lines = [f"Sign in as {', '.join(open_to)}; password {password}"] if open_to else []
    lines += [f"{', '.join(others)}: existing password"] if others else []
    return "\n".join(lines)
