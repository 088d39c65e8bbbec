from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import Any, TypeVar, cast

from ..models.split_by_hand_enum import SplitByHandEnum
from ..types import UNSET, Unset

T = TypeVar("T", bound="SetChatsInput")


@dataclass
class SetChatsInput:
    """Stored chats that are added to a set, by their ids; a set that does not exist is created.

    Attributes:
        set_ (str): Name of the chat set.
        chats (list[str]):
        rubric (str | Unset): Of a new set; optional while the workspace has one rubric.
        source (str | Unset): The source under which the chats were sent; '' for chats of files. Default: ''.
        split (SplitByHandEnum | Unset): * `dev` - dev
            * `train` - train Default: SplitByHandEnum.DEV.
    """

    set_: str
    chats: list[str]
    rubric: str | Unset = UNSET
    source: str | Unset = ""
    split: SplitByHandEnum | Unset = SplitByHandEnum.DEV
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        set_ = self.set_

        chats = self.chats

        rubric = self.rubric

        source = self.source

        split: str | Unset = UNSET
        if not isinstance(self.split, Unset):
            split = self.split.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "set": set_,
                "chats": chats,
            }
        )
        if rubric is not UNSET:
            field_dict["rubric"] = rubric
        if source is not UNSET:
            field_dict["source"] = source
        if split is not UNSET:
            field_dict["split"] = split

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        set_ = d.pop("set")

        chats = cast(list[str], d.pop("chats"))

        rubric = d.pop("rubric", UNSET)

        source = d.pop("source", UNSET)

        _split = d.pop("split", UNSET)
        split: SplitByHandEnum | Unset
        if isinstance(_split, Unset):
            split = UNSET
        else:
            split = SplitByHandEnum(_split)

        set_chats_input = cls(
            set_=set_,
            chats=chats,
            rubric=rubric,
            source=source,
            split=split,
        )

        set_chats_input.additional_properties = d
        return set_chats_input

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
