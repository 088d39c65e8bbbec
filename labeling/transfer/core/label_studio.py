"""Label Studio's exports JSON (whole tasks) and JSON-MIN (a record for each annotation)."""

from collections.abc import Iterable
from typing import Any

from common.jsonl import Fields
from labeling.rating.core.answers import LabelLine
from labeling.transfer.core.answers import DAY, Response, Tally, chat_id_of, flat, labels_of, rater_name
from labeling.transfer.core.mapping import ImportMapping

CHAT_ID = "chat_id"  # the field of the task's data, unless the mapping names another
_MIN = ("annotation_id", "annotator")
# In JSON-MIN Label Studio writes these over fields of the task's data with the same names.
_OVERWRITTEN = frozenset(("id", "created_at", "updated_at", "lead_time", *_MIN))


def label_studio_lines(record: Fields, mapping: ImportMapping, tally: Tally) -> Iterable[list[LabelLine]]:
    """
    Return the labels of a task (JSON) or of an annotation (JSON-MIN), a list per annotation.

    Skipped annotations (`was_cancelled`), drafts and predictions are counted, not imported.

    Raises FieldProblem.
    """
    if any(name in record.data for name in _MIN):
        if mapping.chat_id in _OVERWRITTEN:
            raise record.refuse(
                mapping.chat_id,
                f"is Label Studio’s own {mapping.chat_id} in JSON-MIN, not the chat’s id: "
                "carry the chat’s id in another field of the task’s data, such as chat_id, and map that; "
                "or export as JSON",
            )
        chat_id = chat_id_of(record, mapping.chat_id or CHAT_ID)
        return [labels_of(chat_id, _response(record, record.data, "annotator", mapping), mapping, tally)]
    annotations = [Fields(row, f"annotations[{n}]") for n, row in enumerate(record.items("annotations"))]
    data = Fields(record.mapping("data"), "data")
    for name, what in (("predictions", "predictions of a model"), ("drafts", "drafts")):
        tally.passed[what] += len(record.items(name)) if record.given(name) else 0
    taken = [row for row in annotations if not _skipped(row, tally)]
    responses = [_response(row, _values(row), "completed_by", mapping) for row in taken]
    chat_id = chat_id_of(data, mapping.chat_id or CHAT_ID)
    return [labels_of(chat_id, one, mapping, tally) for one in responses]


def _skipped(annotation: Fields, tally: Tally) -> bool:
    skipped = annotation.given("was_cancelled") and annotation.boolean("was_cancelled")
    tally.passed["skipped annotations"] += skipped
    return skipped


def _values(annotation: Fields) -> dict[str, list[Any]]:
    """Return the answers by control (`from_name`); relations between regions have no control."""
    values: dict[str, list[Any]] = {}
    for n, row in enumerate(annotation.items("result")):
        result = Fields(row, f"{annotation.path}.result[{n}]")
        if result.given("from_name"):
            values.setdefault(result.text("from_name"), []).append(result.mapping("value"))
    return values


def _response(row: Fields, values: dict[str, Any], annotator: str, mapping: ImportMapping) -> Response:
    seconds = row.data.get("lead_time")
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float)):
        raise row.refuse("lead_time", "must be a number of seconds")
    return Response(
        rater=_named(row, values, mapping) or _rater(row, annotator, mapping),
        values=values,
        at=row.moment("updated_at") or row.moment("created_at"),
        # NB: a whole number of 400 digits has no float, so it is limited first.
        seconds=None if seconds is None else float(min(max(0, seconds), DAY)),
        path=row.path,
    )


def _named(row: Fields, values: dict[str, Any], mapping: ImportMapping) -> str:
    """Return the rater that the annotation names itself, by the question of the mapping; "" for none."""
    texts = flat(values.get(mapping.rater), Response("", values, path=row.path), mapping.rater)
    name = str(texts[0]).strip() if texts else ""
    return rater_name([name], mapping, "Label Studio", row, mapping.rater, as_is=True) if name else ""


def _rater(row: Fields, annotator: str, mapping: ImportMapping) -> str:
    """Return a rater's names from an id, an address, or an object with both; the tool's versions differ."""
    who = row.data.get(annotator)
    names = [who.get("id"), who.get("email")] if isinstance(who, dict) else [who]
    return rater_name(names, mapping, "Label Studio", row, annotator)
