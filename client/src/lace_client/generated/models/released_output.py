from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import Any, TypeVar

T = TypeVar("T", bound="ReleasedOutput")


@dataclass
class ReleasedOutput:
    """The release of the candidate.

    Attributes:
        by (str):
        at (datetime.datetime):
        reason (str):
        overridden (bool):
    """

    by: str
    at: datetime.datetime
    reason: str
    overridden: bool
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        by = self.by

        at = self.at.isoformat()

        reason = self.reason

        overridden = self.overridden

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "by": by,
                "at": at,
                "reason": reason,
                "overridden": overridden,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        by = d.pop("by")

        at = datetime.datetime.fromisoformat(d.pop("at"))

        reason = d.pop("reason")

        overridden = d.pop("overridden")

        released_output = cls(
            by=by,
            at=at,
            reason=reason,
            overridden=overridden,
        )

        released_output.additional_properties = d
        return released_output

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
