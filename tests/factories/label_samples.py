"""Runs with few labels, and samples of more."""

from typing import Any

from django.db.models import F
from django.urls import reverse

from alignment.comparison.queries.scope import Scope
from alignment.label_planning.services.sample_preview import SampleRequest
from labeling.models.labels import Consensus, Label, LabelRevision
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import Compared

BARE = range(9, 41)  # positions whose labels on `polite` are taken away


def strip(compared: Compared, numbers: range) -> None:
    names = [f"chat-{n}" for n in numbers]
    about = {"criterion__key": "polite", "chat__external_id__in": names}
    LabelRevision.objects.filter(label__in=Label.objects.filter(**about)).delete()
    Label.objects.filter(**about).delete()
    Consensus.objects.filter(**about).delete()
    Criterion.objects.filter(key="polite").update(labels_seq=F("labels_seq") + 1)


def wish_of(compared: Compared, **changes: object) -> SampleRequest:
    scope = Scope(compared.chat_set, compared.run)
    polite = tuple(row for row in scope.criteria if row.key == "polite")
    given = {"scope": scope, "criteria": polite, "name": "More", "chats": 12, "suspect": 8, "seed": 3}
    return SampleRequest(**given | changes)  # type: ignore[arg-type]


def few_of(compared: Compared, **changes: object) -> SampleRequest:
    """Few enough for four samples, of which none takes another's chats."""
    return wish_of(compared, chats=7, suspect=3, **changes)


def estimate_url(compared: Compared) -> str:
    return reverse("alignment:label_draw_estimate", args=[compared.run.pk])


DRAW: dict[str, Any] = {
    "criteria": "polite",
    "chats": 12,
    "judge_false": 8,
    "name": "November",
    "seed": 1,
    "form_token": "t",
}
