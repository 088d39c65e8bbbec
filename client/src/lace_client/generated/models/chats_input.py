from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import TYPE_CHECKING, Any, TypeVar

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.chat_input import ChatInput


T = TypeVar("T", bound="ChatsInput")


@dataclass
class ChatsInput:
    """The chats of one system.

    Attributes:
        chats (list[ChatInput]):
        source (str | Unset): Names the system; its ids are its own. Default: 'api'.
    """

    chats: list[ChatInput]
    source: str | Unset = "api"
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        chats = []
        for chats_item_data in self.chats:
            chats_item = chats_item_data.to_dict()
            chats.append(chats_item)

        source = self.source

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "chats": chats,
            }
        )
        if source is not UNSET:
            field_dict["source"] = source

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.chat_input import ChatInput  # noqa: PLC0415

        d = dict(src_dict)
        chats = []
        _chats = d.pop("chats")
        for chats_item_data in _chats:
            chats_item = ChatInput.from_dict(chats_item_data)

            chats.append(chats_item)

        source = d.pop("source", UNSET)

        chats_input = cls(
            chats=chats,
            source=source,
        )

        chats_input.additional_properties = d
        return chats_input

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
