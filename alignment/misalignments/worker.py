"""Looks finished runs through for misalignments, piece by piece: the database finds, closes, reopens them."""

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from django.db import connection, models, transaction
from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.utils import timezone

from alignment.comparison.queries.latest_verdicts import ANSWERED_OTHERWISE
from alignment.misalignments.queries.runs import (
    ANSWERED_ALIKE,
    counted_runs,
    is_small,
    labels_seq,
    last_word,
    people_answers,
    runs_after,
    runs_waiting,
)
from alignment.models.misalignments import Misalignment, MisalignmentCount, Sighting
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import Run, Verdict

log = logging.getLogger(__name__)

# Runs that one page looks through.
AT_ONCE = 3
# Verdicts looked through, and items changed, in one transaction.
PIECE, AT_A_TIME = 20_000, 1_000
_State, _ClosedBy = Misalignment.State, Misalignment.ClosedBy


def disagreements_sweep() -> None:
    """Scan finished runs, and those on whose chats labels have changed."""
    for run in runs_waiting():
        try:
            misalignments_refresh(run)
        except Exception:
            # One run that cannot be scanned must not hold up the others.
            log.exception("run %s could not be scanned for disagreements", run.pk)


def misalignments_refresh(run: Run) -> None:
    """Find what this finished run and people differ on, and close or reopen what it settles or brings back.

    Doing it again changes nothing. A run whose word a newer one has had on a chat decides nothing there; when
    labels have changed it is looked through again for the others alone.
    NB: each piece is a transaction of its own, so that nobody waits long for the database. What stops in the
    middle leaves a run that still waits, and the next time begins anew.
    """
    if not counted_runs().filter(pk=run.pk).exists():
        raise ValueError(f"run {run.pk} does not count: only finished evaluations and imports do")
    seq, later = labels_seq(), runs_after(run)
    again = MisalignmentCount.objects.filter(run=run).exists()
    differing = people_answers(run).filter(ANSWERED_OTHERWISE, last_word(later) if again else Q())
    for chats in _pieces(run):
        _find(run, differing.filter(chats))
    _reopen(run, differing)
    _settle_by_labels()
    _settle_by(run)
    if not again:  # newer runs may have settled what was only found now
        MisalignmentCount.objects.filter(run__in=later).update(seq=-1)
    _looked_through(run, seq, later)


def _looked_through(run: Run, seq: int, later: Sequence[int]) -> None:
    overtaken = bool(later) and not people_answers(run).filter(last_word(later)).exists()
    looked = {"seq": seq, "at": timezone.now(), "overtaken": overtaken}
    MisalignmentCount.objects.update_or_create(run=run, defaults=looked)


def _pieces(run: Run) -> Iterator[Q]:
    """Its chats, in stretches of about `PIECE` verdicts."""
    chats = Verdict.objects.filter(run=run).order_by("chat_id").values_list("chat_id", flat=True)
    after = 0
    while ends := list(chats.filter(chat__gt=after)[PIECE - 1 : PIECE]):
        yield Q(chat__gt=after, chat__lte=ends[0])
        after = ends[0]
    yield Q(chat__gt=after)


def _change(rows: QuerySet[Misalignment], **values: Any) -> None:
    """Change the rows some at a time; each change looks once more whether it is still due."""
    found = list(rows.values_list("pk", flat=True))
    for at in range(0, len(found), AT_A_TIME):
        rows.filter(pk__in=found[at : at + AT_A_TIME]).update(**values)


@transaction.atomic
def _find(run: Run, differing: QuerySet[Verdict]) -> None:
    """New items, and a sighting for each item of this run."""
    _insert(
        Misalignment,
        differing.values_list("chat_id", "criterion_id"),
        ("chat", "criterion"),
        {"cause": "", "note": "", "state": _State.OPEN.value, "newest_run": run.pk}
        | {"closed_by": "", "returned": False, "revision": 0},
    )
    same = Misalignment.objects.filter(chat=OuterRef("chat"), criterion=OuterRef("criterion"))
    people = Case(When(value=True, then=Value(False)), default=Value(True))
    seen = differing.annotate(item=Subquery(same.values("pk")[:1]), said=people)
    _insert(
        Sighting,
        seen.values_list("item", "said", "value"),
        ("misalignment", "human", "judge"),
        {"run": run.pk},
    )


def _insert(
    model: type[models.Model], rows: QuerySet[Any, Any], names: tuple[str, ...], same: dict[str, Any]
) -> None:
    """INSERT … SELECT of these rows, with the `same` values in each; what is there already stays."""
    select, params = rows.order_by().query.sql_with_params()
    quote, fields = connection.ops.quote_name, {field.name: field for field in model._meta.concrete_fields}
    columns = ", ".join(quote(str(fields[name].column)) for name in (*names, *same))
    given = ", ".join(["%s"] * len(same))
    table = quote(model._meta.db_table)
    # NB: all of it is compiled by Django, or fixed above; values are parameters.
    sql = f"INSERT INTO {table} ({columns}) SELECT f.*, {given} FROM ({select}) f WHERE true"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(f"{sql} ON CONFLICT DO NOTHING", [*same.values(), *params])


def _of(verdicts: QuerySet[Verdict]) -> Exists:
    return Exists(verdicts.filter(chat=OuterRef("chat"), criterion=OuterRef("criterion")))


def _reopen(run: Run, differing: QuerySet[Verdict]) -> None:
    """This run has the last word on these; those that were closed return with the triage they had."""
    seen = Sighting.objects.filter(run=run).values("misalignment")
    rows = Misalignment.objects.filter(_of(differing), pk__in=seen)
    back = Case(When(cause="", then=Value(_State.OPEN)), default=Value(_State.TRIAGED))
    closed = rows.filter(state=_State.CLOSED, newest_run__lte=run.pk)
    nothing = {"closed_by": "", "closed_by_version": None, "closed_at": None}
    _change(closed, state=back, returned=True, newest_run=run, **nothing)
    _change(rows.filter(newest_run__lt=run.pk), newest_run=run)


def _settle_by_labels() -> None:
    """Close where people's answer is the judge's by now."""
    alike = _of(people_answers(OuterRef("newest_run")).filter(ANSWERED_ALIKE))
    left = Misalignment.objects.exclude(state=_State.CLOSED)
    _close(left.filter(alike), closed_by=_ClosedBy.LABEL)


def _settle_by(run: Run) -> None:
    """Close where another judge says what people say."""
    asked = JudgePrompt.objects.filter(criterion=OuterRef("criterion"))
    before = asked.filter(judge=OuterRef("newest_run__judge")).values("prompt_version__number")
    by = asked.filter(judge=run.judge_id)
    alike = _of(people_answers(run).filter(ANSWERED_ALIKE))
    left = Misalignment.objects.exclude(state=_State.CLOSED)
    left = left.filter(alike, newest_run__lt=run.pk).exclude(newest_run__judge=run.judge_id)
    left = left.annotate(before=Subquery(before[:1]), now=Subquery(by.values("prompt_version__number")[:1]))
    # An older version's run may come later; it settles nothing. Imported judges have no versions.
    newer = left.filter(Q(before=None) | Q(now=None) | Q(now__gte=F("before")))
    version = Subquery(by.values("prompt_version")[:1])
    closer = Case(When(Exists(by), then=Value(_ClosedBy.VERSION)), default=Value(_ClosedBy.JUDGE))
    _close(newer, closed_by=closer, closed_by_version=version, newest_run=run)


def _close(rows: QuerySet[Misalignment], **how: Any) -> None:
    _change(rows, state=_State.CLOSED, closed_at=timezone.now(), **how)


def small_runs_refresh(*, run: int = 0) -> None:
    """Look through a few small runs that wait, or this one, when somebody opens the page."""
    waiting = runs_waiting().filter(pk=run) if run else runs_waiting()
    for one in waiting[:AT_ONCE]:
        if is_small(one):
            misalignments_refresh(one)
