"""Rules for chats that come in: what is redacted, how they get a topic, when they lose their text."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone

from common.problems import FieldProblem, shown
from labeling.ingest.core.personal_data import KINDS, NAMED_KINDS, unknown_regions
from labeling.ingest.names import NamesUnavailable, name_finder
from labeling.ingest.queries import chats_due, rules_stored
from labeling.models.ingest import IngestSettings
from labeling.models.people import User
from labeling.people.services.audit import audit
from labeling.sets.services import UnconfirmedError

MOST_DAYS = 36_500
FIELDS = ("redact", "regions", "topic_rules", "retention_days")


@transaction.atomic
def incoming_change(*, values: Mapping[str, Any], by: User, confirmed: bool = False) -> IngestSettings:
    """
    Set these rules and log the changed ones; chats that are stored already keep what they have.

    Parameters
    ----------
    values : of FIELDS, those to change.
    confirmed : the lead knows how many chats lose their text by a shorter retention.

    Raises
    ------
    FieldProblem
        an unknown kind or region, names without a model, a rule that cannot be read, days below 1.
    UnconfirmedError
        with the number of chats that would lose their text, where that is not confirmed.
    """
    row, _ = IngestSettings.objects.get_or_create(id=1)
    row = IngestSettings.objects.select_for_update().get()
    checked = {name: _checked(name, values[name]) for name in FIELDS if name in values}
    changed = {name: value for name, value in checked.items() if getattr(row, name) != value}
    if "retention_days" in changed and not confirmed:
        _refuse_unconfirmed(row.retention_days, changed["retention_days"])
    if changed:
        logged = {
            name: {"old": _logged(getattr(row, name)), "new": _logged(value)}
            for name, value in changed.items()
        }
        for name, value in changed.items():
            setattr(row, name, value)
        row.retention_done_at = None
        row.save()
        audit(actor=by, verb="settings changed", obj=row, **logged)
    return row


def preview_settings(values: Mapping[str, Any]) -> IngestSettings:
    """Return the settings with these values, not stored. Raises FieldProblem."""
    row = IngestSettings.current()
    for name in FIELDS:
        if name in values:
            setattr(row, name, _checked(name, values[name]))
    return row


def _checked(name: str, value: Any) -> Any:
    if name == "redact":
        return _kinds(value)
    if name == "regions":
        regions = list(dict.fromkeys(str(one).strip().upper() for one in value))
        return _known(name, regions, set(unknown_regions(regions)))
    if name == "topic_rules":
        rules_stored(value)
        return list(value)
    if value is not None and not 1 <= value <= MOST_DAYS:
        raise FieldProblem(name, f"must be from 1 to {MOST_DAYS:,}, or empty to keep all texts")
    return value


def _kinds(value: Sequence[str]) -> list[str]:
    """Return these kinds in their order; a model for names is loaded, so that it works when chats come."""
    every = (*KINDS, *NAMED_KINDS)
    known = _known("redact", value, set(value) - set(every))
    kinds = [kind for kind in every if kind in known]
    if set(kinds) & set(NAMED_KINDS):
        try:
            name_finder()
        except NamesUnavailable as missing:
            raise FieldProblem("redact", str(missing)) from None
    return kinds


def _known(name: str, values: Sequence[str], unknown: set[str]) -> Sequence[str]:
    if unknown:
        what = "a kind of personal data" if name == "redact" else "the code of a country, such as GB"
        raise FieldProblem(name, f"{shown(sorted(unknown)[0])} is not {what}")
    return values


def _refuse_unconfirmed(old: int | None, new: int | None) -> None:
    if new is None or (old is not None and old <= new):
        return
    if count := chats_due(new, now=timezone.now()).count():
        raise UnconfirmedError(
            f"{count:,} chat{'s' * (count > 1)} of {new:,} or more days "
            f"lose{'s' * (count == 1)} the text in every copy. This cannot be undone."
        )


def _logged(value: Any) -> Any:
    """Return a value as the log shows it: rules by their number, as they may be long."""
    rules = isinstance(value, list) and any(isinstance(one, dict) for one in value)
    return f"{len(value)} rule{'s' * (len(value) > 1)}" if rules else value
