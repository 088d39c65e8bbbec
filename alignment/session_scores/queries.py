"""Session scores of a run: of the whole run, and chat by chat."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet
from numpy.typing import NDArray

from alignment.comparison.core.codes import Codes, CriterionSpec, HumanCode, JudgeCode, ReportData
from alignment.comparison.queries.answers import (
    HUMAN_STATES,
    JUDGE_STATES,
    JUDGE_VALUES,
    VALUES,
    coded,
    columns_of,
    criterion_specs,
    places_in,
    report_data,
)
from alignment.comparison.queries.human_answers import HumanAnswer
from alignment.comparison.queries.requested_scope import own_chats
from alignment.comparison.queries.scope import Scope
from alignment.session_scores.core import (
    NO_HUMAN_SCORE,
    ScoreSummary,
    SessionScore,
    counts_in_score,
    human_scores,
    judge_scores,
    one_session_score,
    score_summary,
    session_scores,
)
from common.jsonl import in_batches
from evaluation.models.runs import RunChat, Verdict
from labeling.models.labels import Consensus, Label
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.people.queries.visibility import chats_hidden
from labeling.people.queries.workspace import subjective_in_session_score

SEED = 20_260_101
CHATS_AT_ONCE = 1000
PARTS = ("partial", "passed", "applicable", "missing", "critical_failed")
# A score's columns are named alike for judge and raters.
COLUMNS = (
    *("chat_id", "split", "session_score", *PARTS),
    *("human_session_score", *(f"human_{name}" for name in PARTS)),
    "subjective_counted",
)
NO_JUDGE_SCORE = "no verdict of True or False on a counted criterion"


# ---------- one chat ----------


@dataclass(frozen=True, slots=True)
class ChatScores:
    """The scores of a chat by judge and raters; `human` is None against each rater.

    `left_out` : names of the subjective criteria that do not count.
    """

    judge: SessionScore
    human: SessionScore | None
    subjective: bool
    left_out: tuple[str, ...] = ()


def chat_scores(
    scope: Scope,
    *,
    versions: dict[int, CriterionVersion],
    human: dict[int, HumanAnswer],
    verdicts: dict[int, Verdict],
) -> ChatScores:
    """Score one chat from its rows, by criterion id; one query.

    `versions` : newest version of each of the scope's criteria. `human`, `verdicts` : without those missing.
    """
    subjective, rows = subjective_in_session_score(), scope.criteria
    specs = [_spec(row, versions[row.pk]) for row in rows]
    judge = [_judge_code(verdicts.get(row.pk)) for row in rows]
    raters = [_human_code(human.get(row.pk)) for row in rows]
    return ChatScores(
        judge=one_session_score(judge, specs, subjective=subjective),
        human=None if scope.each_rater else one_session_score(raters, specs, subjective=subjective),
        subjective=subjective,
        left_out=tuple(
            row.name
            for row, spec in zip(rows, specs, strict=True)
            if not counts_in_score(spec, subjective=subjective)
        ),
    )


def _spec(row: Criterion, version: CriterionVersion) -> CriterionSpec:
    about = row.key, row.dimension.key, row.dimension.name, row.tier
    return CriterionSpec(*about, version.passes_when, row.critical)


def _judge_code(verdict: Verdict | None) -> int:
    if verdict is None:
        return JudgeCode.NONE
    if verdict.state == Verdict.State.READ:
        return JUDGE_VALUES[verdict.value]
    return JUDGE_STATES[Verdict.State(verdict.state)]


def _human_code(answer: HumanAnswer | None) -> int:
    if answer is None:
        return HumanCode.UNLABELLED
    return HUMAN_STATES[Consensus.State(answer.state)]


# ---------- the whole run ----------


@dataclass(frozen=True, slots=True)
class RunScores:
    """The scores of a run's chats by judge and raters; `human` is None against each rater."""

    judge: ScoreSummary
    human: ScoreSummary | None
    chats: int
    subjective: bool
    left_out: tuple[str, ...]

    @property
    def sources(self) -> tuple[ScoreSummary, ...]:
        """The judge's scores, and the raters' if there are any."""
        return (self.judge, self.human) if self.human else (self.judge,)

    @property
    def bins(self) -> list[tuple[str, list[int]]]:
        """Name of each bin, lowest first, and its chats by source."""
        counts = [[one.chats for one in source.bins] for source in self.sources]
        names = [one.name for one in self.judge.bins]
        return [(name, list(chats)) for name, chats in zip(names, zip(*counts, strict=True), strict=True)]


def run_scores(scope: Scope) -> RunScores:
    """Summarize the scores of a run's chats; the number of queries does not depend on chats.

    Raises UnknownRater if the scope's rater gave no label.
    """
    data, subjective = report_data(scope), subjective_in_session_score()
    judge, human = judge_scores(data, subjective=subjective), human_scores(data, subjective=subjective)
    return RunScores(
        judge=score_summary(judge, data.clusters, seed=SEED, reason=NO_JUDGE_SCORE),
        human=None
        if data.each_rater
        else score_summary(human, data.clusters, seed=SEED, reason=NO_HUMAN_SCORE),
        chats=len(data.chat_ids),
        subjective=subjective,
        left_out=_left_out(scope, data, subjective=subjective),
    )


def _left_out(scope: Scope, data: ReportData, *, subjective: bool) -> tuple[str, ...]:
    names = {row.key: row.name for row in scope.criteria}
    specs = (one.spec for one in data.criteria)
    return tuple(names[spec.key] for spec in specs if not counts_in_score(spec, subjective=subjective))


# ---------- chat by chat ----------


@dataclass(frozen=True, slots=True)
class ScoredChat:
    """A chat of a run with its scores; `human` is None against each rater."""

    chat_id: str
    split: str
    judge: SessionScore
    human: SessionScore | None


@dataclass(frozen=True)
class ScoredRun:
    """Criteria and setting that score a run's chats, loaded once."""

    scope: Scope
    specs: Sequence[CriterionSpec]
    subjective: bool

    @classmethod
    def of(cls, scope: Scope) -> "ScoredRun":
        """Load criteria and setting; two queries, and those of the scope's criteria."""
        return cls(scope, criterion_specs(scope), subjective_in_session_score())

    def chats(self, members: Sequence[RunChat]) -> Iterator[ScoredChat]:
        """Score these chats, whose rows come with their `chat`, in two queries."""
        ids = [member.chat_id for member in members]
        judge = session_scores(self._judge(ids), self.specs, subjective=self.subjective)
        human = None
        if not self.scope.each_rater:
            human = session_scores(self._human(ids), self.specs, subjective=self.subjective)
        for place, member in enumerate(members):
            yield ScoredChat(
                chat_id=member.chat.external_id,
                split=member.split,
                judge=judge.at(place),
                human=human.at(place) if human else None,
            )

    def _judge(self, ids: Sequence[int]) -> Codes:
        code = coded("state", JUDGE_STATES, coded("value", JUDGE_VALUES))
        return self._codes(ids, Verdict.objects.filter(run=self.scope.run), code, rest=JudgeCode.NONE)

    def _human(self, ids: Sequence[int]) -> Codes:
        if self.scope.rater:
            labels = Label.objects.counted().filter(rater__name=self.scope.rater)
            return self._codes(ids, labels, coded("value", VALUES), rest=HumanCode.UNLABELLED)
        consensus = Consensus.objects.all()
        return self._codes(ids, consensus, coded("state", HUMAN_STATES), rest=HumanCode.UNLABELLED)

    def _codes(self, ids: Sequence[int], answers: QuerySet[Any], code: Any, *, rest: int) -> Codes:
        """Codes by criterion and chat, shape (criteria, chats); `rest` without an answer."""
        criteria = [row.pk for row in self.scope.criteria]
        found = answers.filter(chat__in=ids, criterion__in=criteria)
        rows: NDArray[Any] = columns_of(found, chat="chat_id", criterion="criterion_id", code=code)
        codes = np.full((len(criteria), len(ids)), rest, dtype=np.int8)
        codes[places_in(criteria, rows["criterion"]), places_in(ids, rows["chat"])] = rows["code"]
        return codes

    def lines(self, members: QuerySet[RunChat]) -> Iterator[dict[str, Any]]:
        """Score these chats as lines of a file, with the names of COLUMNS; two queries per 1,000 chats."""
        rows = members.select_related("chat").only("chat__external_id", "split")
        for batch in in_batches(rows.iterator(CHATS_AT_ONCE), CHATS_AT_ONCE):
            yield from (self.line(one) for one in self.chats(batch))

    def line(self, one: ScoredChat) -> dict[str, Any]:
        """Return the line of one chat."""
        return {
            "chat_id": one.chat_id,
            "split": one.split,
            **_line(one.judge),
            **{f"human_{name}": value for name, value in _line(one.human).items()},
            "subjective_counted": self.subjective,
        }


def _line(score: SessionScore | None) -> dict[str, Any]:
    if score is None:
        return dict.fromkeys(("session_score", *PARTS))
    return {"session_score": score.value, **{name: getattr(score, name) for name in PARTS}}


def listed_members(scope: Scope, *, user: User | AnonymousUser) -> QuerySet[RunChat]:
    """Return the rows of the run's chats whose scores a list shows the user, in the set's order.

    None while lists are closed to a user who still has to label most chats.
    """
    members = RunChat.objects.filter(run=scope.run, chat__in=scope.chat_ids).order_by("pk")
    if own_chats(scope, user=user).closed:
        return members.none()
    for hidden in chats_hidden(user=user):
        members = members.exclude(chat__in=hidden)
    return members
