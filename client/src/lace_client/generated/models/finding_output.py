from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import Any, TypeVar

from ..models.level_enum import LevelEnum

T = TypeVar("T", bound="FindingOutput")


@dataclass
class FindingOutput:
    """A problem in a prompt; `section` is '' for the whole prompt.

    Attributes:
        level (LevelEnum): * `error` - error
            * `warning` - warning
        section (str):
        message (str):
    """

    level: LevelEnum
    section: str
    message: str
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        level = self.level.value

        section = self.section

        message = self.message

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "level": level,
                "section": section,
                "message": message,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        level = LevelEnum(d.pop("level"))

        section = d.pop("section")

        message = d.pop("message")

        finding_output = cls(
            level=level,
            section=section,
            message=message,
        )

        finding_output.additional_properties = d
        return finding_output

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
