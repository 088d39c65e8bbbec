"""A run's baselines: what a bag of words says is kept with the set, how the judge compares with the run."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from django.db.models import Count, QuerySet, Sum
from django.utils import timezone

from alignment.baselines.core import (
    MOST_CHARACTERS,
    MOST_CHATS,
    Codes,
    Comparison,
    Finding,
    Labelled,
    OutOfFold,
    compare,
    drawn_chats,
    finding,
    out_of_fold,
)
from alignment.comparison.queries.answers import covered_chats, report_data, run_codes
from alignment.comparison.queries.cached_documents import digest, kept, pin_of
from alignment.comparison.queries.scope import Scope
from alignment.models.baselines import BaselineTraining
from alignment.models.reports import Report
from alignment.reports.queries.reports import POLICY, SEED
from alignment.statistics.intervals import RESAMPLES
from evaluation.models.runs import Run
from labeling.chats.core.splits import Candidate, near_duplicates
from labeling.models.chats import Chat
from labeling.models.rubric import Criterion

ANSWERS_VERSION = 1
COMPARISON_VERSION = 1
SMALL_CHATS, SMALL_CHARACTERS = 300, 1_000_000
# People and judge both have True as code 0 and False as code 1.
_TRUE, _FALSE = 0, 1


@dataclass(frozen=True)
class Baselines:
    """The comparison (docs/reports.md), or the training that it waits for, or why there is none."""

    body: dict[str, Any] | None = None
    training: BaselineTraining | None = None
    reason: str = ""


@dataclass(frozen=True)
class Part(Scope):
    """Another scope's chats and criteria, with its run or without; only some of its chats where named."""

    of: Scope | None = None
    only_chats: tuple[int, ...] | None = None

    @property
    def members(self) -> QuerySet[Any]:
        """The rows that say which chats are covered, in the set's order."""
        rows = self._whole.members
        return rows if self.only_chats is None else rows.filter(chat__in=self.only_chats)

    @property
    def is_whole_run(self) -> bool:
        """Only some of the chats may be covered."""
        return False

    @property
    def criteria(self) -> list[Criterion]:
        """Those of the other scope."""
        return self._whole.criteria

    @property
    def _whole(self) -> Scope:
        assert self.of is not None  # noqa: S101  every part is one of something
        return self.of


def people_alone(scope: Scope) -> Part:
    """The same chats and criteria without the run: what people say there depends on no judge."""
    return Part(scope.chat_set, None, scope.split, scope.against, of=scope)


def part_of(scope: Scope) -> dict[str, Any]:
    """What a scope covers of its run, as JSON; `scope_of` turns it back."""
    days = {name: day and day.isoformat() for name, day in (("since", scope.since), ("until", scope.until))}
    told = {"split": scope.split, "against": scope.against, "topic": scope.topic}
    return told | days | {"without_holdout": sorted(scope.without_holdout)}


def scope_of(run: Run, part: dict[str, Any]) -> Scope:
    """The scope of which `part_of` told."""
    days = {name: part[name] and date.fromisoformat(part[name]) for name in ("since", "until")}
    given = part | days | {"without_holdout": frozenset(part["without_holdout"])}
    return Scope(run.chat_set, run, **given)


def answers_pin(scope: Scope) -> str:
    """Under which the bag of words' answers for a run's scope are kept: labels and chats, not the run."""
    return pin_of(people_alone(scope), "words", ANSWERS_VERSION, SEED)


def stored_answers(pin: str) -> Report | None:
    """The bag of words' answers of this pin, if they are there."""
    return Report.objects.filter(pin=pin).first()


def answers_document(scope: Scope, *, beat: Callable[[int, int], None] = lambda done, total: None) -> Report:
    """
    What the bag of words says of the scope's chats, trained now if it is not stored: seconds of arithmetic.

    Raises UnknownRater, and what `beat` raises; it is told how many criteria are learned, of how many.
    NB: the body holds labels. It is never shown; comparisons are.
    """
    people = people_alone(scope)
    return kept(
        people,
        kind=Report.Kind.BASELINES,
        pin=answers_pin(scope),
        policy=POLICY.version,
        body=lambda: _answers_body(people, beat),
        # Runs over the set may know other chats of it.
        options=["words", digest(people.members.values_list("chat_id", flat=True))],
    )


def is_small(scope: Scope) -> bool:
    """Whether the words may be learned while somebody waits: in about a second."""
    chats = Chat.objects.filter(pk__in=scope.chat_ids).aggregate(n=Count("pk"), size=Sum("char_count"))
    return chats["n"] <= SMALL_CHATS and (chats["size"] or 0) <= SMALL_CHARACTERS


def stored_comparison(scope: Scope) -> dict[str, Any] | None:
    """The comparison of a finished run's judge with the baselines, if it is stored."""
    if scope.run is None or scope.run.finished_at is None:
        return None
    row = Report.objects.filter(pin=_comparison_pin(scope)).first()
    return dict(row.body) if row else None


def comparison(scope: Scope, answers: Report) -> dict[str, Any]:
    """The comparison (docs/reports.md) from these answers; stored once the run is finished."""
    if scope.run is None or scope.run.finished_at is None:
        return _comparison_body(scope, answers.body)
    stored = kept(
        scope,
        kind=Report.Kind.BASELINES,
        pin=_comparison_pin(scope),
        policy=POLICY.version,
        body=lambda: _comparison_body(scope, answers.body),
    )
    return dict(stored.body)


def _comparison_pin(scope: Scope) -> str:
    return pin_of(scope, "baselines", ANSWERS_VERSION, COMPARISON_VERSION, SEED)


# ---------- the bag of words ----------


def _answers_body(people: Part, beat: Callable[[int, int], None]) -> dict[str, Any]:
    data = report_data(people)
    said = {one.spec.key: _plain(one.human) for one in data.criteria}
    ids = list(people.members.values_list("chat_id", flat=True))
    # NB: codes of shape (criteria, chats) even where there is no criterion.
    places = (
        drawn_chats(list(said.values()), seed=SEED, most=MOST_CHATS) if said else np.empty(0, dtype=np.int64)
    )
    chosen = [ids[place] for place in places]
    labelled = _labelled(chosen, {key: codes[places] for key, codes in said.items()})
    done = iter(range(len(said)))
    found = out_of_fold(labelled, seed=SEED, beat=lambda: beat(next(done), len(said)))
    return {
        "chats": chosen,
        "answered": int(np.any([codes >= 0 for codes in said.values()], axis=0).sum()) if said else 0,
        "criteria": {
            key: {
                "people": labelled.people[key].tolist(),
                "words": one.answers.tolist(),
                "folds": one.folds,
                "reason": one.reason,
            }
            for key, one in found.items()
        },
    }


def _plain(codes: Codes) -> Codes:
    """1 True, 0 False, -1 neither, from HumanCode or JudgeCode."""
    return np.select([codes == _TRUE, codes == _FALSE], [1, 0], -1).astype(np.int8)


def _labelled(chosen: list[int], people: dict[str, Codes]) -> Labelled:
    """Texts and near-duplicates of these chats, in this order; one query."""
    texts: dict[int, str] = {}
    candidates: dict[int, Candidate] = {}
    rows = Chat.objects.filter(pk__in=chosen).values_list("pk", "messages", "content_hash", "near_hash")
    for pk, messages, content_hash, near_hash in rows.iterator(chunk_size=200):
        texts[pk] = _text(messages)
        candidates[pk] = Candidate(str(pk), content_hash, near_hash)
    groups = near_duplicates([candidates[pk] for pk in chosen])
    group_of = {int(one.external_id): number for number, group in enumerate(groups) for one in group}
    return Labelled([texts[pk] for pk in chosen], [group_of[pk] for pk in chosen], people)


def _text(messages: list[dict[str, Any]]) -> str:
    """The chat as a judge reads it, who spoke and what, as far as it is read."""
    lines, length = [], 0
    for message in messages:
        line = f"{message['role']}: {message['content']}"[:MOST_CHARACTERS]
        lines.append(line)
        length += len(line)
        if length > MOST_CHARACTERS:
            break
    return "\n".join(lines)


# ---------- the judge beside it ----------


def _comparison_body(scope: Scope, answers: dict[str, Any]) -> dict[str, Any]:
    part = Part(
        scope.chat_set,
        scope.run,
        scope.split,
        scope.against,
        of=scope,
        only_chats=tuple(answers["chats"]),
    )
    codes = run_codes(scope.run, part, covered_chats(part))
    found = [_compared(row.key, codes[row.pk], answers["criteria"][row.key]) for row in scope.criteria]
    return {
        **scope.as_json(),
        "generated_at": timezone.now().isoformat(),
        "answered": answers["answered"],
        "used": len(answers["chats"]),
        "bootstrap": {"seed": SEED, "resamples": RESAMPLES},
        **_named(found),
        "criteria": [one.as_json() for one in found],
    }


def _compared(key: str, judge: Codes, answers: dict[str, Any]) -> Comparison:
    people, words = (np.array(answers[name], dtype=np.int8) for name in ("people", "words"))
    learned = OutOfFold(words, answers["folds"], answers["reason"])
    return compare(key, people=people, judge=_plain(judge), words=learned, seed=SEED)


def _named(found: list[Comparison]) -> dict[str, list[str]]:
    """Keys of the criteria on which the judge beats both, not both, and of those that cannot be compared."""
    both = {one.key: {finding(one.over_majority), finding(one.over_words)} for one in found}
    unknown = [
        key for key, findings in both.items() if findings <= {None, Finding.BEATS} and None in findings
    ]
    beats = [key for key, findings in both.items() if findings == {Finding.BEATS}]
    left = [key for key in both if key not in unknown and key not in beats]
    return {"beats_both": beats, "not_beaten": left, "not_compared": unknown}
