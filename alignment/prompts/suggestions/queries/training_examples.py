"""Train chats on which consensus and champion differ: the material for a new prompt."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, OuterRef, QuerySet

from alignment.comparison.queries.latest_verdicts import latest_verdicts
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
class TrainDisagreement:
    """The newest verdict on a train chat, which differs from the consensus."""

    verdict: Verdict
    consensus: bool

    @property
    def judge(self) -> bool:
        """The judge's answer."""
        return not self.consensus


@dataclass(frozen=True, slots=True)
class _CitedOpinion:
    """An opinion with the turns that it cites as evidence."""

    opinion: Opinion
    turns: frozenset[int]


def train_chats(*, user: User | AnonymousUser) -> QuerySet[Chat]:
    """Return train chats that the user can see, without any that is dev or holdout elsewhere, or a copy."""
    members = ChatSetMember.objects.filter(chat=OuterRef("pk"))
    twins = ChatSetMember.objects.filter(chat__content_hash=OuterRef("content_hash"), split__in=MEASURED)
    return chats_shown(user=user).filter(Exists(members.filter(split=Split.TRAIN)), ~Exists(twins))


def train_disagreements(
    *, criterion: Criterion, champion: PromptVersion | None, user: User | AnonymousUser
) -> list[TrainDisagreement]:
    """Return disagreements of the newest finished verdicts with the consensus, by chat; three queries."""
    rows = latest_verdicts(criterion=criterion, champion=champion).disagreements
    rows = rows.filter(chat__in=train_chats(user=user).values("pk")).order_by("chat_id")
    disagreements = [TrainDisagreement(row, not row.value) for row in rows.select_related("chat__topic")]
    twins = nearly_measured([one.verdict.chat for one in disagreements])
    return [one for one in disagreements if one.verdict.chat_id not in twins]


def select_disagreements(disagreements: Sequence[TrainDisagreement], *, most: int) -> list[TrainDisagreement]:
    """Return at most `most`: both directions in turn, in each direction one chat of every topic in turn."""
    true = _by_topic([one for one in disagreements if one.consensus])
    false = _by_topic([one for one in disagreements if not one.consensus])
    both = chain.from_iterable(zip_longest(true, false))
    return [one for one in both if one is not None][:most]


def _by_topic(disagreements: Iterable[TrainDisagreement]) -> list[TrainDisagreement]:
    seen: Counter[int] = Counter()
    placed = []
    for one in disagreements:
        topic = one.verdict.chat.topic_id
        placed.append((seen[topic], one.verdict.chat_id, one))
        seen[topic] += 1
    return [one for _, _, one in sorted(placed, key=lambda row: row[:2])]


def disagreements_in_full(
    disagreements: Sequence[TrainDisagreement], *, criterion: Criterion
) -> tuple[Disagreement, ...]:
    """Return the chats with all answers and reasons; constant number of queries."""
    rationales = final_rationales([one.verdict for one in disagreements])
    opinions = _opinions(criterion, [one.verdict.chat_id for one in disagreements])
    return tuple(_in_full(one, rationales, opinions) for one in disagreements)


def _in_full(
    one: TrainDisagreement,
    rationales: Mapping[int, str],
    opinions_by_chat: Mapping[int, list[_CitedOpinion]],
) -> Disagreement:
    verdict = one.verdict
    rationale = verdict.rationale or rationales.get(verdict.pk, "") or verdict.explanation
    opinions = opinions_by_chat.get(verdict.chat_id, [])
    return Disagreement(
        chat=core_chat(verdict.chat),
        people=one.consensus,
        judge=one.judge,
        opinions=tuple(row.opinion for row in opinions),
        rationale=rationale,
        turns=frozenset(cited_turns(rationale)).union(*(row.turns for row in opinions)),
    )


def _opinions(criterion: Criterion, chat_ids: Sequence[int]) -> Mapping[int, list[_CitedOpinion]]:
    """Return by chat the opinions of counted raters, unnamed, and of the lead."""
    opinions: dict[int, list[_CitedOpinion]] = defaultdict(list)
    labels = Label.objects.counted().filter(criterion=criterion, chat__in=chat_ids)
    for label in labels.order_by("chat", "rater"):
        turns = frozenset(int(place["n"]) for place in label.evidence)
        who = f"Rater {len(opinions[label.chat_id]) + 1}"
        opinions[label.chat_id].append(_CitedOpinion(Opinion(who, label.value, label.rationale), turns))
    decided = Adjudication.objects.filter(criterion=criterion, chat__in=chat_ids, replaced_at=None)
    for row in decided:
        opinions[row.chat_id].append(
            _CitedOpinion(Opinion("The lead, who decided", row.value, row.reason), frozenset())
        )
    return opinions


def open_notes(*, criterion: Criterion, user: User | AnonymousUser) -> list[RaterNote]:
    """Return the newest open notes on train chats about unclear points of the criterion."""
    notes = notes_for(user=user).filter(
        kind=RaterNote.Kind.UNCLEAR, criterion=criterion, settled_at=None, chat__in=train_chats(user=user)
    )
    rows = list(notes.select_related("chat"))
    twins = nearly_measured([row.chat for row in rows])
    return [row for row in rows if row.chat_id not in twins][:MOST_NOTES]
