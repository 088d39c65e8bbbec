from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import Any, TypeVar

T = TypeVar("T", bound="SetChatsOutput")


@dataclass
class SetChatsOutput:
    """The set, and the numbers of chats added and of those that were in it already and stay as they are.

    Attributes:
        id (int):
        set_ (str):
        added (int):
        kept (int):
    """

    id: int
    set_: str
    added: int
    kept: int
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        set_ = self.set_

        added = self.added

        kept = self.kept

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "set": set_,
                "added": added,
                "kept": kept,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        set_ = d.pop("set")

        added = d.pop("added")

        kept = d.pop("kept")

        set_chats_output = cls(
            id=id,
            set_=set_,
            added=added,
            kept=kept,
        )

        set_chats_output.additional_properties = d
        return set_chats_output

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
