"""What a run's engine did, and whether it was right, for the report."""

from typing import Any

from django.db.models import BooleanField, Case, Count, OuterRef, Subquery, TextField, Value, When
from django.db.models.functions import Cast

from alignment.core.intervals import proportion
from alignment.core.report.engine_side import Counted, engine_against_people
from alignment.selectors.scope import Scope
from evaluation.core.hostile import SUSPECT
from evaluation.models.judges import Judge
from evaluation.models.runs import Verdict
from evaluation.selectors.engine_stats import run_engine_stats
from evaluation.selectors.prompts import newest_versions
from labeling.models.labels import Consensus, Label

HUMAN: dict[Any, bool] = {True: True, False: False, Consensus.State.TRUE: True, Consensus.State.FALSE: False}


def engine_section(scope: Scope) -> dict[str, Any] | None:
    """The report's `engine` (docs/reports.md): counts, and what they are worth against people.

    None without a run, and for a judge whose verdicts were imported. Against each rater there is no one
    answer of people to compare with: `against_people` is None.
    """
    if scope.run is None or scope.run.judge.kind != Judge.Kind.LACE:
        return None
    stats = run_engine_stats(scope.run, chats=scope.chat_ids).as_json()
    right = None if scope.each_rater else engine_against_people(_counted(scope))
    return {**_with_shares(stats), "against_people": right}


def _with_shares(value: Any) -> Any:
    """The same with the share and its interval beside every count of hits among n."""
    if not isinstance(value, dict):
        return value
    if value.keys() == {"hits", "n"}:
        return value | proportion(value["hits"], value["n"], reason="none").as_json()
    return {name: _with_shares(part) for name, part in value.items()}


def _counted(scope: Scope) -> list[Counted]:
    """Verdicts that people answered True or False as well, counted by the database."""
    passes = {pk: row.passes_when for pk, row in newest_versions(criteria=scope.criteria).items()}
    read = Verdict.objects.filter(
        run=scope.run, chat__in=scope.chat_ids, criterion__in=scope.criteria, state=Verdict.State.READ
    )
    text = read.annotate(human=_human(scope), flags_text=Cast("flags", TextField()))
    suspect = Case(
        When(flags_text__contains=SUSPECT, then=Value(True)),
        default=Value(False),
        output_field=BooleanField(),
    )
    columns = ("criterion_id", "value", "first_state", "first_value", "sided_with", "human", "suspect")
    rows = text.annotate(suspect=suspect).values(*columns).annotate(count=Count("id")).order_by()
    return [
        Counted(
            human=HUMAN[row["human"]],
            value=row["value"],
            first=row["first_value"],
            reflected=row["first_state"] == Verdict.State.READ,
            side=row["sided_with"],
            passes_when=passes[row["criterion_id"]],
            suspect=row["suspect"],
            n=row["count"],
        )
        for row in rows
        if row["human"] in HUMAN
    ]


def _human(scope: Scope) -> Subquery:
    """People's answer on a verdict's chat and criterion: the consensus's state or the one rater's value."""
    same = {"chat": OuterRef("chat"), "criterion": OuterRef("criterion")}
    if scope.rater:
        labels = Label.objects.counted().filter(rater__name=scope.rater, **same)
        return Subquery(labels.values("value")[:1])
    return Subquery(Consensus.objects.filter(**same).values("state")[:1])
