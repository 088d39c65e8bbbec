"""Summary of the chats and labels of a report; cached, so that no page reads all of them."""

from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Count, QuerySet

from alignment.comparison.core.codes import CONSENSUS
from alignment.comparison.queries.answers import labels_of, rater_ids
from alignment.comparison.queries.cached_documents import cached_document, pin_of
from alignment.comparison.queries.inclusion_probabilities import sampled_by_verdict
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from labeling.models.chats import Chat
from labeling.models.people import Rater

BODY_VERSION = 4


@dataclass(frozen=True, slots=True)
class ScopeSummary:
    """Summary of a scope.

    Parameters
    ----------
    demo : whether it includes demo chats.
    raters : ids of raters with a label on its chats.
    sampled : number of chats labelled for a sample by verdict.
    clustered, clusters : number of chats that belong to clusters, and of these clusters.
    """

    demo: bool
    raters: tuple[int, ...]
    sampled: int
    clustered: int
    clusters: int

    @property
    def rater_rows(self) -> QuerySet[Rater]:
        """The raters, by name."""
        return Rater.objects.filter(pk__in=self.raters).order_by("name")

    @property
    def rater_kinds(self) -> set[str]:
        """Kinds of the raters who are not human; one query."""
        others = self.rater_rows.exclude(kind=Rater.Kind.PERSON).order_by()
        return set(others.values_list("kind", flat=True).distinct())


def scope_summary(scope: Scope) -> ScopeSummary:
    """Summary of a scope, cached by its chats and labels; computed each time for an unfinished run."""
    if scope.against != CONSENSUS:  # the summary does not depend on it
        scope = replace(scope, against=CONSENSUS)
    if scope.run is not None and scope.run.finished_at is None:
        body = _body(scope)
    else:
        pin = pin_of(scope, Report.Kind.COVERED.value, BODY_VERSION)
        body = cached_document(scope, kind=Report.Kind.COVERED, pin=pin, body=lambda: _body(scope)).body
    return ScopeSummary(
        body["demo"], tuple(body["raters"]), body["drawn"], body["clustered"], body["clusters"]
    )


def _body(scope: Scope) -> dict[str, Any]:
    demo = Chat.objects.filter(pk__in=scope.chat_ids, origin=Chat.Origin.DEMO)
    clustered = Chat.objects.filter(pk__in=scope.chat_ids).exclude(cluster="")
    return {
        "demo": demo.exists(),
        "raters": rater_ids(scope),
        "drawn": sampled_by_verdict(labels_of(scope)),
        **clustered.aggregate(clustered=Count("pk"), clusters=Count("cluster", distinct=True)),
    }
