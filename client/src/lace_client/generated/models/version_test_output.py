from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import Any, TypeVar

T = TypeVar("T", bound="VersionTestOutput")


@dataclass
class VersionTestOutput:
    """A regression test of a version; `result` is '' before the decision.

    Attributes:
        id (int):
        set_ (str):
        split (str):
        state (str):
        result (str):
    """

    id: int
    set_: str
    split: str
    state: str
    result: str
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        set_ = self.set_

        split = self.split

        state = self.state

        result = self.result

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "set": set_,
                "split": split,
                "state": state,
                "result": result,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        set_ = d.pop("set")

        split = d.pop("split")

        state = d.pop("state")

        result = d.pop("result")

        version_test_output = cls(
            id=id,
            set_=set_,
            split=split,
            state=state,
            result=result,
        )

        version_test_output.additional_properties = d
        return version_test_output

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
