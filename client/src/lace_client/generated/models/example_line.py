from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import Any, TypeVar, cast

from ..types import UNSET, Unset

T = TypeVar("T", bound="ExampleLine")


@dataclass
class ExampleLine:
    """A worked example: the first and last turn of a train chat, and the consensus (null: not applicable).

    Attributes:
        chat (str):
        turns (list[int]):
        value (bool | None):
        rationale (str | Unset):  Default: ''.
    """

    chat: str
    turns: list[int]
    value: bool | None
    rationale: str | Unset = ""
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        chat = self.chat

        turns = self.turns

        value: bool | None
        value = self.value

        rationale = self.rationale

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "chat": chat,
                "turns": turns,
                "value": value,
            }
        )
        if rationale is not UNSET:
            field_dict["rationale"] = rationale

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        chat = d.pop("chat")

        turns = cast(list[int], d.pop("turns"))

        def _parse_value(data: object) -> bool | None:
            if data is None:
                return data
            return cast(bool | None, data)

        value = _parse_value(d.pop("value"))

        rationale = d.pop("rationale", UNSET)

        example_line = cls(
            chat=chat,
            turns=turns,
            value=value,
            rationale=rationale,
        )

        example_line.additional_properties = d
        return example_line

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
