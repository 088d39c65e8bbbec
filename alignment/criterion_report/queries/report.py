"""The criterion report: the criterion's entry of the report, and its details."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, F, Q
from numpy.typing import NDArray

from alignment.comparison.core.codes import Codes
from alignment.comparison.queries.answers import Chats, columns_of, covered_chats, labels_of, report_data
from alignment.comparison.queries.cached_documents import cached_document, pin_of
from alignment.comparison.queries.requested_scope import own_chats
from alignment.comparison.queries.scope import Scope
from alignment.criterion_report.core import (
    by_part,
    length_bins,
    length_range,
    probabilities,
    rater_comparison,
)
from alignment.criterion_report.core.parts import Part
from alignment.models.reports import Report
from alignment.prompts.queries.version_chart import VersionChart, chart_rows, places_of, version_chart
from alignment.prompts.queries.version_metrics import VersionMetrics
from alignment.prompts.queries.versions import VersionRow, version_rows, with_figures
from alignment.rater_quality.core import Answers
from alignment.rater_quality.queries.answers import CODE
from alignment.reports.queries.reports import POLICY, SEED
from alignment.reports.queries.shown import report_now
from alignment.statistics.alt_test import MINIMUM_RATERS
from alignment.statistics.label_needs import LabelCounts
from evaluation.models.runs import Verdict
from labeling.models.chats import Split, Topic
from labeling.models.labels import Consensus
from labeling.models.people import Rater, User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import reads_holdout

BODY_VERSION = 5
HEAD = ("run", "set", "split", "topic", "since", "until", "against", "judge", "chats", "generated_at")
PARTS = ("topics", "messages", "people", "probabilities")
STILL_YOURS = "opens once you have labelled your own chats of this set"
NO_ONE_ANSWER = "each chat has several human answers: choose the consensus or one rater as ground truth"
FOR_LEADS = "results of single raters are for leads"
EVERY_SPLIT = frozenset([*Split.values, ""])


@dataclass(frozen=True)
class CriterionReport:
    """The JSON document, and the chart of prompt versions on its page."""

    document: dict[str, Any]
    criterion: Criterion
    versions: VersionChart


def criterion_report(scope: Scope, key: str, *, user: User | AnonymousUser) -> CriterionReport | None:
    """Return the report on one criterion; None if the run has no such criterion.

    `criterion` is its entry of the alignment report. The details (topics, lengths, raters, probabilities)
    exclude holdout chats for users who cannot see them. Users with own chats of the run left to label get no
    details. Everything is computed once for the same answers, in a constant number of queries.

    Raises UnknownRater if the ground truth is a rater without labels on these chats.
    """
    criterion = next((row for row in scope.criteria if row.key == key), None)
    if criterion is None:
        return None
    report = report_now(scope)
    entry = next(row for row in report["criteria"] if row["key"] == key)
    versions = _versions(criterion, scope, user)
    document = {
        **{name: report[name] for name in HEAD},
        "criterion": entry,
        **_parts(replace(scope, only=key), user),
        "versions_on": versions.place.words if versions.place else None,
        "versions": [_version(row, one) for row, one in versions.rows],
        "policy": report["policy"],
        "bootstrap": report["bootstrap"],
    }
    return CriterionReport(document, criterion, versions)


# ---------- details ----------


def _parts(scope: Scope, user: User | AnonymousUser) -> dict[str, Any]:
    """Return topics, lengths, raters and probabilities; `undefined` has the reasons for missing ones."""
    visible = _visible(scope, user)
    if visible is None:
        return {**dict.fromkeys(PARTS), "parts_on": None, "undefined": dict.fromkeys(PARTS, STILL_YOURS)}
    body = _stored(visible)
    undefined = dict.fromkeys((part for part in PARTS if body[part] is None), NO_ONE_ANSWER)
    if not user.has_perm("labeling.manage_labeling"):
        body |= {"people": body["people"] | {"raters": None, "pairs": None}}
        undefined |= dict.fromkeys(("people.raters", "people.pairs"), FOR_LEADS)
    return _named(body) | {"undefined": undefined}


def _visible(scope: Scope, user: User | AnonymousUser) -> Scope | None:
    """Return the chats that count in details for this user; None while some are theirs to label."""
    if own_chats(scope, user=user).chats:
        return None
    return scope if reads_holdout(user=user) else replace(scope, without_holdout=EVERY_SPLIT)


def _stored(scope: Scope) -> dict[str, Any]:
    """Return the details with the ids of raters and topics; stored once the run has finished."""
    if scope.run is None or scope.run.finished_at is None:
        return _body(scope)
    pin = pin_of(scope, Report.Kind.CRITERION.value, BODY_VERSION, SEED)
    stored = cached_document(
        scope, kind=Report.Kind.CRITERION, pin=pin, policy=POLICY.version, body=lambda: _body(scope)
    )
    return dict(stored.body)


def _body(scope: Scope) -> dict[str, Any]:
    chats, (criterion,) = covered_chats(scope), report_data(scope).criteria
    judge = criterion.judge
    assert judge is not None  # noqa: S101  a run's report
    body = {"parts_on": len(chats.external_ids), "people": _raters(scope, chats, judge)}
    if scope.each_rater:
        return {**dict.fromkeys(PARTS), **body}
    rows = list(scope.members.values_list("chat__topic_id", "chat__message_count"))
    topics, messages = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    ids, places = np.unique(topics, return_inverse=True)
    return body | {
        "topics": _by_topic(by_part(criterion.human, judge, places, chats.clusters), ids),
        "messages": [
            {"messages": length_range(part.place), **part.as_json()}
            for part in by_part(criterion.human, judge, length_bins(messages), chats.clusters)
        ],
        "probabilities": probabilities(criterion.human, _p_true(scope, chats)),
    }


def _by_topic(parts: list[Part], ids: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Return the topics with the most chats first."""
    ordered = sorted(parts, key=lambda part: -part.table.n)
    return [{"topic": int(ids[part.place]), **part.as_json()} for part in ordered]


def _raters(scope: Scope, chats: Chats, judge: Codes) -> dict[str, Any]:
    """Return the comparison of raters, with their ids in place of their numbers."""
    rows = columns_of(labels_of(scope), chat="chat_id", rater="rater_id", code=CODE)
    ids, raters = np.unique(rows["rater"], return_inverse=True)
    answers = Answers(chats.places(rows["chat"]), np.zeros(len(rows), dtype=np.int64), raters, rows["code"])
    counts = _label_counts(scope)
    body = rater_comparison(answers, judge, raters=len(ids), counts=counts, seed=SEED).as_json()
    for row in body["raters"]:
        row["rater"] = int(ids[row["rater"]])
    for pair in body["pairs"]:
        pair["raters"] = [int(ids[number]) for number in pair["raters"]]
    return body


def _label_counts(scope: Scope) -> LabelCounts:
    """Count labels by the consensus, as the label plan does, for any ground truth; one query."""
    rows = Consensus.objects.filter(chat__in=scope.chat_ids, criterion__in=scope.criteria)
    true, false = Q(state=Consensus.State.TRUE), Q(state=Consensus.State.FALSE)
    three = Q(given__gte=MINIMUM_RATERS)
    counts = rows.annotate(given=F("n_true") + F("n_false")).aggregate(
        true=Count("pk", filter=true),
        false=Count("pk", filter=false),
        three=Count("pk", filter=three & (true | false)),
        three_false=Count("pk", filter=three & false),
    )
    return LabelCounts(**counts)


def _p_true(scope: Scope, chats: Chats) -> NDArray[np.float64]:
    """Return the stated probability by chat, NaN without one beside a True or False."""
    stated = np.full(len(chats.external_ids), np.nan)
    rows = Verdict.objects.filter(run=scope.run, chat__in=scope.chat_ids, criterion__in=scope.criteria)
    rows = rows.filter(value__isnull=False, p_true__isnull=False)
    by_chat = dict(rows.values_list("chat_id", "p_true").iterator(chunk_size=5000))
    stated[chats.places(np.array(list(by_chat), dtype=np.int64))] = list(by_chat.values())
    return stated


def _named(body: dict[str, Any]) -> dict[str, Any]:
    """Replace the ids by names; two queries."""
    comparison = body["people"]
    raters = [row["rater"] for row in comparison["raters"] or ()]
    names = dict(Rater.objects.filter(pk__in=raters).values_list("pk", "name"))
    topics = Topic.objects.in_bulk([row["topic"] for row in body["topics"] or ()])
    if comparison["raters"] is not None:
        comparison = comparison | {
            "raters": [row | {"rater": names[row["rater"]]} for row in comparison["raters"]],
            "pairs": [
                pair | {"raters": [names[one] for one in pair["raters"]]} for pair in comparison["pairs"]
            ],
        }
    if body["topics"] is None:
        return body | {"people": comparison}
    named = [
        row | {"topic": topics[row["topic"]].key, "name": topics[row["topic"]].name} for row in body["topics"]
    ]
    return body | {"people": comparison, "topics": named}


# ---------- prompt versions ----------


def _versions(criterion: Criterion, scope: Scope, user: User | AnonymousUser) -> VersionChart:
    """Return the criterion's prompt versions on the report's set and split."""
    rows = version_rows(criteria=[criterion])[criterion.pk]
    rows = with_figures(rows, of=chart_rows(rows), user=user)
    here = f"{scope.chat_set.pk if scope.chat_set else ''}-{scope.split}"
    return version_chart(rows, [place for place in places_of(rows) if place.value.startswith(here)])


def _version(row: VersionRow, one: VersionMetrics) -> dict[str, Any]:
    return {
        "version": row.number,
        "state": row.state.value,
        "run": one.run.pk,
        "judge": one.run.judge.name,
        "split": one.split or None,
        "n": one.table.n,
        **{name: estimate.as_json() for name, estimate in one.rates.items()},
        "ceiling": one.ceiling,
    }
