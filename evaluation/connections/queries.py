"""Endpoints as their list and pages show them: the state in a word, and the last error."""

from dataclasses import dataclass

from evaluation.gateway.embedded import EMBEDDED_NOTICE
from evaluation.gateway.endpoints import Endpoint
from evaluation.gateway.simulated import SIMULATED_MODEL, SIMULATED_NOTICE
from evaluation.models.endpoints import ConnectedEndpoint
from evaluation.models.judges import JudgeProfile
from evaluation.models.runs import Run

UNFINISHED = (Run.State.RUNNING, Run.State.PAUSED)


@dataclass(frozen=True, slots=True)
class EndpointRow:
    """An endpoint. `row` is None for the server's own. `look` is the class of its state's word.

    `error` is the endpoint's own text of the last test, or why a run that uses it is paused (`paused`).
    """

    name: str
    address: str
    row: ConnectedEndpoint | None
    state: str
    look: str
    error: str = ""
    paused: Run | None = None
    running: int = 0
    profiles: tuple[str, ...] = ()


def endpoint_rows() -> list[EndpointRow]:
    """Return the connected endpoints by name, with what uses them; three queries."""
    rows = list(ConnectedEndpoint.objects.select_related("tested_by", "created_by"))
    runs, profiles = _unfinished(), list(JudgeProfile.objects.order_by("name"))
    return [endpoint_row(row, runs=runs, profiles=profiles) for row in rows]


def own_row(own: Endpoint) -> EndpointRow:
    """Return the server's own endpoint as a row."""
    name, address = "Server's endpoint", own.id
    if own.embedded:
        name = f"Embedded model ({EMBEDDED_NOTICE})"
    elif own.simulated:
        name, address = SIMULATED_MODEL, SIMULATED_NOTICE
    return EndpointRow(name=name, address=address, row=None, state="Server's own", look="on")


def endpoint_row(
    row: ConnectedEndpoint, *, runs: list[Run] | None = None, profiles: list[JudgeProfile] | None = None
) -> EndpointRow:
    """Return a connected endpoint with what uses it."""
    using = [run for run in (_unfinished() if runs is None else runs) if row.address in run.judge.endpoints]
    named = JudgeProfile.objects.order_by("name") if profiles is None else profiles
    paused = next((run for run in using if run.state == Run.State.PAUSED and run.error), None)
    state, look = _state(row)
    return EndpointRow(
        name=row.name,
        address=row.address,
        row=row,
        state=state,
        look=look,
        error=str((row.test or {}).get("error", "")) if state == "Failing" else "",
        paused=paused,
        running=sum(run.state == Run.State.RUNNING for run in using),
        profiles=tuple(profile.name for profile in named if row.address in profile_endpoints(profile)),
    )


def profile_endpoints(profile: JudgeProfile) -> set[str]:
    """Return the ids of the endpoints that a profile names; "" is the server's own."""
    config = profile.config
    return {str(config.get("endpoint", "")), *map(str, (config.get("endpoints") or {}).values())}


def _unfinished() -> list[Run]:
    return list(Run.objects.filter(state__in=UNFINISHED).select_related("judge").order_by("-id"))


def _state(row: ConnectedEndpoint) -> tuple[str, str]:
    if not row.enabled:
        return "Disabled", "dir"
    if row.test is None:
        return "Never tested", "few"
    return ("Tested", "on") if row.test.get("ok") else ("Failing", "not")
