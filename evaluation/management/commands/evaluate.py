"""Evaluates a chat set in this process."""

import time
from argparse import ArgumentParser
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import Count
from tqdm import tqdm

from common.commands import CommandExit, ExitCode, WorkbenchCommand
from common.problems import InputProblem
from evaluation.gateway.budget import BUDGET_REACHED, budget_check
from evaluation.gateway.current import price_file
from evaluation.gateway.endpoints import Endpoint
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.queries.configs import judge_endpoint
from evaluation.judges.queries.model_notices import model_notices
from evaluation.management.options import (
    add_judge_arguments,
    add_plan_arguments,
    chosen_judge,
    chosen_run,
    chosen_set,
    dollars,
    positive,
    profile_as_it_is,
    refuse_plan_options,
)
from evaluation.models.judges import Judge
from evaluation.models.runs import Run, Verdict, error_in_words
from evaluation.runs.queries.costs import costs_json, run_costs
from evaluation.runs.services.estimates import estimate_for
from evaluation.runs.services.runs import budget_change, run_start
from evaluation.runs.worker.batch import batch_advance
from evaluation.runs.worker.estimate import Estimate, run_estimate
from evaluation.runs.worker.execute import run_execute, run_reopen, run_settle
from evaluation.runs.worker.plan import plan_load, resume_check

# The command gives up after this many failed polls in a row; the batches stay.
SILENT_POLLS = 20
# A dry run uses at most this many chats, evenly spaced, and reports it.
DRY_RUN_CHATS = 2000


class Command(WorkbenchCommand):
    """Plan a run or resume one, process it with a progress bar, and report the result."""

    help = __doc__
    on_stop = "finished work is saved"

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_plan_arguments(parser)
        add_judge_arguments(parser)
        add = parser.add_argument
        add("--budget", type=dollars, metavar="USD", help="pause before spending more than this")
        add("--max-in-flight", type=positive, help="calls in flight; default: LACE_MAX_IN_FLIGHT")
        add("--dry-run", action="store_true", help="print calls, tokens and cost; send nothing")
        add("--resume", type=positive, metavar="RUN", help="continue this run and retry failed units")

    def handle(self, *args: Any, **options: Any) -> None:
        price_file()  # refuse an unreadable price file before a run is planned
        if options["resume"]:
            refuse_plan_options(options)
        if options["dry_run"]:
            estimate = self._estimate(options)
            self.answer(estimate.as_json(), estimate_text(estimate))
            return
        run = self._resumed(options) if options["resume"] else self._started(options)
        self._execute(run, options["max_in_flight"])
        self._finish(run)

    def _started(self, options: dict[str, Any]) -> Run:
        chat_set, judge = chosen_set(options), chosen_judge(options)
        endpoint = judge_endpoint(judge)
        run = run_start(chat_set=chat_set, judge=judge, run=chosen_run(options), endpoint=endpoint)
        self._notices(judge, endpoint)
        if (profile := profile_as_it_is(options)) is not None:
            Judge.objects.filter(pk=run.judge_id, profile=None).update(profile=profile)
        return run

    def _resumed(self, options: dict[str, Any]) -> Run:
        run = run_named(options["resume"])
        resume_check(run)
        plan = plan_load(run)  # refuse unsuitable settings before the run changes
        budget = options["budget"] or run.budget_usd
        budget_check(budget=budget, models=plan.models, prices=plan.prices)
        if options["budget"]:
            budget_change(run, options["budget"])
        return run_reopen(run)

    def _estimate(self, options: dict[str, Any]) -> Estimate:
        if options["resume"]:
            return run_estimate(
                run_named(options["resume"]), budget_usd=options["budget"], most_chats=DRY_RUN_CHATS
            )
        chat_set, judge = chosen_set(options), chosen_judge(options)
        endpoint = judge_endpoint(judge)
        estimate = estimate_for(
            chat_set=chat_set,
            judge=judge,
            run=chosen_run(options),
            endpoint=endpoint,
            most_chats=DRY_RUN_CHATS,
        )
        self._notices(judge, endpoint)
        return estimate

    def _notices(self, judge: JudgeSpec, endpoint: Endpoint) -> None:
        for notice in model_notices(choice=judge, endpoint=endpoint):
            self.note(notice)

    def _execute(self, run: Run, max_in_flight: int | None) -> None:
        self.note(f"run {run.pk}: {run.judge.name}, {run.units_left:,} of {run.units_total:,} units left")
        with tqdm(total=run.units_total, initial=run.units_done, unit="unit", disable=None) as bar:
            try:
                if run.mode == Run.Mode.BATCH:
                    self._batch(run, bar)
                else:
                    run_execute(run, on_unit=counting(bar, run.units_failed), max_in_flight=max_in_flight)
            except KeyboardInterrupt:
                if run.mode == Run.Mode.BATCH:
                    run_settle(run, trouble="interrupted")
                raise CommandExit(ExitCode.OUTSIDE_FAILURE, resume_hint(run, "stopped")) from None

    def _batch(self, run: Run, bar: Any) -> None:
        """Advance the batches, wait for the poll interval, and repeat until no answer is pending."""
        silent = 0
        while (step := batch_advance(run)).waiting:
            silent = silent + 1 if step.trouble else 0
            if silent > SILENT_POLLS:
                run_settle(run, trouble=step.trouble)
                return
            if step.trouble:
                self.note(step.trouble)
            bar.set_postfix(waiting=step.requests, failed=run.units_failed, refresh=False)
            bar.update(run.units_done - bar.n)
            time.sleep(settings.LACE_BATCH_POLL_SECONDS)

    def _finish(self, run: Run) -> None:
        self.answer(run_json(run), run_text(run))
        why = error_in_words(run.error)
        if run.state == Run.State.PAUSED and run.error.startswith(BUDGET_REACHED):
            raise CommandExit(ExitCode.INCONCLUSIVE, resume_hint(run, why))
        if run.state == Run.State.PAUSED:
            raise CommandExit(ExitCode.OUTSIDE_FAILURE, resume_hint(run, why or "paused"))
        if run.state == Run.State.RUNNING:
            why = f"{run.units_left} units are being processed elsewhere"
            raise CommandExit(ExitCode.OUTSIDE_FAILURE, resume_hint(run, why))
        if run.state == Run.State.CANCELLED:
            done = f"{run.units_done} of {run.units_total} units done"
            raise CommandExit(ExitCode.OUTSIDE_FAILURE, f"run {run.pk} is cancelled ({why}); {done}")
        if run.state == Run.State.DONE_WITH_FAILURES:
            raise CommandExit(
                ExitCode.OUTSIDE_FAILURE, resume_hint(run, f"{run.units_failed} units failed: {why}")
            )


def counting(bar: Any, failed: int) -> Callable[[bool], None]:
    """Return the function that moves the bar after each unit."""

    def step(unit_failed: bool) -> None:
        nonlocal failed
        failed += unit_failed
        bar.set_postfix(failed=failed, refresh=False)
        bar.update(0 if unit_failed else 1)

    return step


def run_named(run_id: int) -> Run:
    """Return a run that was evaluated here; raises InputProblem for any other."""
    runs = Run.objects.select_related("judge", "chat_set").exclude(purpose=Run.Purpose.IMPORT)
    if (run := runs.filter(pk=run_id).first()) is None:
        raise InputProblem(f"--resume: there is no run {run_id} that was evaluated here")
    if run.state == Run.State.CANCELLED:
        raise InputProblem(f"--resume: run {run_id} is cancelled: it cannot be resumed")
    return run


def run_json(run: Run) -> dict[str, Any]:
    """Return the command's answer."""
    rows = Verdict.objects.filter(run=run).values_list("state").annotate(n=Count("id")).order_by()
    counts: dict[str, int] = dict.fromkeys(Verdict.State.values, 0) | dict(rows)
    return {
        "run": run.pk,
        "state": run.state,
        "verdicts": sum(counts.values()),
        **counts,
        "calls": run.calls,
        "reused": run.reused,
        "prompt_tokens": run.prompt_tokens,
        "completion_tokens": run.completion_tokens,
        **costs_json(run_costs(run.pk)),
    }


def run_text(run: Run) -> str:
    """Return the command's answer in words."""
    body = run_json(run)
    missing = "".join(
        f"{body[state]:,} {state.label.lower()}, "
        for state in Verdict.State
        if state == Verdict.State.UNPARSED or (state != Verdict.State.READ and body[state])
    )
    return (
        f"run {run.pk} {run.get_state_display().lower()}: {body['verdicts']:,} verdicts, "
        f"{missing}{run.calls:,} calls, {run.reused:,} reused, "
        f"{run.prompt_tokens:,} + {run.completion_tokens:,} tokens, {_cost_text(run)}"
    )


def _cost_text(run: Run) -> str:
    costs = run_costs(run.pk)
    known = "cost unknown" if costs.cost_usd is None else f"${costs.cost_usd:.4f}"
    if costs.cost_usd is None or not costs.unknown_requests:
        return known
    most = "" if costs.unknown_usd is None else f", at most ${costs.unknown_usd:.4f}"
    return f"{known} and {costs.unknown_requests:,} requests of unknown cost{most}"


def resume_hint(run: Run, why: str) -> str:
    """Return one line: what happened, the progress, and how to continue."""
    return f"{why}; {run.units_done} of {run.units_total} units done, continue with --resume {run.pk}"


def estimate_text(estimate: Estimate) -> str:
    """Return the dry run in words."""
    lines = [
        f"{estimate.chats:,} chats, {estimate.units:,} units: {estimate.calls:,} calls and formatter calls "
        f"as needed ({estimate.reused:,} already answered)",
        f"expected: {estimate.expected_prompt_tokens:,} + {estimate.expected_completion_tokens:,} tokens, "
        f"{_estimated_cost(estimate, estimate.expected_cost_usd)}; "
        f"{estimate.learned:.0%} of the answer lengths from stored answers",
        f"at most: {estimate.prompt_tokens:,} + {estimate.completion_tokens:,} tokens, "
        f"{_estimated_cost(estimate, estimate.cost_usd)}",
        *_layout_lines(estimate),
    ]
    if estimate.price_sources:
        lines.append(f"prices: {', '.join(estimate.price_sources)}")
    if estimate.seconds:
        time_taken = timedelta(seconds=round(estimate.seconds))
        lines.append(f"about {time_taken} (h:mm:ss) at the pace of similar runs")
    if estimate.walked < estimate.chats:
        lines.append(f"estimated from {estimate.walked:,} of {estimate.chats:,} chats")
    if estimate.windowed:
        lines.append(f"{estimate.windowed:,} units are judged in windows")
    if estimate.budget_usd is not None:
        lines.append(_budget_line(estimate))
    return "\n".join(lines)


def _estimated_cost(estimate: Estimate, usd: Decimal | None) -> str:
    half = " at the Batch API's half price" if estimate.mode == Run.Mode.BATCH else ""
    return "cost unknown (no price for this model)" if usd is None else f"${usd:.4f}{half}"


def _layout_lines(estimate: Estimate) -> list[str]:
    """Return how much of the prompts repeats, in the judge's layout and in the other."""
    return [
        f"{layout.replace('_', ' ')}: {share:.0%} of the prompts repeats an earlier beginning"
        + (" (this judge)" if layout == estimate.layout else "")
        for layout, share in estimate.repeated.items()
        if share is not None
    ]


def _budget_line(estimate: Estimate) -> str:
    if estimate.fits_budget is None:
        words = "not usable: the cost is unknown"
    elif estimate.fits_budget:
        words = "sufficient"
    else:
        words = "may not be sufficient" + (", but is expected to be" if estimate.expected_to_fit else "")
    return f"budget ${estimate.budget_usd:.4f}: {words}"
