from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from ..models.example_line import ExampleLine


T = TypeVar("T", bound="WrittenVersion")


@dataclass
class WrittenVersion:
    """The version with the text and examples that were sent.

    Attributes:
        criterion (str):
        number (int):
        text (str):
        examples (list[ExampleLine]):
        content_hash (str):
        origin (str):
        base (int | None):
        reason (str):
        author (None | str):
        created_at (datetime.datetime):
    """

    criterion: str
    number: int
    text: str
    examples: list[ExampleLine]
    content_hash: str
    origin: str
    base: int | None
    reason: str
    author: None | str
    created_at: datetime.datetime
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        criterion = self.criterion

        number = self.number

        text = self.text

        examples = []
        for examples_item_data in self.examples:
            examples_item = examples_item_data.to_dict()
            examples.append(examples_item)

        content_hash = self.content_hash

        origin = self.origin

        base: int | None
        base = self.base

        reason = self.reason

        author: None | str
        author = self.author

        created_at = self.created_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "criterion": criterion,
                "number": number,
                "text": text,
                "examples": examples,
                "content_hash": content_hash,
                "origin": origin,
                "base": base,
                "reason": reason,
                "author": author,
                "created_at": created_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.example_line import ExampleLine  # noqa: PLC0415

        d = dict(src_dict)
        criterion = d.pop("criterion")

        number = d.pop("number")

        text = d.pop("text")

        examples = []
        _examples = d.pop("examples")
        for examples_item_data in _examples:
            examples_item = ExampleLine.from_dict(examples_item_data)

            examples.append(examples_item)

        content_hash = d.pop("content_hash")

        origin = d.pop("origin")

        def _parse_base(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        base = _parse_base(d.pop("base"))

        reason = d.pop("reason")

        def _parse_author(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        author = _parse_author(d.pop("author"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        written_version = cls(
            criterion=criterion,
            number=number,
            text=text,
            examples=examples,
            content_hash=content_hash,
            origin=origin,
            base=base,
            reason=reason,
            author=author,
            created_at=created_at,
        )

        written_version.additional_properties = d
        return written_version

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
