from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import TYPE_CHECKING, Any, TypeVar

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.example_line import ExampleLine


T = TypeVar("T", bound="PromptInput")


@dataclass
class PromptInput:
    """A prompt: its text and worked examples.

    Attributes:
        text (str):
        examples (list[ExampleLine] | Unset):
    """

    text: str
    examples: list[ExampleLine] | Unset = UNSET
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        text = self.text

        examples: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.examples, Unset):
            examples = []
            for examples_item_data in self.examples:
                examples_item = examples_item_data.to_dict()
                examples.append(examples_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "text": text,
            }
        )
        if examples is not UNSET:
            field_dict["examples"] = examples

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.example_line import ExampleLine  # noqa: PLC0415

        d = dict(src_dict)
        text = d.pop("text")

        _examples = d.pop("examples", UNSET)
        examples: list[ExampleLine] | Unset = UNSET
        if _examples is not UNSET:
            examples = []
            for examples_item_data in _examples:
                examples_item = ExampleLine.from_dict(examples_item_data)

                examples.append(examples_item)

        prompt_input = cls(
            text=text,
            examples=examples,
        )

        prompt_input.additional_properties = d
        return prompt_input

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
