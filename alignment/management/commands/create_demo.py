"""Creates the demo workspace; with --evaluate, LACE judges a few of its chats."""

from argparse import ArgumentParser
from typing import Any

from tqdm import tqdm

from alignment.comparison.queries.scope import Scope
from alignment.demo_workspace.services.demo_workspace import (
    ENDED,
    RUNS,
    DemoRun,
    demo_ensure,
    demo_password,
    demo_run_ensure,
    people_ensure,
)
from alignment.demo_workspace.services.labelling import labelling_ensure
from alignment.reports.core.terminal_table import report_table
from alignment.reports.queries.reports import alignment_report
from alignment.reports.worker import report_store
from common.commands import WorkbenchCommand
from common.problems import OutsideFailure
from evaluation.gateway.current import current_endpoint, price_file
from evaluation.gateway.embedded import EMBEDDED_NOTICE
from evaluation.gateway.endpoints import Endpoint
from evaluation.models.runs import Run, error_in_words
from evaluation.runs.worker.execute import run_execute, run_reopen
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.people.services.roles import rater_for


class Command(WorkbenchCommand):
    """Mark everything as demo data, and keep what exists."""

    help = __doc__
    on_stop = "finished work is saved: the same command continues"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--evaluate", action="store_true", help="judge a few of the chats")

    def handle(self, *args: Any, **options: Any) -> None:
        password = demo_password()
        users = people_ensure(password=password)
        chat_set = demo_ensure(lead=users[-1])
        labelling_ensure(chat_set=chat_set, rater=rater_for(user=users[0]), lead=users[-1])
        runs = self._evaluate(chat_set) if options["evaluate"] else []
        names = [user.get_username() for user in users]
        lines = [*(self._report_text(run) for run in runs[:1]), sign_in_line(users, password)]
        document = {
            "set": chat_set.name,
            "users": names,
            "password": password,
            "runs": [run.pk for run in runs],
        }
        self.answer(document, "\n\n".join(lines))

    def _evaluate(self, chat_set: ChatSet) -> list[Run]:
        endpoint = current_endpoint()
        price_file()  # an unreadable price file stops the command before anything is planned
        runs = [demo_run_ensure(chat_set=chat_set, demo=demo, endpoint=endpoint) for demo in RUNS]
        for demo, run in zip(RUNS, runs, strict=True):
            self._execute(demo, run, endpoint)
        return runs

    def _execute(self, demo: DemoRun, run: Run, endpoint: Endpoint) -> None:
        if run.state in ENDED:
            self.note(f"run {run.pk}, {demo.engine}: already finished")
            return
        run_reopen(run)
        who = f"embedded model ({EMBEDDED_NOTICE})" if endpoint.embedded else endpoint.id
        self.note(f"run {run.pk}, {demo.engine}: {run.units_left} of {run.units_total} units left, {who}")
        with tqdm(total=run.units_total, initial=run.units_done, unit="unit") as bar:
            run_execute(run, on_unit=lambda failed: bar.update(0 if failed else 1) and None)
        if run.state == Run.State.PAUSED:
            raise OutsideFailure(f"{error_in_words(run.error)}; run the command again to continue")

    def _report_text(self, run: Run) -> str:
        notice = f"\n({EMBEDDED_NOTICE})" if run.judge.embedded else ""
        scope = Scope(run.chat_set, run)
        report_store(scope, share=False)
        return f"{report_table(alignment_report(scope))}{notice}"


def sign_in_line(users: list[User], password: str) -> str:
    """Usernames and password for signing in; accounts that existed before keep their own password."""
    open_to = [user.get_username() for user in users if user.check_password(password)]
    others = [user.get_username() for user in users if user.get_username() not in open_to]
    lines = [f"Sign in as {', '.join(open_to)}; password {password}"] if open_to else []
    lines += [f"{', '.join(others)}: existing password"] if others else []
    return "\n".join(lines)
