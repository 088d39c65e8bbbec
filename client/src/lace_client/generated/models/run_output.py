from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import Any, TypeVar, cast

from ..models.run_state_enum import RunStateEnum

T = TypeVar("T", bound="RunOutput")


@dataclass
class RunOutput:
    """A run with its progress. Numbers of verdicts are in the list of runs and in the report.

    Attributes:
        id (int):
        set_ (str):
        judge (str):
        fingerprint (str):
        engine (str):
        model (str):
        state (RunStateEnum): * `running` - Running
            * `paused` - Paused
            * `done` - Done
            * `done_with_failures` - Done with failures
            * `cancelled` - Cancelled
        state_label (str):
        error (str):
        units (int):
        units_done (int):
        units_failed (int):
        in_flight (int): Calls in progress.
        workers (int): Worker processes on the run, heard of lately.
        hold_up (str): Why a running run stands still, in a sentence; empty if nothing is known to hold it up.
        calls (int):
        reused (int):
        prompt_tokens (int):
        cached_tokens (int):
        completion_tokens (int):
        cost_usd (float | None): Sum of the known costs; null where the cost of an answer is unknown.
        unknown_cost_requests (int): Requests without a known cost: pending, broken off, timed out, or without a price.
        unknown_cost_usd (float | None): What they add at most; null without a budget.
        budget_usd (float | None):
        rate (float): Recently finished units per minute.
        seconds_left (float | None):
        created_at (datetime.datetime):
        finished_at (datetime.datetime | None):
    """

    id: int
    set_: str
    judge: str
    fingerprint: str
    engine: str
    model: str
    state: RunStateEnum
    state_label: str
    error: str
    units: int
    units_done: int
    units_failed: int
    in_flight: int
    workers: int
    hold_up: str
    calls: int
    reused: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    cost_usd: float | None
    unknown_cost_requests: int
    unknown_cost_usd: float | None
    budget_usd: float | None
    rate: float
    seconds_left: float | None
    created_at: datetime.datetime
    finished_at: datetime.datetime | None
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        set_ = self.set_

        judge = self.judge

        fingerprint = self.fingerprint

        engine = self.engine

        model = self.model

        state = self.state.value

        state_label = self.state_label

        error = self.error

        units = self.units

        units_done = self.units_done

        units_failed = self.units_failed

        in_flight = self.in_flight

        workers = self.workers

        hold_up = self.hold_up

        calls = self.calls

        reused = self.reused

        prompt_tokens = self.prompt_tokens

        cached_tokens = self.cached_tokens

        completion_tokens = self.completion_tokens

        cost_usd: float | None
        cost_usd = self.cost_usd

        unknown_cost_requests = self.unknown_cost_requests

        unknown_cost_usd: float | None
        unknown_cost_usd = self.unknown_cost_usd

        budget_usd: float | None
        budget_usd = self.budget_usd

        rate = self.rate

        seconds_left: float | None
        seconds_left = self.seconds_left

        created_at = self.created_at.isoformat()

        finished_at: None | str
        if isinstance(self.finished_at, datetime.datetime):
            finished_at = self.finished_at.isoformat()
        else:
            finished_at = self.finished_at

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "set": set_,
                "judge": judge,
                "fingerprint": fingerprint,
                "engine": engine,
                "model": model,
                "state": state,
                "state_label": state_label,
                "error": error,
                "units": units,
                "units_done": units_done,
                "units_failed": units_failed,
                "in_flight": in_flight,
                "workers": workers,
                "hold_up": hold_up,
                "calls": calls,
                "reused": reused,
                "prompt_tokens": prompt_tokens,
                "cached_tokens": cached_tokens,
                "completion_tokens": completion_tokens,
                "cost_usd": cost_usd,
                "unknown_cost_requests": unknown_cost_requests,
                "unknown_cost_usd": unknown_cost_usd,
                "budget_usd": budget_usd,
                "rate": rate,
                "seconds_left": seconds_left,
                "created_at": created_at,
                "finished_at": finished_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        set_ = d.pop("set")

        judge = d.pop("judge")

        fingerprint = d.pop("fingerprint")

        engine = d.pop("engine")

        model = d.pop("model")

        state = RunStateEnum(d.pop("state"))

        state_label = d.pop("state_label")

        error = d.pop("error")

        units = d.pop("units")

        units_done = d.pop("units_done")

        units_failed = d.pop("units_failed")

        in_flight = d.pop("in_flight")

        workers = d.pop("workers")

        hold_up = d.pop("hold_up")

        calls = d.pop("calls")

        reused = d.pop("reused")

        prompt_tokens = d.pop("prompt_tokens")

        cached_tokens = d.pop("cached_tokens")

        completion_tokens = d.pop("completion_tokens")

        def _parse_cost_usd(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        cost_usd = _parse_cost_usd(d.pop("cost_usd"))

        unknown_cost_requests = d.pop("unknown_cost_requests")

        def _parse_unknown_cost_usd(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        unknown_cost_usd = _parse_unknown_cost_usd(d.pop("unknown_cost_usd"))

        def _parse_budget_usd(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        budget_usd = _parse_budget_usd(d.pop("budget_usd"))

        rate = d.pop("rate")

        def _parse_seconds_left(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        seconds_left = _parse_seconds_left(d.pop("seconds_left"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_finished_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                finished_at_type_0 = datetime.datetime.fromisoformat(data)

                return finished_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        finished_at = _parse_finished_at(d.pop("finished_at"))

        run_output = cls(
            id=id,
            set_=set_,
            judge=judge,
            fingerprint=fingerprint,
            engine=engine,
            model=model,
            state=state,
            state_label=state_label,
            error=error,
            units=units,
            units_done=units_done,
            units_failed=units_failed,
            in_flight=in_flight,
            workers=workers,
            hold_up=hold_up,
            calls=calls,
            reused=reused,
            prompt_tokens=prompt_tokens,
            cached_tokens=cached_tokens,
            completion_tokens=completion_tokens,
            cost_usd=cost_usd,
            unknown_cost_requests=unknown_cost_requests,
            unknown_cost_usd=unknown_cost_usd,
            budget_usd=budget_usd,
            rate=rate,
            seconds_left=seconds_left,
            created_at=created_at,
            finished_at=finished_at,
        )

        run_output.additional_properties = d
        return run_output

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
