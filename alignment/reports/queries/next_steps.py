"""What to do next about a criterion of a report, and the page that does it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.urls import reverse

from alignment.comparison.core.codes import CONSENSUS
from alignment.comparison.queries.scope import Scope
from alignment.reports.core.cautions import INVERTED
from alignment.reports.core.status import Status
from alignment.reports.queries.reports import POLICY
from alignment.statistics.label_needs import missing_labels
from evaluation.models.runs import EVALUATIONS, FINISHED, Run
from labeling.models.people import User


@dataclass(frozen=True, slots=True)
class Step:
    """Something to do, in words; `url` is '' where the user may not, or where no page does it."""

    words: str
    url: str = ""


def next_steps(entry: Mapping[str, Any], scope: Scope, *, user: User | AnonymousUser) -> list[Step]:
    """
    The most telling first; none where nothing is to do.

    Parameters
    ----------
    entry : a criterion of the report's JSON.
    scope : what the report is about; nothing is to do about people alone.
    user : who reads it: what only leads may do, others are told to ask them for; no step that they have no
        right to has a link.
    """
    run = scope.run
    if run is None:
        return []
    left_open = [*_unread(entry, run), *_not_applicable(entry, scope)]
    return [*_by_status(entry, scope, run, user), *left_open, *_undecided(entry, scope, user)]


def plan_url(scope: Scope, key: str = "") -> str:
    """Where labels are planned: on the chats of a set, with one criterion in full."""
    if scope.run is None or scope.run.chat_set_id is None:
        return ""
    query = {"criterion": key} if key else {}
    return reverse("alignment:label_plan", args=[scope.run.pk], query=query | _part(scope))


def _part(scope: Scope) -> dict[str, str]:
    """The part of a run that a report is about, as addresses name it."""
    asked = {"split": scope.split, "topic": scope.topic, "since": scope.since, "until": scope.until}
    return {name: str(value) for name, value in asked.items() if value}


def _by_status(
    entry: Mapping[str, Any], scope: Scope, run: Run, user: User | AnonymousUser
) -> Iterator[Step]:
    key, status = entry["key"], entry["status"]
    plan = plan_url(scope, key)
    if entry["questions"]["words"]:
        yield _for_leads("label chats anew, to the text that the judge was asked", plan, user)
    if status == Status.NOT_ENOUGH_LABELS and (missing := _missing(entry)):
        yield _for_leads(missing, plan, user)
    writes = user.has_perm("labeling.edit_prompts") and run.purpose != Run.Purpose.IMPORT
    prompt = reverse("alignment:prompt_edit", args=[key]) if writes else ""
    if any(caution.startswith(INVERTED) for caution in entry["cautions"]):
        yield Step("check in the prompt which answer is asked for", prompt)
    if status == Status.NOT_ALIGNED:
        table = entry["confusion"]
        parted = table["fn"] + table["fp"]
        if parted:
            yield Step(f"triage {parted} disagreement{'' if parted == 1 else 's'}", _triage(key, scope, run))
        yield Step("then revise the prompt" if parted else "revise the prompt", prompt)
    if status == Status.ALIGNED and entry["tier"] != "subjective" and not entry["questions"]["words"]:
        yield Step("use it for monitoring")


def _for_leads(words: str, url: str, user: User | AnonymousUser) -> Step:
    """What leads do; others may ask them to."""
    return Step(words, url) if user.has_perm("labeling.manage_labeling") else Step(f"ask a lead to {words}")


def _missing(entry: Mapping[str, Any]) -> str:
    """The labels that a status misses; '' where there are enough and it is verdicts that are missing."""
    true, unjudged = entry["human_true"], entry["unjudged"]
    false = entry["n"] - true
    least = {"minimum_true": POLICY.minimum_true, "minimum_false": POLICY.minimum_false}
    more = missing_labels(true=true + unjudged["true"], false=false + unjudged["false"], **least)
    if more or missing_labels(true=true, false=false, **least):
        return more
    return "label chats of both verdicts"


def _triage(key: str, scope: Scope, run: Run) -> str:
    """Misalignments are kept against the consensus, and of runs that count."""
    if scope.against != CONSENSUS or run.purpose not in EVALUATIONS or run.state not in FINISHED:
        return f"#c-{key}"
    return reverse("alignment:misalignment_list", query={"criterion": key, "run": run.pk})


def _unread(entry: Mapping[str, Any], run: Run) -> Iterator[Step]:
    """While a run goes on verdicts are still to come."""
    ended = run.state not in (Run.State.RUNNING, Run.State.PAUSED)
    if ended and (silent := entry["no_verdict"]):
        url = reverse("evaluation:run_detail", args=[run.pk])
        yield Step(f"see why {silent} chat{' has' if silent == 1 else 's have'} no verdict", url)


def _not_applicable(entry: Mapping[str, Any], scope: Scope) -> Iterator[Step]:
    """Where they weigh on the status: what the judge calls so, and people answered."""
    if (chats := entry["judge_not_applicable"]) and entry["status"] != Status.ALIGNED:
        words = f"read {chats} chat{'' if chats == 1 else 's'} that the judge calls not applicable"
        args = [scope.run.pk if scope.run else 0, entry["key"]]
        yield Step(words, reverse("alignment:criterion_report", args=args, query=_part(scope)) + "#matrix")


def _undecided(entry: Mapping[str, Any], scope: Scope, user: User | AnonymousUser) -> Iterator[Step]:
    if not (tied := entry["unresolved"]):
        return
    query = {"criterion": entry["key"]}
    if scope.chat_set is not None:
        query["set"] = str(scope.chat_set.pk)
    words = f"adjudicate {tied} unresolved chat{'' if tied == 1 else 's'}"
    yield _for_leads(words, reverse("labeling:adjudication_queue", query=query), user)
