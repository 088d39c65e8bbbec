"""Tests a prompt against its criterion's champion on human labels, and prints the gate's result."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction
from tqdm import tqdm

from alignment.management.gate_command import GateCommand
from alignment.models.regressions import Policy, RegressionTest
from alignment.regression.core import GatePolicy
from alignment.regression.services.policies import policy_ensure, policy_in_force
from alignment.regression.services.tests import RegressionChoice, prompt_test_continue
from alignment.regression.worker import regression_advance, runs_of
from common.commands import CommandExit, ExitCode
from common.jsonl import read_text
from common.problems import FieldProblem, InputProblem, shown
from evaluation.gateway.budget import BUDGET_REACHED
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.queries.profiles import default_profile, profile_choice
from evaluation.management.options import account, dollars
from evaluation.models.judges import JudgeProfile
from evaluation.models.runs import Run, error_in_words
from evaluation.prompts.core.lint import Level
from evaluation.prompts.queries.criteria import prompt_findings
from evaluation.prompts.services.examples import prompt_version_add
from evaluation.prompts.services.prompt_files import prompt_read
from evaluation.runs.services.runs import budget_change
from evaluation.runs.worker.execute import run_execute, run_reopen
from labeling.models.chats import ChatSet, Split
from labeling.models.rubric import Criterion

SPLITS = (Split.DEV.value, Split.HOLDOUT.value)


class Command(GateCommand):
    """Test a criterion's prompt against its champion on the human labels of a chat set."""

    help = __doc__
    on_stop = "finished work is saved: the same command continues"

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("--criterion", required=True, metavar="KEY", help="the criterion")
        add("--prompt", required=True, type=Path, metavar="FILE.md", help="the candidate prompt")
        add("--set", required=True, metavar="NAME", help="a labelled chat set")
        add("--split", choices=SPLITS, default=SPLITS[0], help="holdout is recorded as a use of it")
        add("--profile", metavar="NAME", help="judge profile; default: the workspace's default profile")
        add(
            "--policy",
            type=Path,
            metavar="FILE",
            help="JSON with parameters; default: the policy in force",
        )
        add("--noise", action="store_true", help="repeat the champion to measure its noise")
        add("--budget", type=dollars, metavar="USD", help="budget of each run; one that reaches it pauses")
        add("--by", metavar="NAME", help="account that starts the test, recorded with a use of the holdout")
        super().add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        criterion = _criterion(options["criterion"])
        text = self._text(options["prompt"], criterion)
        with transaction.atomic():  # a refused test leaves neither draft nor policy
            test = _start(criterion, text, options)
        self.warn(test)
        test = self._execute_runs(test, options["budget"])
        self.end_with(test, options)

    def _reopened(self, run: Run, budget: Decimal | None) -> Run:
        """Reopen a paused run, with a new budget if it was given."""
        if budget is not None and budget != run.budget_usd:
            budget_change(run, budget)
        return run_reopen(run)

    def _text(self, path: Path, criterion: Criterion) -> str:
        """Return the candidate's text. Raises InputProblem for lint errors: no call is paid for them."""
        text = prompt_read(path, criterion=criterion).text
        findings = prompt_findings(criterion=criterion, text=text)
        if errors := [finding.text for finding in findings if finding.level is Level.ERROR]:
            raise InputProblem(f"{path}: {'; '.join(errors)}")
        for finding in findings:
            self.note(f"{path}: {finding.line}")
        return text

    def _execute_runs(self, test: RegressionTest, budget: Decimal | None) -> RegressionTest:
        """Execute the test's runs, including a confirming run if the gate needs one."""
        while test.is_open:
            for run in runs_of(test):
                self._execute(run, budget)
            test = regression_advance(test.pk)
        return test

    def _execute(self, run: Run, budget: Decimal | None) -> None:
        if run.finished_at is not None:
            return
        if run.state == Run.State.PAUSED:
            run = self._reopened(run, budget)
        self.note(f"run {run.pk}: {run.get_purpose_display().lower()}, {run.units_total:,} units")
        with tqdm(total=run.units_total, unit="unit", disable=None) as bar:
            run_execute(run, on_unit=lambda failed: bar.update())
        if run.state == Run.State.PAUSED:
            spent = run.error.startswith(BUDGET_REACHED)
            code = ExitCode.INCONCLUSIVE if spent else ExitCode.OUTSIDE_FAILURE
            raise CommandExit(
                code, f"run {run.pk}: {error_in_words(run.error)}; run the same command again to continue"
            )


def _start(criterion: Criterion, text: str, options: dict[str, Any]) -> RegressionTest:
    """Start the test of a text, or continue the same test of an earlier command."""
    choice = RegressionChoice(
        chat_set=_set(options["set"]),
        split=options["split"],
        judge=_judge(options["profile"]),
        policy=_policy(options["policy"]),
        noise=options["noise"],
        budget_usd=options["budget"],
        on_worker=False,
    )
    by = account(options["by"])
    candidate = prompt_version_add(criterion=criterion, text=text, reason="Regression test", author=by)
    return prompt_test_continue(candidate=candidate, choice=choice, by=by)


def _criterion(key: str) -> Criterion:
    criterion = Criterion.objects.filter(key=key).first()
    if criterion is None:
        raise InputProblem(f"--criterion: there is no criterion {shown(key)}")
    return criterion


def _set(name: str) -> ChatSet:
    chat_set = ChatSet.objects.select_related("rubric").filter(name=name).first()
    if chat_set is None:
        raise InputProblem(f"--set: there is no chat set {shown(name)}")
    return chat_set


def _judge(name: str | None) -> JudgeSpec:
    """The judge of the named profile, else of the default profile."""
    profile = JudgeProfile.objects.filter(name=name).first() if name else default_profile()
    if profile is None and name:
        raise InputProblem(f"--profile: there is no judge profile {shown(name)}")
    try:
        return profile_choice(profile) if profile else JudgeSpec("direct")
    except FieldProblem as problem:
        raise InputProblem(f"--profile: {problem}") from None


def _policy(path: Path | None) -> Policy:
    """The policy of the file, stored by name and version; without a file the current one."""
    if path is None:
        return policy_in_force()
    try:
        parameters = json.loads(read_text(path))
        if not isinstance(parameters, dict):
            raise FieldProblem("", "must be one JSON object")
        return policy_ensure(GatePolicy.from_json(parameters))
    except (json.JSONDecodeError, FieldProblem) as problem:
        raise InputProblem(f"--policy: {path}: {problem}") from None
