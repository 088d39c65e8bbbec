"""The prompt and criterion versions in use."""

from collections.abc import Collection
from dataclasses import replace

from django.db.models import Max
from django.urls import reverse

from common.search.registry import LONGEST_ID, Hit, Query
from evaluation.models.prompts import Promotion, PromptVersion
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion


def champions(*, criteria: Collection[Criterion]) -> dict[int, PromptVersion]:
    """Return the latest promoted version of each criterion that has one, by criterion id."""
    latest = Promotion.objects.filter(criterion__in=criteria).values("criterion").annotate(last=Max("id"))
    promotions = Promotion.objects.filter(pk__in=[row["last"] for row in latest])
    promotions = promotions.select_related("version__written_for")
    return {promotion.criterion_id: promotion.version for promotion in promotions}


def newest_versions(*, criteria: Collection[Criterion] | Collection[int]) -> dict[int, CriterionVersion]:
    """Return the version in use of each of these criteria (rows or ids), with its criterion, by its id."""
    rows = CriterionVersion.objects.filter(criterion__in=criteria).select_related("criterion")
    rows = rows.order_by("number")
    return {row.criterion_id: row for row in rows}


def next_number(criterion: Criterion) -> int:
    """Return the number of the criterion's next version."""
    last = PromptVersion.objects.filter(criterion=criterion).aggregate(last=Max("number"))["last"]
    return int(last or 0) + 1


def newer_versions(base: PromptVersion) -> list[PromptVersion]:
    """Return the versions saved after this one, oldest first, each with its author."""
    rows = PromptVersion.objects.filter(criterion=base.criterion_id, number__gt=base.number or 0)
    return list(rows.select_related("author").order_by("number"))


def tried_version(*, criterion: Criterion, content_hash: str) -> PromptVersion | None:
    """Return the row of a text that was tried and never saved."""
    unsaved = PromptVersion._base_manager.filter(criterion=criterion, number=None)
    return unsaved.filter(content_hash=content_hash).first()


def version_hits(query: Query, user: User, limit: int) -> list[Hit]:
    """Return the saved prompt versions that match by criterion, number, author or reason, newest first."""
    if not user.has_perm("labeling.see_judge"):
        return []
    about = ("criterion__key", "reason", "author__username")
    rows = PromptVersion.objects.filter(number__isnull=False).select_related("criterion")
    parts = [part for part in query.parts if part.lower() not in ("version", "prompt")]
    numbers = [part.lower().removeprefix("v") for part in parts]
    asked = [int(one) for one in numbers if one.isdecimal() and len(one) < LONGEST_ID]
    words = [part for part, one in zip(parts, numbers, strict=True) if not one.isdecimal()]
    if not words:
        return []
    rows = rows.filter(replace(query, parts=tuple(words)).matches(*about))
    rows = rows.filter(number__in=asked) if asked else rows
    return [
        Hit(
            f"{row.criterion.name}, version {row.number}",
            reverse("alignment:prompt_version", args=[row.criterion.key, row.number]),
            row.reason,
        )
        for row in rows.order_by("-created_at", "-pk")[:limit]
    ]
