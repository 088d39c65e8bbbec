"""Next steps for a criterion of a report, with links."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.urls import reverse

from alignment.comparison.core.codes import CONSENSUS
from alignment.comparison.queries.scope import Scope
from alignment.reports.core.cautions import INVERTED
from alignment.reports.core.status import LABEL_AGAIN, NEEDS, NOT_AGREED, Status
from alignment.statistics.label_needs import (
    Decision,
    LabelCounts,
    LabelKind,
    Minimums,
    label_summary,
    need_of,
    needs,
)
from evaluation.models.runs import EVALUATIONS, FINISHED, Run
from labeling.models.people import User


@dataclass(frozen=True, slots=True)
class Step:
    """An action in words, and in at most 40 characters where these are more.

    `url` is '' if the user may not take it or no page exists for it.
    """

    words: str
    url: str = ""
    short: str = ""

    @property
    def brief(self) -> str:
        """The action in few words."""
        return self.short or self.words


def next_steps(
    entry: Mapping[str, Any], scope: Scope, *, user: User | AnonymousUser, minimums: Minimums
) -> list[Step]:
    """
    Return the next steps, the most important first; none without a run.

    Parameters
    ----------
    entry : a criterion of the report's JSON.
    scope : the run and the filters of the report.
    user : the reader. Steps of leads appear as "ask a lead to …" for others. A step has a link only if the
        reader has the right to it.
    minimums : the labels that the policies require.
    """
    run = scope.run
    if run is None:
        return []
    verdicts = [*_no_verdict(entry, scope, run), *_not_applicable(entry, scope)]
    by_status = _by_status(entry, scope, run, user, minimums)
    unresolved = _unresolved(entry, scope, user)
    if entry["status"] == Status.NOT_ENOUGH_LABELS and _not_agreed(entry):
        return [*unresolved, *by_status, *verdicts]
    return [*by_status, *verdicts, *unresolved]


def plan_url(scope: Scope, key: str = "") -> str:
    """Return the address of the label plan, with one criterion open; '' without a set."""
    if scope.run is None or scope.run.chat_set_id is None:
        return ""
    query = {"criterion": key} if key else {}
    return reverse("alignment:label_plan", args=[scope.run.pk], query=query | _part(scope))


def _part(scope: Scope) -> dict[str, str]:
    """Return the filters of the report, as addresses name them."""
    filters = {"split": scope.split, "topic": scope.topic, "since": scope.since, "until": scope.until}
    return {name: str(value) for name, value in filters.items() if value}


def _by_status(
    entry: Mapping[str, Any], scope: Scope, run: Run, user: User | AnonymousUser, minimums: Minimums
) -> Iterator[Step]:
    key, status = entry["key"], entry["status"]
    plan = plan_url(scope, key)
    if entry["questions"]["words"]:
        again = "label chats again with the question that the judge answered"
        yield _for_leads(again, plan, user, short="label the new question")
    if status == Status.RATERS_DISAGREE:
        yield _guideline(scope, user)
    if status == Status.NOT_ENOUGH_LABELS and (missing := _missing(entry, minimums)):
        yield _for_leads(missing, plan, user, short=_missing_briefly(entry, minimums))
    writes = user.has_perm("labeling.edit_prompts") and run.purpose != Run.Purpose.IMPORT
    prompt = reverse("alignment:prompt_edit", args=[key]) if writes else ""
    if any(caution.startswith(INVERTED) for caution in entry["cautions"]):
        yield Step("check whether the prompt swaps True and False", prompt, "check for swapped answers")
    if status == Status.NOT_ALIGNED:
        table = entry["confusion"]
        disagreements = table["fn"] + table["fp"]
        if disagreements:
            plural = "" if disagreements == 1 else "s"
            yield Step(f"triage {disagreements} disagreement{plural}", _triage(key, scope, run))
        yield Step("then revise the prompt" if disagreements else "revise the prompt", prompt)
    if status == Status.ALIGNED and entry["tier"] != "subjective" and not entry["questions"]["words"]:
        ended = not entry["not_judged_yet"]
        url = reverse("evaluation:run_detail", args=[run.pk])
        yield Step("use it for monitoring") if ended else Step("wait until the run has ended", url)


def _for_leads(words: str, url: str, user: User | AnonymousUser, *, short: str = "") -> Step:
    """Return a step for leads; others ask a lead."""
    if user.has_perm("labeling.manage_labeling"):
        return Step(words, url, short)
    return Step(f"ask a lead to {words}", short=f"ask a lead: {short}" if short else "")


def _guideline(scope: Scope, user: User | AnonymousUser) -> Step:
    """Return the step to the guideline, which authors and leads may edit."""
    rubric = scope.chat_set.rubric_id if scope.chat_set else None
    if rubric is None or not user.has_perm("labeling.edit_prompts"):
        return Step(f"ask an author to {LABEL_AGAIN}", short="ask an author: refine guideline")
    return Step(LABEL_AGAIN, reverse("labeling:guideline_detail", args=[rubric]), "refine the guideline")


def _not_agreed(entry: Mapping[str, Any]) -> bool:
    """Return whether unresolved chats keep the criterion from a status."""
    return any(reason.startswith(NOT_AGREED) for reason in entry["reasons"])


def label_counts(entry: Mapping[str, Any]) -> LabelCounts:
    """Return a criterion's labels, those on chats without a verdict included."""
    true, unjudged = entry["human_true"], entry["unjudged"]
    false = entry["n"] - true
    return LabelCounts(true + unjudged["true"], false + unjudged["false"], tier=entry["tier"])


def _missing(entry: Mapping[str, Any], minimums: Minimums) -> str:
    """Return the labels that decisions need; '' if verdicts are missing, or adjudication may bring them."""
    if _not_agreed(entry) and not any(reason.startswith(NEEDS) for reason in entry["reasons"]):
        return ""
    counts = label_counts(entry)
    status = need_of(Decision.STATUS, counts, minimums)
    if not status.met:
        return f"{status.sentence} ({label_summary(needs(counts, minimums))})"
    compared = LabelCounts(entry["human_true"], entry["n"] - entry["human_true"])
    return "label chats of both verdicts" if need_of(Decision.STATUS, compared, minimums).met else ""


def _missing_briefly(entry: Mapping[str, Any], minimums: Minimums) -> str:
    """Return the labels that a status needs, by answer; '' if it needs none."""
    status = need_of(Decision.STATUS, label_counts(entry), minimums)
    true, false = status.missing(LabelKind.TRUE), status.missing(LabelKind.FALSE)
    missing = [f"{n} {answer}" for answer, n in (("True", true), ("False", false)) if n]
    return f"label {' and '.join(missing)}" if missing else ""


def _triage(key: str, scope: Scope, run: Run) -> str:
    """Return the triage page; the matrix of the report if triage does not cover it."""
    if scope.against != CONSENSUS or run.purpose not in EVALUATIONS or run.state not in FINISHED:
        return f"#c-{key}"
    return reverse("alignment:misalignment_list", query={"criterion": key, "run": run.pk})


def _no_verdict(entry: Mapping[str, Any], scope: Scope, run: Run) -> Iterator[Step]:
    """Return the step to the chats without a verdict, once the run has ended; of each rater, to the run."""
    ended = run.state not in (Run.State.RUNNING, Run.State.PAUSED)
    if ended and (chats := entry["no_verdict"]):
        url = reverse("alignment:no_verdict", args=[run.pk, entry["key"]], query=_part(scope))
        if scope.each_rater:
            url = reverse("evaluation:run_detail", args=[run.pk])
        yield Step(f"see why {chats} chat{' has' if chats == 1 else 's have'} no verdict", url)


def _not_applicable(entry: Mapping[str, Any], scope: Scope) -> Iterator[Step]:
    """Return the step for verdicts of not applicable that count against the status."""
    if (chats := entry["judge_not_applicable"]) and entry["status"] != Status.ALIGNED:
        words = f"read {chats} chat{'' if chats == 1 else 's'} with the verdict not applicable"
        short = f"read {chats} not applicable"
        args = [scope.run.pk if scope.run else 0, entry["key"]]
        yield Step(
            words, reverse("alignment:criterion_report", args=args, query=_part(scope)) + "#matrix", short
        )


def _unresolved(entry: Mapping[str, Any], scope: Scope, user: User | AnonymousUser) -> Iterator[Step]:
    if not (tied := entry["unresolved"]):
        return
    query = {"criterion": entry["key"]}
    if scope.chat_set is not None:
        query["set"] = str(scope.chat_set.pk)
    words = f"adjudicate {tied} unresolved chat{'' if tied == 1 else 's'}"
    yield _for_leads(words, reverse("labeling:adjudication_queue", query=query), user)
