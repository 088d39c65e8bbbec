"""Undo of an import, as long as nothing depends on what it wrote."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from django.apps import apps
from django.db import models, router, transaction
from django.utils import timezone

from common.jsonl import in_batches
from common.problems import InputProblem
from common.queue import enqueue_row
from labeling.consensus.services.consensus import consensus_refresh
from labeling.models.chats import Chat, Topic
from labeling.models.imports import DataImport, ImportedRow
from labeling.models.labels import Label, LabelRevision
from labeling.models.people import Rater, User
from labeling.models.rubric import Dimension
from labeling.people.services.audit import audit
from labeling.transfer.queries.data_imports import import_kinds

UNDO = "labeling.tasks.undo_import"
ROWS_IN_REQUEST = 4000
ROWS_AT_ONCE = 200
NAMED = 5
# Rows that stay where something else uses them by now; nobody misses them otherwise.
SHARED: tuple[type[models.Model], ...] = (Topic, Rater, Dimension)


def undo_start(*, row: DataImport, by: User) -> bool:
    """Take back all that an import wrote; return False where a worker will do it because it takes long.

    Raises InputProblem where the import is in another state. Where something depends on it or has changed
    since, that is raised too, or found by the worker.
    """
    if is_small(row):
        undo(row=row, by=by)
        return True
    with transaction.atomic():
        row = _done(row)
        row.options |= {DataImport.UNDOING: by.pk}
        row.error = ""
        row.save(update_fields=["options", "error"])
    enqueue_row(UNDO, DataImport.objects.all(), row.pk)
    return False


@transaction.atomic
def undo(*, row: DataImport, by: User) -> None:
    """Take back all that an import wrote in one transaction, and log it.

    Raises InputProblem, with the reason, where something depends on it or has changed since.
    """
    row = _done(row)
    if refusal := undo_refusal(row):
        raise InputProblem(refusal)
    labels = _touched_labels(row)
    for _ in rows_removed(row):
        pass
    for criterion, chats in labels.items():
        consensus_refresh(criterion_ids=[criterion], chat_ids=chats)
    undone(row=row, by=by)


def is_small(row: DataImport) -> bool:
    """Return whether a request has the time to look at all that an import wrote."""
    return not row.rows.all()[ROWS_IN_REQUEST : ROWS_IN_REQUEST + 1].exists()


def _done(row: DataImport) -> DataImport:
    row = DataImport.objects.select_for_update(of=("self",)).get(pk=row.pk)
    if row.state != DataImport.State.DONE:
        raise InputProblem(f"This import is in another state: {row.get_state_display().lower()}.")
    return row


def undone(*, row: DataImport, by: User) -> None:
    """Note and log that nothing is left of an import."""
    counts = {name: row.result.get(name, 0) for name in ("created", "updated")}
    audit(actor=by, verb="import undone", obj=row, kind=row.kind, file=row.file_name, **counts)
    row.options.pop(DataImport.UNDOING, None)
    row.state, row.undone_at, row.undone_by = DataImport.State.UNDONE, timezone.now(), by
    row.save()


def rows_removed(row: DataImport) -> Iterator[int]:
    """Take back what an import wrote, in transactions that others can write between; yield rows of each."""
    while changed := list(row.rows.filter(before__isnull=False).order_by("pk")[:ROWS_AT_ONCE]):
        with transaction.atomic():
            _restore(row, [one.pk for one in changed])
            row.rows.filter(pk__in=[one.pk for one in changed]).delete()
        yield len(changed)
    for model in _models(row):
        created = row.rows.filter(model=model._meta.label_lower, before__isnull=True).order_by("-pk")
        while kept := dict(created.values_list("pk", "object_id")[:ROWS_AT_ONCE]):
            with transaction.atomic():
                _delete(row, model, list(kept.values()))
                row.rows.filter(pk__in=kept).delete()
            yield len(kept)


def undo_refusal(row: DataImport) -> str:
    """Return why an import cannot be undone, "" where it can."""
    if changed := list(_changed(row)):
        names = ", ".join(changed[:NAMED])
        more = f" and {len(changed) - NAMED:,} more" if len(changed) > NAMED else ""
        return f"Changed since the import: {names}{more}."
    used = list(dict.fromkeys(_dependents(row)))
    return f"In use by now: {'; '.join(used)}." if used else ""


def _models(row: DataImport) -> list[type[models.Model]]:
    """Return the models with new rows, those that refer to others first."""
    names = row.rows.filter(before__isnull=True).order_by("model").values_list("model", flat=True).distinct()
    found = [apps.get_model(name) for name in names]
    ordered: list[type[models.Model]] = []
    while found:
        # A model is next when no other one that is left refers to it.
        last = next(
            one for one in found if not any(_refers(other, one) for other in found if other is not one)
        )
        ordered.append(last)
        found.remove(last)
    return ordered


def _derived(row: DataImport, model: type[models.Model]) -> Mapping[str, Any] | None:
    """Return by which fields a row is still as the workspace derived it; None for rows that it does not."""
    return import_kinds()[row.kind].derived.get(model._meta.label_lower)


def _refers(model: type[models.Model], other: type[models.Model]) -> bool:
    return any(field.related_model is other for field in model._meta.get_fields() if field.concrete)


def _created(row: DataImport, model: type[models.Model]) -> Any:
    created = ImportedRow.objects.filter(data_import=row, model=model._meta.label_lower, before__isnull=True)
    return created.values("object_id")


def _relations(model: type[models.Model]) -> Iterator[Any]:
    for relation in model._meta.get_fields(include_hidden=True):
        if relation.auto_created and not relation.concrete and (relation.one_to_many or relation.one_to_one):
            yield relation


def _dependents(row: DataImport) -> Iterator[str]:
    """Yield what refers to new rows, other than new rows, in words."""
    for model in _models(row):
        if model in SHARED:
            continue
        if later := _later(row, model):
            yield f"{later:,} later {model._meta.verbose_name}{'s' * (later > 1)}"
        for relation in _relations(model):
            other = relation.related_model
            if relation.on_delete is models.CASCADE:
                continue
            rows = other._default_manager.filter(**{f"{relation.field.name}__in": _created(row, model)})
            rows = rows.exclude(pk__in=_created(row, other))
            derived = _derived(row, other)
            count = 0 if derived == {} else rows.exclude(**(derived or {"pk": None})).order_by().count()
            if count:
                name = other._meta.verbose_name if count == 1 else other._meta.verbose_name_plural
                yield f"{count:,} {name}"


def _later(row: DataImport, model: type[models.Model]) -> int:
    """Count the versions that were added after those of the import: without them there would be a gap."""
    fields = [one.fields for one in model._meta.constraints if isinstance(one, models.UniqueConstraint)]
    parent = next((names[0] for names in fields if len(names) == 2 and names[1] == "number"), "")
    if not parent:
        return 0
    rows = model._default_manager.filter(pk__in=_created(row, model)).values_list(parent, "number")
    others = model._default_manager.exclude(pk__in=_created(row, model))
    return sum(others.filter(**{parent: pk, "number__gt": number}).count() for pk, number in rows)


def _changed(row: DataImport) -> Iterator[str]:
    """Yield the names of rows that somebody has changed since."""
    for kept, thing in _kept(row, after__isnull=False):
        if thing is None:
            yield f"{kept.model.split('.')[1]} {kept.object_id}"
        elif any(_plain(getattr(thing, name)) != value for name, value in (kept.after or {}).items()):
            yield str(thing)


def _kept(row: DataImport, **filters: Any) -> Iterator[tuple[ImportedRow, models.Model | None]]:
    names = row.rows.filter(**filters).order_by("model").values_list("model", flat=True).distinct()
    for name in list(names):
        model = apps.get_model(name)
        rows = row.rows.filter(model=name, **filters).order_by("pk")
        for batch in in_batches(rows.iterator(), ROWS_AT_ONCE):
            # NB: not the messages of thousands of chats, which nobody needs here.
            fields = {field for one in batch for field in {**(one.after or {}), **(one.before or {})}}
            things = (model._default_manager.only(*_shown_by(model), *fields)).in_bulk(
                [one.object_id for one in batch]
            )
            yield from ((one, things.get(one.object_id)) for one in batch)


def _shown_by(model: type[models.Model]) -> Sequence[str]:
    """Return the fields that name a row of this model."""
    return ("external_id",) if model is Chat else [field.attname for field in model._meta.concrete_fields]


def _restore(row: DataImport, changed: Sequence[int]) -> None:
    """Give changed rows what they held before."""
    for kept, thing in _kept(row, pk__in=changed):
        if thing is None or kept.before is None:
            continue
        fields = {name: cast("models.Field[Any, Any]", thing._meta.get_field(name)) for name in kept.before}
        for name, value in kept.before.items():
            setattr(thing, name, fields[name].to_python(value))
        if isinstance(thing, Label) and kept.after is not None:
            LabelRevision.objects.filter(label=thing, number=kept.after["revision"]).delete()
        thing.save(update_fields=[field.name for field in fields.values()])


def _delete(row: DataImport, model: type[models.Model], ids: Sequence[int]) -> None:
    rows = model._default_manager.filter(pk__in=ids)
    for relation in _relations(model):
        other = relation.related_model
        users = other._default_manager.filter(**{f"{relation.field.name}__in": ids})
        if relation.on_delete is models.CASCADE or (model not in SHARED and _derived(row, other) is not None):
            users.delete()
        elif model in SHARED:
            rows = rows.exclude(pk__in=users.values(relation.field.attname))
    # NB: nothing refers to them, which `delete` would ask once more, row by row.
    rows._raw_delete(router.db_for_write(model))


def _touched_labels(row: DataImport) -> dict[int, set[int]]:
    """Map each criterion with labels of the import to their chats."""
    found: dict[int, set[int]] = {}
    labels = Label.objects.filter(pk__in=row.rows.filter(model="labeling.label").values("object_id"))
    for criterion, chat in labels.values_list("criterion_id", "chat_id").iterator():
        found.setdefault(criterion, set()).add(chat)
    return found


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value
