from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ..models.criterion_row_output import CriterionRowOutput


T = TypeVar("T", bound="CriteriaOutput")


@dataclass
class CriteriaOutput:
    """All criteria.

    Attributes:
        criteria (list[CriterionRowOutput]):
    """

    criteria: list[CriterionRowOutput]
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        criteria = []
        for criteria_item_data in self.criteria:
            criteria_item = criteria_item_data.to_dict()
            criteria.append(criteria_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "criteria": criteria,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.criterion_row_output import CriterionRowOutput  # noqa: PLC0415

        d = dict(src_dict)
        criteria = []
        _criteria = d.pop("criteria")
        for criteria_item_data in _criteria:
            criteria_item = CriterionRowOutput.from_dict(criteria_item_data)

            criteria.append(criteria_item)

        criteria_output = cls(
            criteria=criteria,
        )

        criteria_output.additional_properties = d
        return criteria_output

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
