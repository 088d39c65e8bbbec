from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import Any, TypeVar

T = TypeVar("T", bound="OpenedOutput")


@dataclass
class OpenedOutput:
    """Uses of the holdout for the criterion with the most uses.

    Attributes:
        criterion (str):
        times (int):
        last (datetime.datetime):
        often (bool): True when the pages warn about the number of uses.
    """

    criterion: str
    times: int
    last: datetime.datetime
    often: bool
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        criterion = self.criterion

        times = self.times

        last = self.last.isoformat()

        often = self.often

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "criterion": criterion,
                "times": times,
                "last": last,
                "often": often,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        criterion = d.pop("criterion")

        times = d.pop("times")

        last = datetime.datetime.fromisoformat(d.pop("last"))

        often = d.pop("often")

        opened_output = cls(
            criterion=criterion,
            times=times,
            last=last,
            often=often,
        )

        opened_output.additional_properties = d
        return opened_output

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
