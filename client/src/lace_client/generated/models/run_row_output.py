from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import Any, TypeVar

from ..models.run_state_enum import RunStateEnum

T = TypeVar("T", bound="RunRowOutput")


@dataclass
class RunRowOutput:
    """A run in a list.

    Attributes:
        id (int):
        set_ (str):
        judge (str):
        fingerprint (str):
        engine (str): '' for imported verdicts.
        model (str):
        state (RunStateEnum): * `running` - Running
            * `paused` - Paused
            * `done` - Done
            * `done_with_failures` - Done with failures
            * `cancelled` - Cancelled
        units (int):
        units_done (int):
        units_failed (int):
        verdicts (int):
        unparsed (int):
        created_at (datetime.datetime):
    """

    id: int
    set_: str
    judge: str
    fingerprint: str
    engine: str
    model: str
    state: RunStateEnum
    units: int
    units_done: int
    units_failed: int
    verdicts: int
    unparsed: int
    created_at: datetime.datetime
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        set_ = self.set_

        judge = self.judge

        fingerprint = self.fingerprint

        engine = self.engine

        model = self.model

        state = self.state.value

        units = self.units

        units_done = self.units_done

        units_failed = self.units_failed

        verdicts = self.verdicts

        unparsed = self.unparsed

        created_at = self.created_at.isoformat()

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
                "units": units,
                "units_done": units_done,
                "units_failed": units_failed,
                "verdicts": verdicts,
                "unparsed": unparsed,
                "created_at": created_at,
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

        units = d.pop("units")

        units_done = d.pop("units_done")

        units_failed = d.pop("units_failed")

        verdicts = d.pop("verdicts")

        unparsed = d.pop("unparsed")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        run_row_output = cls(
            id=id,
            set_=set_,
            judge=judge,
            fingerprint=fingerprint,
            engine=engine,
            model=model,
            state=state,
            units=units,
            units_done=units_done,
            units_failed=units_failed,
            verdicts=verdicts,
            unparsed=unparsed,
            created_at=created_at,
        )

        run_row_output.additional_properties = d
        return run_row_output

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
