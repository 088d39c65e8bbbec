from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import Any, TypeVar, cast

T = TypeVar("T", bound="RunsOutput")


@dataclass
class RunsOutput:
    """A run of a test.

    Attributes:
        what (str):
        run (int):
        state (str): running, paused, done, done_with_failures, cancelled
        units (int):
        units_done (int):
        units_failed (int):
        calls (int):
        reused (int):
        cost_usd (float | None):
        seconds_left (float | None):
    """

    what: str
    run: int
    state: str
    units: int
    units_done: int
    units_failed: int
    calls: int
    reused: int
    cost_usd: float | None
    seconds_left: float | None
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        what = self.what

        run = self.run

        state = self.state

        units = self.units

        units_done = self.units_done

        units_failed = self.units_failed

        calls = self.calls

        reused = self.reused

        cost_usd: float | None
        cost_usd = self.cost_usd

        seconds_left: float | None
        seconds_left = self.seconds_left

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "what": what,
                "run": run,
                "state": state,
                "units": units,
                "units_done": units_done,
                "units_failed": units_failed,
                "calls": calls,
                "reused": reused,
                "cost_usd": cost_usd,
                "seconds_left": seconds_left,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        what = d.pop("what")

        run = d.pop("run")

        state = d.pop("state")

        units = d.pop("units")

        units_done = d.pop("units_done")

        units_failed = d.pop("units_failed")

        calls = d.pop("calls")

        reused = d.pop("reused")

        def _parse_cost_usd(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        cost_usd = _parse_cost_usd(d.pop("cost_usd"))

        def _parse_seconds_left(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        seconds_left = _parse_seconds_left(d.pop("seconds_left"))

        runs_output = cls(
            what=what,
            run=run,
            state=state,
            units=units,
            units_done=units_done,
            units_failed=units_failed,
            calls=calls,
            reused=reused,
            cost_usd=cost_usd,
            seconds_left=seconds_left,
        )

        runs_output.additional_properties = d
        return runs_output

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
