"""What pages must know of all chats and labels that a report covers; kept, so that no page reads them all."""

from dataclasses import dataclass, replace
from typing import Any

from django.db.models import QuerySet

from alignment.comparison.core.codes import CONSENSUS
from alignment.comparison.queries.answers import labels_of, rater_ids
from alignment.comparison.queries.cached_documents import kept, pin_of
from alignment.comparison.queries.inclusion_probabilities import drawn_by_verdict
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from labeling.models.chats import Chat
from labeling.models.people import Rater

BODY_VERSION = 3


@dataclass(frozen=True, slots=True)
class Covered:
    """`demo`: whether chats written for the demo are covered; `raters`: ids of who gave a label there.

    `drawn`: chats with a label that a draw by verdict had chosen.
    """

    demo: bool
    raters: tuple[int, ...]
    drawn: int

    @property
    def people(self) -> QuerySet[Rater]:
        """The raters as they are now, by name."""
        return Rater.objects.filter(pk__in=self.raters).order_by("name")

    @property
    def rater_kinds(self) -> set[str]:
        """The kinds of those who are not simply people; one query."""
        others = self.people.exclude(kind=Rater.Kind.PERSON).order_by()
        return set(others.values_list("kind", flat=True).distinct())


def covered(scope: Scope) -> Covered:
    """Looked up once for the same chats and labels; of a run that goes on, each time."""
    if scope.against != CONSENSUS:  # whoever the judge is compared with
        scope = replace(scope, against=CONSENSUS)
    if scope.run is not None and scope.run.finished_at is None:
        body = _body(scope)
    else:
        pin = pin_of(scope, Report.Kind.COVERED.value, BODY_VERSION)
        body = kept(scope, kind=Report.Kind.COVERED, pin=pin, body=lambda: _body(scope)).body
    return Covered(body["demo"], tuple(body["raters"]), body["drawn"])


def _body(scope: Scope) -> dict[str, Any]:
    demo = Chat.objects.filter(pk__in=scope.chat_ids, origin=Chat.Origin.DEMO)
    return {"demo": demo.exists(), "raters": rater_ids(scope), "drawn": drawn_by_verdict(labels_of(scope))}
