"""Knowledge gaps: disagreements that the judge reached without an article, and True verdicts without one."""

import re
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, OuterRef, Q, TextField
from django.db.models.functions import Cast
from django.db.models.lookups import Contains

from alignment.comparison.queries.scope import Scope
from alignment.reports.queries.chat_lists import Cell, Places, disagreements, listed
from evaluation.engines.core.prose import about
from evaluation.knowledge.core.retrieval import TRUE_WITHOUT_PASSAGE
from evaluation.models.judges import JudgePrompt
from evaluation.models.prompts import SnapshotItem
from evaluation.models.runs import Passage, Run, UnitCall, Verdict
from evaluation.runs.queries.steps import FINAL_ROLES, prose, taken_from
from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.models.rubric import Tier

RETRIEVED, STATIC = "retrieved", "static"
# The words that the prompt asks for, with any decoration that a model adds.
_PATTERN = r"knowledge[^a-z0-9_]{1,6}none([^a-z0-9_]|$)"
_SAYS_NONE = re.compile(_PATTERN, re.IGNORECASE)


MOST_SILENT = 100


@dataclass(frozen=True, slots=True)
class SilentTrue:
    """A True verdict for which no passage was found."""

    chat: int
    chat_id: str
    key: str
    criterion: str


@dataclass(frozen=True, slots=True)
class Gaps:
    """The knowledge gaps that a user may see; `mode` is '' for a judge without knowledge.

    `silent` are the first True verdicts without a passage, whatever raters say; `silent_count` counts all.
    """

    mode: str
    places: Places
    silent: list[SilentTrue]
    silent_count: int


def knowledge_mode(run: Run) -> str:
    """Return the judge's knowledge mode: static, retrieved, or '' without knowledge or if imported."""
    mode = str(run.judge.config.get("knowledge", {}).get("mode", ""))
    return mode if mode in (RETRIEVED, STATIC) else ""


def knowledge_gaps(scope: Scope, run: Run, user: User | AnonymousUser) -> Gaps:
    """List the knowledge gaps of a run, in a constant number of queries."""
    mode = knowledge_mode(run)
    cells = {RETRIEVED: _without_passage, STATIC: _without_article}.get(mode, _none)
    places = disagreements(scope, user, name="gaps", among=lambda: cells(run))
    silent = _silent_trues(scope, run, user) if mode == RETRIEVED else []
    return Gaps(mode, places, silent[:MOST_SILENT], len(silent))


def _silent_trues(scope: Scope, run: Run, user: User | AnonymousUser) -> list[SilentTrue]:
    """Return the True verdicts without a passage on chats that lists show the user, in the run's order."""
    # As text: SQLite cannot search in JSON lists.
    flagged = Contains(Cast("flags", TextField()), f'"{TRUE_WITHOUT_PASSAGE}"')
    rows = Verdict.objects.filter(flagged, run=run, value=True, chat__in=scope.chat_ids)
    names = {row.key: row.name for row in scope.criteria}
    rows = rows.filter(criterion__key__in=names).order_by("unit", "criterion__position")
    found = [
        SilentTrue(chat, chat_id, key, names[key])
        for chat, chat_id, key in rows.values_list("chat_id", "chat__external_id", "criterion__key")
    ]
    allowed = set(listed([one.chat_id for one in found], scope, user))
    return [one for one in found if one.chat_id in allowed]


def _none(run: Run) -> set[Cell]:
    return set()


def _readers(run: Run) -> set[str]:
    """Return the keys of criteria that read articles, and of all criteria of tier context."""
    reads = SnapshotItem.objects.filter(snapshot=run.judge.snapshot_id or 0, criterion=OuterRef("criterion"))
    asked = JudgePrompt.objects.filter(Q(criterion__tier=Tier.CONTEXT) | Exists(reads), judge=run.judge)
    return set(asked.values_list("criterion__key", flat=True))


def _without_passage(run: Run) -> set[Cell]:
    """Return the cells whose verdict had no retrieved passage."""
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


def _without_article(run: Run) -> set[Cell]:
    """Return the cells whose verdict comes from an answer with `knowledge: none`."""
    groups, readers = run.judge.config["groups"], _readers(run)
    deciding = [FINAL_ROLES[group["engine"]] for group in groups]
    keys = [[entry[0] for entry in group["criteria"]] for group in groups]
    labelled = Consensus.objects.filter(chat=OuterRef("unit__chat"))  # only labelled chats can disagree
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
    """Return the window and the sample that each verdict on a labelled cell comes from."""
    labelled = Consensus.objects.filter(chat=OuterRef("chat"), criterion=OuterRef("criterion"))
    verdicts = Verdict.objects.filter(Exists(labelled), run=run, criterion__key__in=readers)
    rows = verdicts.select_related("chat", "criterion").only("flags", "chat__external_id", "criterion__key")
    return {(row.chat.external_id, row.criterion.key): taken_from(row) for row in rows}
