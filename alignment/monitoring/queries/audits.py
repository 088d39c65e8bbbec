"""The random audit of nightly samples: which nights changed, their counts, and their stored counts."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Case, Count, F, IntegerField, Sum, When
from django.utils import timezone

from alignment.models.audits import AuditCount, AuditNight
from alignment.monitoring.core.audits import AuditCell, AuditGroup, PartAudit, by_run
from common.jsonl import in_batches
from evaluation.day_counts.core import CRITERION, SCALE, Answer, CountedCriterion, Place, Tally
from evaluation.day_counts.queries import CHATS_AT_ONCE, chat_places, counted_criteria, sampled_day
from evaluation.models.judges import JudgePrompt
from evaluation.models.nightly import NightlyRun
from evaluation.models.runs import FINISHED, Verdict
from labeling.models.chats import ChatSetMember, Split
from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.models.rubric import CriterionVersion
from labeling.models.sampling import SampledChat
from labeling.people.queries.visibility import reads_holdout

# The widest page has 26 weeks; labels of older nights no longer change a figure.
OLDEST = timedelta(weeks=27)
VALUES: Mapping[str, bool | None] = {"true": True, "false": False, "na": None}
_CODES = {"true": 1, "false": 2, "na": 3, "unresolved": 4}


@dataclass(frozen=True, slots=True)
class NightLabels:
    """What a night's counts are made from, in short; `fingerprint` changes with any of it."""

    draw: int
    run: int
    fingerprint: str
    labelled: int
    holdout: int


@dataclass
class NightCounts:
    """The counts of a night as they are stored: `groups`, and `cells` by part."""

    groups: list[list[Any]] = field(default_factory=list)
    cells: dict[str, list[list[Any]]] = field(default_factory=dict)


# ---------- what changed


def night_labels(*, today: date | None = None) -> list[NightLabels]:
    """Return the nights with a labelling job and a finished run; five queries."""
    first = (today or timezone.localdate()) - OLDEST
    nights = NightlyRun.objects.filter(
        run__state__in=FINISHED, draw__job__isnull=False, draw__day__gte=first
    ).order_by("draw__day")
    runs = {draw: (run, at) for draw, run, at in nights.values_list("draw", "run", "run__finished_at")}
    labelled = SampledChat.objects.filter(draw__in=list(runs)).exclude(label_source="")
    chats: dict[int, list[int]] = defaultdict(list)
    for draw, chat in labelled.order_by().values_list("draw", "chat"):
        chats[draw].append(chat)
    code = Case(*(When(state=state, then=n) for state, n in _CODES.items()), output_field=IntegerField())
    answers = Consensus.objects.filter(chat__in=labelled.values("chat")).order_by().values("chat")
    sums = answers.annotate(n=Count("pk"), s=Sum(F("pk") * code)).values_list("chat", "n", "s")
    of_chat = {chat: (n, s) for chat, n, s in sums}
    holdout = _holdout(labelled.values("chat"))
    return [
        NightLabels(
            draw=draw,
            run=run,
            fingerprint=_print(
                [run, at, [(chat, of_chat.get(chat), chat in holdout) for chat in sorted(chats[draw])]]
            ),
            labelled=len(chats[draw]),
            holdout=len(holdout.intersection(chats[draw])),
        )
        for draw, (run, at) in runs.items()
    ]


def _print(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()


def _holdout(chats: Any) -> set[int]:
    members = ChatSetMember.objects.filter(split=Split.HOLDOUT, chat__in=chats)
    return set(members.order_by().values_list("chat", flat=True))


# ---------- counting


def night_counts(night: NightLabels) -> NightCounts:
    """Count a night's judged and labelled chats; the number of queries grows with batches of chats."""
    tally = Tally(_asked_alike(night.run))
    rows = SampledChat.objects.filter(draw=night.draw, audit_probability__isnull=False).order_by("pk")
    values = list(rows.values_list("chat", "label_source", "label_probability", "audit_probability"))
    suspect = {chat: (label or 0.0) > (audit or 0.0) * (1 + 1e-9) for chat, _, label, audit in values}
    labelled = [chat for chat, source, *_ in values if source]
    places: dict[int, Place] = {}
    sampled = sampled_day(night.run)
    for batch in in_batches(suspect, CHATS_AT_ONCE):
        places |= chat_places(batch, sampled=sampled)
    groups = Counter((places[chat].day, places[chat].topic, is_so) for chat, is_so in suspect.items())
    holdout = _holdout(labelled)
    judge, human = _verdicts(night.run, labelled), _answers(labelled)
    cells: dict[str, Counter[tuple[Any, ...]]] = defaultdict(Counter)
    for chat in labelled:
        at = places[chat]
        place = (at.day, at.topic, at.experiment, at.variant, suspect[chat], chat in holdout)
        for part, numbers in _parts(tally, judge.get(chat, ()), human.get(chat, ())).items():
            cells[part][(*place, *numbers)] += 1
    return NightCounts(
        groups=[[day.isoformat(), topic, is_so, n] for (day, topic, is_so), n in groups.items()],
        cells={
            part: [[day.isoformat(), *rest, n] for (day, *rest), n in found.items()]
            for part, found in cells.items()
        },
    )


def _asked_alike(run: int) -> dict[int, CountedCriterion]:
    """Return the run's criteria whose raters answer the question that the judge was asked."""
    criteria = counted_criteria(run)
    newest = CriterionVersion.objects.filter(criterion__in=criteria).order_by("number")
    versions = {row.criterion_id: row for row in newest}
    prompts = JudgePrompt.objects.filter(judge__runs=run).select_related("criterion_version")
    other = {
        row.criterion_id
        for row in prompts
        if row.criterion_id in versions and not row.criterion_version.asks_as(versions[row.criterion_id])
    }
    return {pk: about for pk, about in criteria.items() if pk not in other}


def _verdicts(run: int, chats: Sequence[int]) -> dict[int, list[Answer]]:
    found: dict[int, list[Answer]] = defaultdict(list)
    rows = Verdict.objects.filter(run=run, chat__in=chats).order_by()
    for chat, criterion, state, value in rows.values_list("chat", "criterion", "state", "value"):
        found[chat].append(Answer(criterion, state == Verdict.State.READ, value))
    return found


def _answers(chats: Sequence[int]) -> dict[int, list[Answer]]:
    """Return the consensus by chat; an unresolved one is no label."""
    found: dict[int, list[Answer]] = defaultdict(list)
    rows = Consensus.objects.filter(chat__in=chats, state__in=list(VALUES)).order_by()
    for chat, criterion, state in rows.values_list("chat", "criterion", "state"):
        found[chat].append(Answer(criterion, True, VALUES[state]))
    return found


def _parts(
    tally: Tally, judge: Iterable[Answer], human: Iterable[Answer]
) -> dict[str, tuple[int, int, int, int]]:
    """Return a and y of raters and judge by part; a part counts if raters answered all that was judged."""
    judged = [one for one in judge if one.criterion in tally.criteria]
    asked = {one.criterion for one in judged}
    answered = [one for one in human if one.criterion in asked]
    known = {one.criterion for one in answered}
    by_judge, by_human = tally.parts(judged), tally.parts(answered)
    return {
        part: (*by_human[part], *by_judge[part])
        for part, members in tally.members(asked).items()
        if members <= known and part in by_human and part in by_judge
    }


# ---------- reading


@dataclass(frozen=True)
class Audits:
    """The stored audits of some nights, by part."""

    parts: Mapping[str, PartAudit]

    def of(self, part: str) -> PartAudit:
        """Return the audit of a part; without any label it corrects nothing."""
        return self.parts.get(part) or PartAudit()

    def of_criterion(self, criterion: int) -> PartAudit:
        """Return the audit of a criterion, by its id."""
        return self.of(criterion_part(criterion))


def audits_of(runs: Collection[int], parts: Collection[str], *, user: User | AnonymousUser) -> Audits:
    """Return the stored audits of these runs. Authors get them without holdout chats.

    Two queries, one more for authors: a night where chats have become holdout since it was counted has no
    labels for them until it is counted again.
    """
    whole = reads_holdout(user=user)
    nights = {row.pk: row for row in AuditNight.objects.filter(run__in=list(runs)).order_by("pk")}
    changed = set() if whole else _changed(nights.values())
    groups = by_run(
        AuditGroup(night.run_id, date.fromisoformat(day), topic, suspect, judged)
        for night in nights.values()
        for day, topic, suspect, judged in night.groups
    )
    cells: dict[str, dict[int, list[AuditCell]]] = defaultdict(dict)
    rows = AuditCount.objects.filter(night__in=list(nights), part__in=list(parts)).order_by("night")
    for night, part, stored in rows.values_list("night", "part", "cells"):
        if night not in changed:
            run = nights[night].run_id
            cells[part][run] = [_cell(run, one) for one in stored if whole or not one[5]]
    return Audits({part: PartAudit(groups, found) for part, found in cells.items()})


def night_stamps(runs: Collection[int], *, user: User | AnonymousUser) -> dict[int, Any]:
    """Return by run what changes with its audit as this user gets it; one query, one more for authors."""
    whole = reads_holdout(user=user)
    nights = list(AuditNight.objects.filter(run__in=list(runs)).defer("groups"))
    changed = set() if whole else _changed(nights)
    return {row.run_id: (row.pk, row.counted_at, whole, row.pk in changed) for row in nights}


def _cell(run: int, stored: Sequence[Any]) -> AuditCell:
    day, topic, experiment, variant, suspect, _, human_a, human_y, judge_a, judge_y, chats = stored
    numbers = (human_a, human_y / SCALE, judge_a, judge_y / SCALE)
    return AuditCell(run, date.fromisoformat(day), topic, experiment, variant, suspect, *numbers, chats)


def _changed(nights: Iterable[AuditNight]) -> set[int]:
    """Return the nights of which the number of holdout chats is no longer the counted one."""
    stored = {row.draw_id: row for row in nights}
    labelled = SampledChat.objects.filter(draw__in=list(stored)).exclude(label_source="")
    secret = labelled.filter(chat__memberships__split=Split.HOLDOUT).order_by().values("draw")
    now = dict(secret.annotate(n=Count("chat", distinct=True)).values_list("draw", "n"))
    return {row.pk for draw, row in stored.items() if row.holdout != now.get(draw, 0)}


def criterion_part(criterion: int) -> str:
    """Return the name of a criterion's part."""
    return f"{CRITERION}{criterion}"
