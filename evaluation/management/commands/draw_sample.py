"""Samples the chats of a day by a plan, and starts its judge."""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import date
from typing import Any

from common.commands import WorkbenchCommand
from common.problems import InputProblem, shown
from evaluation.management.options import account, not_negative
from evaluation.models.nightly import NightlyRun
from evaluation.nightly.queries import PlanPreview, plan_preview
from evaluation.nightly.services import night_sample
from labeling.models.sampling import SampleDraw, SamplePlan
from labeling.sampling.queries import shortfall_texts, size_of, yesterday
from labeling.sampling.services import SEEDS


class Command(WorkbenchCommand):
    """Sample one day of a plan, or show what it would sample."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("plan", help="name of the sample plan; a paused one samples, too")
        add("--day", type=day, metavar="YYYY-MM-DD", help="day whose chats to sample; default: yesterday")
        add("--seed", type=not_negative, help="default: a random one, stored with the sample")
        add("--dry-run", action="store_true", help="print the allocation; store and start nothing")
        add("--by", metavar="USER", help="account that the audit log names")

    def handle(self, *args: Any, **options: Any) -> None:
        plan = SamplePlan.objects.filter(name=options["plan"]).first()
        if plan is None:
            raise InputProblem(f"there is no sample plan {shown(options['plan'])}")
        chosen = options["day"] or yesterday()
        if options["dry_run"]:
            preview = plan_preview(size=size_of(plan), audit_share=plan.audit_share, plan=plan, day=chosen)
            self.answer(_preview_json(preview), _text(preview.shortfall_texts, _preview_json(preview)))
            return
        seed = options["seed"]
        if seed is not None and seed >= SEEDS:
            raise InputProblem(f"--seed: a seed is below {SEEDS:,}")
        draw = night_sample(plan=plan, day=chosen, by=account(options["by"]), seed=seed)
        night = NightlyRun.objects.filter(draw=draw).first()
        body = _draw_json(draw, night)
        self.answer(body, _text(shortfall_texts(draw.shortfalls), body))
        if night and night.run_id:
            self.note(f"run {night.run_id} judges them")
        elif night:
            self.note(f"the judge did not start: {night.problem}")


def day(text: str) -> date:
    """Read a day. Raises ArgumentTypeError."""
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise ArgumentTypeError(f"not a day such as 2026-11-28: {shown(text)}") from error


def _preview_json(preview: PlanPreview) -> dict[str, Any]:
    return {
        "day": preview.day.isoformat(),
        "frame": preview.frame_size,
        "chats": preview.allocation.n,
        "strata": [
            {"topic": one.key, "size": one.size, "n": one.n, "probability": one.probability}
            for one in preview.strata
        ],
        "shortfalls": [kind.value for kind in preview.allocation.shortfalls],
    }


def _draw_json(draw: SampleDraw, night: NightlyRun | None) -> dict[str, Any]:
    return {
        "day": draw.day.isoformat(),
        "frame": draw.frame_size,
        "chats": draw.sampled,
        "strata": draw.strata,
        "shortfalls": draw.shortfalls,
        "seed": draw.seed,
        "set": draw.chat_set.name if draw.chat_set else "",
        "run": night.run_id if night else None,
        "problem": night.problem if night else "",
    }


def _text(shortfalls: list[str], body: dict[str, Any]) -> str:
    lines = [f"{body['day']}: {body['chats']:,} of {body['frame']:,} chats"]
    lines += [f"  {one['topic']}: {one['n']:,} of {one['size']:,}" for one in body["strata"]]
    return "\n".join([*lines, *shortfalls])
