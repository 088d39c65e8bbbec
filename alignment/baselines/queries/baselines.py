"""Baselines of a run: predictions are cached by chat set, the comparison with the judge by run."""

from collections.abc import Callable
from dataclasses import dataclass
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
    finding,
    out_of_fold,
    sampled_chats,
)
from alignment.comparison.core.codes import Clusters
from alignment.comparison.queries.answers import covered_chats, report_data, run_codes
from alignment.comparison.queries.cached_documents import cached_document, ids_hash, known_body, pin_of
from alignment.comparison.queries.scope import Scope
from alignment.models.baselines import BaselineTraining
from alignment.models.reports import Report
from alignment.reports.queries.reports import POLICY, SEED
from alignment.statistics.intervals import RESAMPLES
from labeling.chats.core.splits import Candidate, related_chats
from labeling.models.chats import Chat
from labeling.models.rubric import Criterion

ANSWERS_VERSION = 1
COMPARISON_VERSION = 2
SMALL_CHATS, SMALL_CHARACTERS = 300, 1_000_000
# HumanCode and JudgeCode share the codes of True and False.
_TRUE, _FALSE = 0, 1


@dataclass(frozen=True)
class Baselines:
    """The comparison, or the training that it waits for, or the reason for neither."""

    body: dict[str, Any] | None = None
    training: BaselineTraining | None = None
    reason: str = ""


@dataclass(frozen=True)
class Part(Scope):
    """The chats and criteria of another scope, with or without its run; limited to `only_chats` if set."""

    of: Scope | None = None
    only_chats: tuple[int, ...] | None = None

    @property
    def members(self) -> QuerySet[Any]:
        """Member rows of the chats, in the set's order."""
        rows = self._whole.members
        return rows if self.only_chats is None else rows.filter(chat__in=self.only_chats)

    @property
    def is_whole_run(self) -> bool:
        """Always False: some chats may be excluded."""
        return False

    @property
    def criteria(self) -> list[Criterion]:
        """Criteria of the other scope."""
        return self._whole.criteria

    @property
    def _whole(self) -> Scope:
        assert self.of is not None  # noqa: S101  every part is one of something
        return self.of


def without_run(scope: Scope) -> Part:
    """The same chats and criteria without the run: human answers do not depend on the judge."""
    return Part(scope.chat_set, None, scope.split, scope.against, of=scope)


def answers_pin(scope: Scope) -> str:
    """Pin of the predictions for a run's scope; depends on labels and chats, not on the run."""
    return pin_of(without_run(scope), "words", ANSWERS_VERSION, SEED)


def answers_document(
    scope: Scope, *, beat: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, Any]:
    """Body of the bag of words' predictions on the scope's chats, known or trained now, which takes seconds.

    `beat(done, total)` is called with the number of learned criteria. Raises UnknownRater, and any exception
    of `beat`.
    NB: the body contains labels. Show comparisons, never this document.
    """
    part = without_run(scope)
    document = cached_document(
        part,
        kind=Report.Kind.BASELINES,
        pin=answers_pin(scope),
        policy=POLICY.version,
        body=lambda: _answers_body(part, beat),
        # Runs over the set may have different chats.
        options=["words", ids_hash(part.members.values_list("chat_id", flat=True))],
    )
    return dict(document.body)


def is_small(scope: Scope) -> bool:
    """Whether training takes about a second, short enough for a request."""
    chats = Chat.objects.filter(pk__in=scope.chat_ids).aggregate(n=Count("pk"), size=Sum("char_count"))
    return chats["n"] <= SMALL_CHATS and (chats["size"] or 0) <= SMALL_CHARACTERS


def known_comparison(scope: Scope) -> dict[str, Any] | None:
    """The comparison of a finished run if it is stored or remembered."""
    if scope.run is None or scope.run.finished_at is None:
        return None
    return known_body(_comparison_pin(scope))


def comparison(scope: Scope, answers: dict[str, Any]) -> dict[str, Any]:
    """The comparison, computed from the body of these predictions; once if the run is finished."""
    if scope.run is None or scope.run.finished_at is None:
        return _comparison_body(scope, answers)
    stored = cached_document(
        scope,
        kind=Report.Kind.BASELINES,
        pin=_comparison_pin(scope),
        policy=POLICY.version,
        body=lambda: _comparison_body(scope, answers),
    )
    return dict(stored.body)


def _comparison_pin(scope: Scope) -> str:
    return pin_of(scope, "baselines", ANSWERS_VERSION, COMPARISON_VERSION, SEED)


# ---------- the bag of words ----------


def _answers_body(part: Part, beat: Callable[[int, int], None]) -> dict[str, Any]:
    data = report_data(part)
    human = {one.spec.key: _plain(one.human) for one in data.criteria}
    ids = list(part.members.values_list("chat_id", flat=True))
    places = np.empty(0, dtype=np.int64)
    if human:
        places = sampled_chats(list(human.values()), seed=SEED, most=MOST_CHATS)
    chosen = [ids[place] for place in places]
    labelled = _labelled(chosen, {key: codes[places] for key, codes in human.items()})
    done = iter(range(len(human)))
    predictions = out_of_fold(labelled, seed=SEED, beat=lambda: beat(next(done), len(human)))
    return {
        "chats": chosen,
        "answered": int(np.any([codes >= 0 for codes in human.values()], axis=0).sum()) if human else 0,
        "criteria": {
            key: {
                "people": labelled.human[key].tolist(),
                "words": one.answers.tolist(),
                "folds": one.folds,
                "reason": one.reason,
            }
            for key, one in predictions.items()
        },
    }


def _plain(codes: Codes) -> Codes:
    """1 True, 0 False, -1 neither, from HumanCode or JudgeCode."""
    return np.select([codes == _TRUE, codes == _FALSE], [1, 0], -1).astype(np.int8)


def _labelled(chosen: list[int], human: dict[str, Codes]) -> Labelled:
    """Texts of these chats, in this order, and groups of near-duplicates and clusters; one query."""
    texts: dict[int, str] = {}
    candidates: dict[int, Candidate] = {}
    columns = ("pk", "messages", "content_hash", "near_hash", "cluster")
    rows = Chat.objects.filter(pk__in=chosen).values_list(*columns)
    for pk, messages, content_hash, near_hash, cluster in rows.iterator(chunk_size=200):
        texts[pk] = _text(messages)
        candidates[pk] = Candidate(str(pk), content_hash, near_hash, cluster=cluster)
    groups = related_chats([candidates[pk] for pk in chosen])
    group_of = {int(one.external_id): number for number, group in enumerate(groups) for one in group}
    return Labelled([texts[pk] for pk in chosen], [group_of[pk] for pk in chosen], human)


def _text(messages: list[dict[str, Any]]) -> str:
    """The chat as one text with roles, up to `MOST_CHARACTERS`."""
    lines, length = [], 0
    for message in messages:
        line = f"{message['role']}: {message['content']}"[:MOST_CHARACTERS]
        lines.append(line)
        length += len(line)
        if length > MOST_CHARACTERS:
            break
    return "\n".join(lines)


# ---------- comparison ----------


def _comparison_body(scope: Scope, answers: dict[str, Any]) -> dict[str, Any]:
    part = Part(
        scope.chat_set,
        scope.run,
        scope.split,
        scope.against,
        of=scope,
        only_chats=tuple(answers["chats"]),
    )
    chats = covered_chats(part)
    codes = run_codes(scope.run, part, chats)
    criteria = [
        _compared(row.key, codes[row.pk], answers["criteria"][row.key], chats.clusters)
        for row in scope.criteria
    ]
    return {
        **scope.as_json(),
        "generated_at": timezone.now().isoformat(),
        "answered": answers["answered"],
        "used": len(answers["chats"]),
        "bootstrap": {"seed": SEED, "resamples": RESAMPLES},
        **_keys_by_result(criteria),
        "criteria": [one.as_json() for one in criteria],
    }


def _compared(key: str, judge: Codes, answers: dict[str, Any], clusters: Clusters) -> Comparison:
    human, words = (np.array(answers[name], dtype=np.int8) for name in ("people", "words"))
    predictions = OutOfFold(words, answers["folds"], answers["reason"])
    return compare(key, human=human, judge=_plain(judge), words=predictions, seed=SEED, clusters=clusters)


def _keys_by_result(criteria: list[Comparison]) -> dict[str, list[str]]:
    """Keys of criteria on which the judge beats both baselines, does not, or cannot be compared."""
    both = {one.key: {finding(one.over_majority), finding(one.over_words)} for one in criteria}
    unknown = [
        key for key, findings in both.items() if findings <= {None, Finding.BEATS} and None in findings
    ]
    beats = [key for key, findings in both.items() if findings == {Finding.BEATS}]
    not_beaten = [key for key in both if key not in unknown and key not in beats]
    return {"beats_both": beats, "not_beaten": not_beaten, "not_compared": unknown}
