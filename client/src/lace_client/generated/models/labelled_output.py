from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import Any, TypeVar

T = TypeVar("T", bound="LabelledOutput")


@dataclass
class LabelledOutput:
    """Labelled chats of one criterion of the test.

    Attributes:
        criterion (str):
        true_ (int):
        false_ (int):
        blocks (bool):
        more_labels (str): Chats to label for a status, ±6 points and the gate; '' if none.
    """

    criterion: str
    true_: int
    false_: int
    blocks: bool
    more_labels: str
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        criterion = self.criterion

        true_ = self.true_

        false_ = self.false_

        blocks = self.blocks

        more_labels = self.more_labels

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "criterion": criterion,
                "true": true_,
                "false": false_,
                "blocks": blocks,
                "more_labels": more_labels,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        criterion = d.pop("criterion")

        true_ = d.pop("true")

        false_ = d.pop("false")

        blocks = d.pop("blocks")

        more_labels = d.pop("more_labels")

        labelled_output = cls(
            criterion=criterion,
            true_=true_,
            false_=false_,
            blocks=blocks,
            more_labels=more_labels,
        )

        labelled_output.additional_properties = d
        return labelled_output

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
