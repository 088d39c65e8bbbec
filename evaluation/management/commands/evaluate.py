"""Runs LACE over a chat set in this process."""

from argparse import ArgumentParser
from typing import Any, get_args

from django.db import transaction
from tqdm import tqdm

from evaluation.core.choice import JudgeChoice
from evaluation.core.grouping import Grouping
from evaluation.core.types import KnowledgeMode
from evaluation.gateway.endpoints import Endpoint
from evaluation.models.judges import Engine
from evaluation.models.runs import Run, Verdict
from evaluation.runner.estimate import Estimate, run_estimate
from evaluation.runner.execute import run_execute, run_reopen
from evaluation.runner.plan import current_endpoint, current_prices, plan_load
from evaluation.services.runs import RunChoice, run_start
from labeling.core.problems import InputProblem
from labeling.management.base import CommandExit, ExitCode, WorkbenchCommand
from labeling.models.chats import ChatSet, Split

# What makes up a run's plan, with the values that stand for "not given".
PLAN_OPTIONS: dict[str, Any] = {
    "set": None,
    "engine": None,
    "criteria": "",
    "split": "",
    "limit": None,
    "model": "",
    "formatter": "",
    "grouping": "auto",
    "knowledge": "static",
    "replicate": 0,
}


class Command(WorkbenchCommand):
    """Plan a run or take one up again, work it off with a progress bar, say what came of it."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--set", help="name of the chat set")
        parser.add_argument("--engine", choices=Engine.values)
        parser.add_argument(
            "--criteria", default="", metavar="K1,K2", help="default: every criterion of the rubric"
        )
        parser.add_argument("--split", choices=Split.values, default="")
        parser.add_argument("--limit", type=positive, help="only the first so many chats of the set")
        parser.add_argument("--model", default="", help="reasoning model; default: LACE_REASONING_MODEL")
        parser.add_argument("--formatter", default="", help="formatter model; default: LACE_FORMATTER_MODEL")
        parser.add_argument("--grouping", choices=get_args(Grouping), default="auto")
        parser.add_argument("--knowledge", choices=get_args(KnowledgeMode), default="static")
        parser.add_argument(
            "--replicate", type=not_negative, default=0, help="another number asks everything anew"
        )
        parser.add_argument(
            "--max-in-flight", type=positive, help="calls in flight; default: LACE_MAX_IN_FLIGHT"
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="print calls, tokens and cost, ask nothing"
        )
        parser.add_argument(
            "--resume", type=positive, metavar="RUN", help="go on with this run, failed units too"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        endpoint = current_endpoint()
        current_prices()  # a price file that cannot be read is refused before a run is planned
        if options["resume"]:
            refuse_plan_options(options)
        if options["dry_run"]:
            self._estimate(endpoint, options)
            return
        run = self._resumed(options) if options["resume"] else self._started(endpoint, options)
        self._execute(run, options["max_in_flight"])
        self._finish(run)

    def _started(self, endpoint: Endpoint, options: dict[str, Any]) -> Run:
        chat_set, judge, run = choices(endpoint, options)
        return run_start(chat_set=chat_set, judge=judge, run=run, endpoint=endpoint)

    def _resumed(self, options: dict[str, Any]) -> Run:
        run = run_named(options["resume"])
        plan_load(run)  # settings that cannot go on with this run are refused before it is touched
        return run_reopen(run)

    def _estimate(self, endpoint: Endpoint, options: dict[str, Any]) -> None:
        with transaction.atomic():
            if options["resume"]:
                planned = run_reopen(run_named(options["resume"]))
            else:
                planned = self._started(endpoint, options)
            estimate = run_estimate(planned)
            transaction.set_rollback(True)
        self.answer(estimate.as_json(), estimate_text(estimate))

    def _execute(self, run: Run, max_in_flight: int | None) -> None:
        self.note(f"run {run.pk}: {run.judge.name}, {run.units_left:,} of {run.units_total:,} units to do")
        failed = run.units_failed
        with tqdm(total=run.units_total, initial=run.units_done, unit="unit", disable=None) as bar:

            def step(unit_failed: bool) -> None:
                nonlocal failed
                failed += unit_failed
                bar.set_postfix(failed=failed, refresh=False)
                bar.update(0 if unit_failed else 1)

            try:
                run_execute(run, on_unit=step, max_in_flight=max_in_flight)
            except KeyboardInterrupt:
                raise CommandExit(ExitCode.OUTSIDE_FAILURE, resume_hint(run, "stopped")) from None

    def _finish(self, run: Run) -> None:
        self.answer(run_json(run), run_text(run))
        if run.state == Run.State.PAUSED:
            raise CommandExit(ExitCode.OUTSIDE_FAILURE, resume_hint(run, run.error or "paused"))
        if run.state == Run.State.RUNNING:
            why = f"{run.units_left} units are in work by another process"
            raise CommandExit(ExitCode.OUTSIDE_FAILURE, resume_hint(run, why))
        if run.state == Run.State.DONE_WITH_FAILURES:
            raise CommandExit(
                ExitCode.OUTSIDE_FAILURE, resume_hint(run, f"{run.units_failed} units failed: {run.error}")
            )


def run_named(run_id: int) -> Run:
    """A run that was evaluated here; raises InputProblem for any other."""
    runs = Run.objects.select_related("judge", "chat_set").filter(purpose=Run.Purpose.EVALUATION)
    if (run := runs.filter(pk=run_id).first()) is None:
        raise InputProblem(f"--resume: there is no run {run_id} that was evaluated here")
    return run


def refuse_plan_options(options: dict[str, Any]) -> None:
    """A run that is taken up again keeps its plan: options that would change it are refused."""
    for name, default in PLAN_OPTIONS.items():
        if options[name] != default:
            raise InputProblem(f"--{name} cannot be changed with --resume: the run keeps its plan")


def chosen_keys(text: str) -> tuple[str, ...]:
    """The criterion keys of --criteria; an option without a key is refused, not taken for every criterion."""
    keys = tuple(key.strip() for key in text.split(",") if key.strip())
    if text and not keys:
        raise InputProblem(f"--criteria: {text!r} names no criterion")
    return keys


def choices(endpoint: Endpoint, options: dict[str, Any]) -> tuple[ChatSet, JudgeChoice, RunChoice]:
    """What the options ask for; raises InputProblem for a missing set or engine."""
    if not options["set"] or not options["engine"]:
        raise InputProblem("--set and --engine are needed (or --resume RUN)")
    chat_set = ChatSet.objects.select_related("rubric").filter(name=options["set"]).first()
    if chat_set is None:
        raise InputProblem(f"--set: there is no chat set {options['set']!r}")
    judge = JudgeChoice(
        engine=options["engine"],
        model=options["model"],
        formatter=options["formatter"],
        # The embedded model does best with one criterion a call.
        grouping="criterion" if endpoint.embedded and options["grouping"] == "auto" else options["grouping"],
        knowledge=options["knowledge"],
    )
    run = RunChoice(
        criteria=chosen_keys(options["criteria"]),
        split=options["split"],
        limit=options["limit"],
        replicate=options["replicate"],
    )
    return chat_set, judge, run


def run_json(run: Run) -> dict[str, Any]:
    """The command's answer, as contracted."""
    verdicts = Verdict.objects.filter(run=run)
    return {
        "run": run.pk,
        "state": run.state,
        "verdicts": verdicts.count(),
        "unparsed": verdicts.filter(state=Verdict.State.UNPARSED).count(),
        "calls": run.calls,
        "reused": run.reused,
        "prompt_tokens": run.prompt_tokens,
        "completion_tokens": run.completion_tokens,
        "cost_usd": None if run.cost_usd is None else float(run.cost_usd),
    }


def run_text(run: Run) -> str:
    """The command's answer in words."""
    body = run_json(run)
    cost = "cost unknown" if run.cost_usd is None else f"${run.cost_usd:.4f}"
    return (
        f"run {run.pk} {run.get_state_display().lower()}: {body['verdicts']:,} verdicts, "
        f"{body['unparsed']:,} unparsed, {run.calls:,} calls, {run.reused:,} reused, "
        f"{run.prompt_tokens:,} + {run.completion_tokens:,} tokens, {cost}"
    )


def resume_hint(run: Run, why: str) -> str:
    """One line: what happened, how far it is, how to go on."""
    return f"{why}; {run.units_done} of {run.units_total} units done, go on with --resume {run.pk}"


def estimate_text(estimate: Estimate) -> str:
    """The dry run in words."""
    cost = (
        "cost unknown (no price for this model)" if estimate.cost_usd is None else f"${estimate.cost_usd:.4f}"
    )
    return (
        f"{estimate.chats:,} chats, {estimate.units:,} units: {estimate.calls:,} calls and formatter calls "
        f"as needed ({estimate.reused:,} more are answered already), "
        f"about {estimate.prompt_tokens:,} prompt tokens and up to {estimate.completion_tokens:,} "
        f"completion tokens, {cost}"
    )


def positive(text: str) -> int:
    """A whole number above zero."""
    if (value := int(text)) <= 0:
        raise ValueError
    return value


def not_negative(text: str) -> int:
    """A whole number, zero or above."""
    if (value := int(text)) < 0:
        raise ValueError
    return value
