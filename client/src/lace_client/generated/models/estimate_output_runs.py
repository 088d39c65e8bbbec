from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ..models.estimate_output_runs_additional_property import EstimateOutputRunsAdditionalProperty


T = TypeVar("T", bound="EstimateOutputRuns")


@dataclass
class EstimateOutputRuns:
    additional_properties: dict[str, EstimateOutputRunsAdditionalProperty] = _field(
        init=False, default_factory=dict
    )

    def to_dict(self) -> dict[str, Any]:

        field_dict: dict[str, Any] = {}
        for prop_name, prop in self.additional_properties.items():
            field_dict[prop_name] = prop.to_dict()

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.estimate_output_runs_additional_property import EstimateOutputRunsAdditionalProperty  # noqa: PLC0415

        d = dict(src_dict)
        estimate_output_runs = cls()

        additional_properties = {}
        for prop_name, prop_dict in d.items():
            additional_property = EstimateOutputRunsAdditionalProperty.from_dict(prop_dict)

            additional_properties[prop_name] = additional_property

        estimate_output_runs.additional_properties = additional_properties
        return estimate_output_runs

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> EstimateOutputRunsAdditionalProperty:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: EstimateOutputRunsAdditionalProperty) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
