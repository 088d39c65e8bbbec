"""Connects endpoints, changes, disables and removes them. A key goes in and never comes out."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.db import transaction

from common.problems import FieldProblem, InputProblem
from evaluation.connections.queries import UNFINISHED, profile_endpoints
from evaluation.gateway.current import address_policy, current_endpoint
from evaluation.gateway.endpoints import entered_base_url, unprintable
from evaluation.gateway.keys import Secret, encrypt, key_hint
from evaluation.models.endpoints import ConnectedEndpoint
from evaluation.models.judges import JudgeProfile
from evaluation.models.runs import Run
from labeling.models.people import User
from labeling.people.services.audit import audit

# Fields of a choice that are fields of the row, as they are.
_PLAIN = (
    "name",
    "preset",
    "api_version",
    "requests_per_minute",
    "tokens_per_minute",
    "max_in_flight",
    "batch",
)


class EndpointInUse(InputProblem):
    """A change that would stop a run or a judge profile; the message names it."""


@dataclass(frozen=True, slots=True)
class Connection:
    """What a lead enters of an endpoint. An empty `key` keeps the stored one, unless `remove_key`.

    `prices` are by model: US dollars per 1,000,000 tokens, as text (input, output, cached_input).
    """

    name: str
    address: str
    key: Secret = field(default=Secret(), repr=False)
    remove_key: bool = False
    preset: str = ""
    api_version: str = ""
    models: tuple[str, ...] = ()
    prices: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    max_in_flight: int | None = None
    batch: bool = False


@transaction.atomic
def endpoint_connect(*, choice: Connection, by: User | None) -> ConnectedEndpoint:
    """Connect an endpoint. Raises FieldProblem for a used name or an address that is not allowed."""
    row = ConnectedEndpoint(created_by=by)
    _fill(row, choice, by)
    row.save()
    audit(actor=by, verb="endpoint connected", obj=row, name=row.name, address=row.address, key=bool(row.key))
    return row


@transaction.atomic
def endpoint_change(*, endpoint: ConnectedEndpoint, choice: Connection, by: User | None) -> ConnectedEndpoint:
    """Change an endpoint. Judge profiles that name its address follow it to a new one.

    A new address needs the key anew: else a stored key could be sent to a server of its reader's choice.

    Raises FieldProblem as `endpoint_connect`; EndpointInUse for a new address while a run uses the old one.
    """
    row = ConnectedEndpoint.objects.select_for_update().get(pk=endpoint.pk)
    before = {name: getattr(row, name) for name in (*_PLAIN, "address", "key", "model_names", "prices")}
    _fill(row, choice, by)
    if row.address != before["address"]:
        _refuse_in_use(before["address"], "its address can be changed")
        if before["key"] and row.key == before["key"]:
            raise FieldProblem("key", "is needed again for another address")
        _move_profiles(before["address"], row.address)
        row.test, row.tested_at, row.tested_by = None, None, None
    row.save()
    changed = sorted(name for name, value in before.items() if getattr(row, name) != value)
    audit(actor=by, verb="endpoint changed", obj=row, name=row.name, address=row.address, changed=changed)
    return row


@transaction.atomic
def endpoint_offer(*, endpoint: ConnectedEndpoint, models: tuple[str, ...], by: User | None) -> None:
    """Replace the models to choose from; prices of others stay for later."""
    row = ConnectedEndpoint.objects.select_for_update().get(pk=endpoint.pk)
    row.model_names, row.updated_by = list(models), by
    row.save(update_fields=["model_names", "updated_by", "updated_at"])
    audit(actor=by, verb="endpoint changed", obj=row, name=row.name, changed=["model_names"])


@transaction.atomic
def endpoint_enable(*, endpoint: ConnectedEndpoint, enabled: bool, by: User | None) -> None:
    """Let runs use the endpoint, or not. Raises EndpointInUse while a run uses it."""
    row = ConnectedEndpoint.objects.select_for_update().get(pk=endpoint.pk)
    if not enabled:
        _refuse_in_use(row.address, "the endpoint can be disabled")
    row.enabled, row.updated_by = enabled, by
    row.save(update_fields=["enabled", "updated_by", "updated_at"])
    audit(actor=by, verb=f"endpoint {'enabled' if enabled else 'disabled'}", obj=row, name=row.name)


@transaction.atomic
def endpoint_remove(*, endpoint: ConnectedEndpoint, by: User | None) -> None:
    """Remove an endpoint with its key; judges, runs and answers stay.

    Raises EndpointInUse while a run or a judge profile uses it.
    """
    row = ConnectedEndpoint.objects.select_for_update().get(pk=endpoint.pk)
    _refuse_in_use(row.address, "the endpoint can be removed")
    if names := [profile.name for profile in _profiles_using(row.address)]:
        raise EndpointInUse(f"the judge profile {names[0]} uses it: choose another endpoint there first")
    audit(actor=by, verb="endpoint removed", obj=row, name=row.name, address=row.address)
    row.delete()


def _profiles_using(address: str) -> list[JudgeProfile]:
    return [row for row in JudgeProfile.objects.order_by("name") if address in profile_endpoints(row)]


def _refuse_in_use(address: str, what: str) -> None:
    runs = Run.objects.filter(state__in=UNFINISHED).select_related("judge").order_by("-id")
    if run := next((one for one in runs if address in one.judge.endpoints), None):
        state = run.get_state_display().lower()
        raise EndpointInUse(f"run {run.pk} uses it and is {state}: once it has ended, {what}")


def _move_profiles(old: str, new: str) -> None:
    for profile in _profiles_using(old):
        config = dict(profile.config)
        if config.get("endpoint") == old:
            config["endpoint"] = new
        by_role = config.get("endpoints") or {}
        config["endpoints"] = {role: new if one == old else one for role, one in by_role.items()}
        profile.config = config
        profile.save(update_fields=["config", "updated_at"])


def _fill(row: ConnectedEndpoint, choice: Connection, by: User | None) -> None:
    address = entered_base_url(choice.address, guard=address_policy())
    _refuse_taken(row, choice.name, address)
    if unprintable(choice.key):
        raise FieldProblem("key", "holds a space, a line break or a character that is not ASCII")
    row.address, row.updated_by = address, by
    for name in _PLAIN:
        setattr(row, name, getattr(choice, name))
    row.model_names = list(choice.models)
    row.prices = {model: dict(price) for model, price in choice.prices.items()}
    if choice.key or choice.remove_key:
        row.key = encrypt(choice.key) if choice.key else ""
        row.key_hint = key_hint(choice.key)


def _refuse_taken(row: ConnectedEndpoint, name: str, address: str) -> None:
    others = ConnectedEndpoint.objects.exclude(pk=row.pk)
    if others.filter(name=name).exists():
        raise FieldProblem("name", "another endpoint has this name")
    if other := others.filter(address=address).first():
        raise FieldProblem("address", f"the endpoint {other.name} has this address: edit that one")
    try:
        own = current_endpoint().id
    except InputProblem:
        return
    if own == address:
        raise FieldProblem("address", "this is the server's own endpoint, which is connected already")
