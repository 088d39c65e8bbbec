"""Train chats on which people and the champion differ: what a prompt may be written from."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, OuterRef, QuerySet

from alignment.comparison.queries.latest_verdicts import judged
from alignment.prompts.suggestions.core import Disagreement, Opinion
from common.safe_text import cited_turns
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Verdict
from evaluation.prompts.queries.leaks import MEASURED, nearly_measured
from evaluation.runs.queries.chats import core_chat
from evaluation.runs.queries.steps import final_rationales
from labeling.models.chats import Chat, ChatSetMember, Split
from labeling.models.labels import Adjudication, Label, RaterNote
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import chats_shown
from labeling.rating.queries.notes import notes_for

MOST_NOTES = 10


@dataclass(frozen=True, slots=True)
class Parted:
    """The newest verdict on a train chat, which is not what people decided."""

    verdict: Verdict
    people: bool

    @property
    def judge(self) -> bool:
        """What the judge said."""
        return not self.people


@dataclass(frozen=True, slots=True)
class _Said:
    """An opinion, and the turns it names as evidence."""

    opinion: Opinion
    turns: frozenset[int]


def train_chats(*, user: User | AnonymousUser) -> QuerySet[Chat]:
    """The chats shown to the user that are train in a set, and neither they nor their twins anything else."""
    members = ChatSetMember.objects.filter(chat=OuterRef("pk"))
    twins = ChatSetMember.objects.filter(chat__content_hash=OuterRef("content_hash"), split__in=MEASURED)
    return chats_shown(user=user).filter(Exists(members.filter(split=Split.TRAIN)), ~Exists(twins))


def train_disagreements(
    *, criterion: Criterion, champion: PromptVersion | None, user: User | AnonymousUser
) -> list[Parted]:
    """Where the judge's newest finished verdict (`judged`) is not the consensus, by chat; three queries."""
    rows = judged(criterion=criterion, champion=champion).parted
    rows = rows.filter(chat__in=train_chats(user=user).values("pk")).order_by("chat_id")
    found = [Parted(row, not row.value) for row in rows.select_related("chat__topic")]
    twins = nearly_measured([one.verdict.chat for one in found])
    return [one for one in found if one.verdict.chat_id not in twins]


def chosen(found: Sequence[Parted], *, most: int) -> list[Parted]:
    """Up to `most` of them: both directions in turn, within each one chat of every topic before a second."""
    missed = _spread([one for one in found if one.people])
    raised = _spread([one for one in found if not one.people])
    both = chain.from_iterable(zip_longest(missed, raised))
    return [one for one in both if one is not None][:most]


def _spread(found: Iterable[Parted]) -> list[Parted]:
    seen: Counter[int] = Counter()
    placed = []
    for one in found:
        topic = one.verdict.chat.topic_id
        placed.append((seen[topic], one.verdict.chat_id, one))
        seen[topic] += 1
    return [one for _, _, one in sorted(placed, key=lambda row: row[:2])]


def disagreements_in_full(found: Sequence[Parted], *, criterion: Criterion) -> tuple[Disagreement, ...]:
    """The chats with everybody's answers and reasons; the number of queries does not grow with them."""
    rationales = final_rationales([one.verdict for one in found])
    people = _people(criterion, [one.verdict.chat_id for one in found])
    return tuple(_in_full(one, rationales, people) for one in found)


def _in_full(one: Parted, rationales: Mapping[int, str], people: Mapping[int, list[_Said]]) -> Disagreement:
    verdict = one.verdict
    rationale = verdict.rationale or rationales.get(verdict.pk, "") or verdict.explanation
    said = people.get(verdict.chat_id, [])
    return Disagreement(
        chat=core_chat(verdict.chat),
        people=one.people,
        judge=one.judge,
        opinions=tuple(row.opinion for row in said),
        rationale=rationale,
        turns=frozenset(cited_turns(rationale)).union(*(row.turns for row in said)),
    )


def _people(criterion: Criterion, chat_ids: Sequence[int]) -> Mapping[int, list[_Said]]:
    """By chat, what the raters whose labels count and the lead said; raters without their names."""
    found: dict[int, list[_Said]] = defaultdict(list)
    labels = Label.objects.counted().filter(criterion=criterion, chat__in=chat_ids)
    for label in labels.order_by("chat", "rater"):
        turns = frozenset(int(place["n"]) for place in label.evidence)
        who = f"Rater {len(found[label.chat_id]) + 1}"
        found[label.chat_id].append(_Said(Opinion(who, label.value, label.rationale), turns))
    decided = Adjudication.objects.filter(criterion=criterion, chat__in=chat_ids, replaced_at=None)
    for row in decided:
        found[row.chat_id].append(_Said(Opinion("The lead, who decided", row.value, row.reason), frozenset()))
    return found


def open_notes(*, criterion: Criterion, user: User | AnonymousUser) -> list[RaterNote]:
    """The newest open notes that call the criterion unclear, written on train chats."""
    notes = notes_for(user=user).filter(
        kind=RaterNote.Kind.UNCLEAR, criterion=criterion, settled_at=None, chat__in=train_chats(user=user)
    )
    rows = list(notes.select_related("chat"))
    twins = nearly_measured([row.chat for row in rows])
    return [row for row in rows if row.chat_id not in twins][:MOST_NOTES]
