"""The dimensions that group criteria; all rubrics of the workspace share them."""

from collections.abc import Sequence

from django.db import IntegrityError, transaction

from common.problems import FieldProblem, shown
from labeling.models.people import User
from labeling.models.rubric import Criterion, Dimension
from labeling.people.services.audit import audit
from labeling.rubric.core.rubric import suggested_key
from labeling.rubric.services.rubric import name_check, next_position

SAME_NAME = "A dimension with the name {} exists already."


@transaction.atomic
def dimension_add(*, name: str, by: User) -> Dimension:
    """Add a dimension after the others; its key comes from its name. Raises FieldProblem."""
    rows = _locked()
    name = name_check(name, current="", seen="")
    _name_is_free(name, rows)
    key = suggested_key(name, taken={row.key for row in rows}, fallback="dimension")
    try:
        with transaction.atomic():
            row = Dimension.objects.create(key=key, name=name, position=next_position(Dimension))
    except IntegrityError:  # the first two dimensions of a workspace, at once
        raise FieldProblem("name", SAME_NAME.format(shown(name))) from None
    audit(actor=by, verb="dimension added", obj=row, key=row.key, name=row.name)
    return row


@transaction.atomic
def dimension_rename(*, dimension: Dimension, name: str, seen: str, by: User) -> Dimension:
    """Rename a dimension, not its key; `seen` is the name that the user saw. Raises FieldProblem."""
    rows = _locked()
    row = next(one for one in rows if one.pk == dimension.pk)
    name = name_check(name, current=row.name, seen=seen)
    if name == row.name:
        return row
    _name_is_free(name, rows)
    audit(actor=by, verb="dimension renamed", obj=row, key=row.key, name={"old": row.name, "new": name})
    row.name = name
    row.save(update_fields=["name"])
    return row


@transaction.atomic
def dimensions_order(*, order: Sequence[int], seen: Sequence[int], by: User) -> bool:
    """
    Put dimensions (ids) into this order; others keep their place. Return whether the order changed.

    `seen` is the order that the user saw. Raises FieldProblem where it is not the order any more.
    """
    rows = _locked()
    if sorted(order) != sorted(seen):
        raise FieldProblem("order", "The new order must hold the same dimensions.")
    now = [row.pk for row in rows if row.pk in set(seen)]
    if now != list(seen):
        raise FieldProblem("order", "Somebody changed the dimensions meanwhile. This is the order now.")
    if now == list(order):
        return False
    by_id, places = {row.pk: row for row in rows}, iter(order)
    ordered = [by_id[next(places)] if row.pk in set(order) else row for row in rows]
    for position, row in enumerate(ordered):
        row.position = position
    Dimension.objects.bulk_update(ordered, ["position"])
    keys = {"old": [row.key for row in rows], "new": [row.key for row in ordered]}
    audit(actor=by, verb="dimensions reordered", obj=by_id[order[0]], order=keys)
    return True


@transaction.atomic
def dimension_remove(*, dimension: Dimension, by: User) -> None:
    """Remove a dimension without criteria. Raises FieldProblem."""
    row = Dimension.objects.select_for_update().get(pk=dimension.pk)
    if count := Criterion.objects.filter(dimension=row).count():
        criteria = "1 criterion" if count == 1 else f"{count} criteria"
        raise FieldProblem("dimension", f"{row.name} has {criteria}, retired ones included: move them first.")
    audit(actor=by, verb="dimension removed", obj=row, key=row.key, name=row.name)
    row.delete()


def _locked() -> list[Dimension]:
    """Return all dimensions in their order; one writer at a time."""
    rows = list(Dimension.objects.select_for_update(no_key=True).order_by("pk"))
    return sorted(rows, key=lambda row: (row.position, row.pk))


def _name_is_free(name: str, rows: Sequence[Dimension]) -> None:
    if any(row.name.casefold() == name.casefold() for row in rows):
        raise FieldProblem("name", SAME_NAME.format(shown(name)))
