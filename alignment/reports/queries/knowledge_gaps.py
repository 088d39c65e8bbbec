"""Disagreements that the judge reached without knowledge: retrieval found nothing, or it names no article."""

import re
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, OuterRef, Q

from alignment.comparison.queries.scope import Scope
from alignment.reports.queries.chat_lists import Cell, Places, disagreements
from evaluation.engines.core.prose import about
from evaluation.models.judges import JudgePrompt
from evaluation.models.prompts import SnapshotItem
from evaluation.models.runs import Passage, Run, UnitCall, Verdict
from evaluation.runs.queries.steps import FINAL_ROLES, prose, taken_from
from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.models.rubric import Tier

RETRIEVED, STATIC = "retrieved", "static"
# As the prompt asks a rationale to say it, whatever decoration a model puts around the words.
_PATTERN = r"knowledge[^a-z0-9_]{1,6}none([^a-z0-9_]|$)"
_SAYS_NONE = re.compile(_PATTERN, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Gaps:
    """The disagreements without knowledge that a user may see; `mode` is '' where the judge reads none."""

    mode: str
    found: Places


def knowledge_mode(run: Run) -> str:
    """How the run's judge reads knowledge: static, retrieved, or '' for not at all and imported judges."""
    mode = str(run.judge.config.get("knowledge", {}).get("mode", ""))
    return mode if mode in (RETRIEVED, STATIC) else ""


def knowledge_gaps(scope: Scope, run: Run, user: User | AnonymousUser) -> Gaps:
    """The gaps of a run; the number of queries depends on nothing."""
    mode = knowledge_mode(run)
    cells = {RETRIEVED: _found_nothing, STATIC: _named_none}.get(mode, _none)
    return Gaps(mode, disagreements(scope, user, name="gaps", among=lambda: cells(run)))


def _none(run: Run) -> set[Cell]:
    return set()


def _readers(run: Run) -> set[str]:
    """The keys of the criteria that may read articles, or ought to: those of tier context."""
    reads = SnapshotItem.objects.filter(snapshot=run.judge.snapshot_id or 0, criterion=OuterRef("criterion"))
    asked = JudgePrompt.objects.filter(Q(criterion__tier=Tier.CONTEXT) | Exists(reads), judge=run.judge)
    return set(asked.values_list("criterion__key", flat=True))


def _found_nothing(run: Run) -> set[Cell]:
    """Verdicts for which no passage was found."""
    shown = Passage.objects.filter(unit=OuterRef("unit"), criterion=OuterRef("criterion"))
    labelled = Consensus.objects.filter(chat=OuterRef("chat"), criterion=OuterRef("criterion"))
    verdicts = Verdict.objects.filter(
        ~Exists(shown),
        Exists(labelled),
        run=run,
        criterion__key__in=_readers(run),
        unit__isnull=False,
        state=Verdict.State.READ,
        value__isnull=False,
    )
    return set(verdicts.values_list("chat__external_id", "criterion__key"))


def _named_none(run: Run) -> set[Cell]:
    """Chats and criteria whose verdict was taken from an answer that says `knowledge: none`."""
    groups, readers = run.judge.config["groups"], _readers(run)
    deciding = [FINAL_ROLES[group["engine"]] for group in groups]
    keys = [[entry[0] for entry in group["criteria"]] for group in groups]
    labelled = Consensus.objects.filter(chat=OuterRef("unit__chat"))  # few of many: others cannot disagree
    answers = UnitCall.objects.filter(
        Exists(labelled), unit__run=run, role__in=set(deciding), call__reply__iregex=_PATTERN
    ).values_list("unit__chat__external_id", "unit__group", "role", "window", "sample", "call__reply")
    places = _taken_from(run, readers)
    return {
        (chat, key)
        for chat, group, role, window, sample, reply in answers.iterator(chunk_size=1000)
        if role == deciding[group]
        for key in readers.intersection(keys[group])
        if places.get((chat, key)) == (window, sample)
        and _SAYS_NONE.search(about(key, text=prose(reply), keys=keys[group]))
    }


def _taken_from(run: Run, readers: set[str]) -> dict[Cell, tuple[int, int]]:
    """The window and the sample that each verdict on a labelled cell was taken from."""
    labelled = Consensus.objects.filter(chat=OuterRef("chat"), criterion=OuterRef("criterion"))
    verdicts = Verdict.objects.filter(Exists(labelled), run=run, criterion__key__in=readers)
    rows = verdicts.select_related("chat", "criterion").only("flags", "chat__external_id", "criterion__key")
    return {(row.chat.external_id, row.criterion.key): taken_from(row) for row in rows}
