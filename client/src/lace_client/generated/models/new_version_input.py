from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import TYPE_CHECKING, Any, TypeVar

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.example_line import ExampleLine


T = TypeVar("T", bound="NewVersionInput")


@dataclass
class NewVersionInput:
    """A new version; `base` is the number of the version it started from, by default the champion.

    `confirmed` is the number of the newest version that you know.

        Attributes:
            text (str):
            reason (str):
            examples (list[ExampleLine] | Unset):
            base (int | Unset):
            confirmed (int | Unset):  Default: 0.
    """

    text: str
    reason: str
    examples: list[ExampleLine] | Unset = UNSET
    base: int | Unset = UNSET
    confirmed: int | Unset = 0
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        text = self.text

        reason = self.reason

        examples: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.examples, Unset):
            examples = []
            for examples_item_data in self.examples:
                examples_item = examples_item_data.to_dict()
                examples.append(examples_item)

        base = self.base

        confirmed = self.confirmed

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "text": text,
                "reason": reason,
            }
        )
        if examples is not UNSET:
            field_dict["examples"] = examples
        if base is not UNSET:
            field_dict["base"] = base
        if confirmed is not UNSET:
            field_dict["confirmed"] = confirmed

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.example_line import ExampleLine  # noqa: PLC0415

        d = dict(src_dict)
        text = d.pop("text")

        reason = d.pop("reason")

        _examples = d.pop("examples", UNSET)
        examples: list[ExampleLine] | Unset = UNSET
        if _examples is not UNSET:
            examples = []
            for examples_item_data in _examples:
                examples_item = ExampleLine.from_dict(examples_item_data)

                examples.append(examples_item)

        base = d.pop("base", UNSET)

        confirmed = d.pop("confirmed", UNSET)

        new_version_input = cls(
            text=text,
            reason=reason,
            examples=examples,
            base=base,
            confirmed=confirmed,
        )

        new_version_input.additional_properties = d
        return new_version_input

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
