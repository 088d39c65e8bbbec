from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from ..models.run_row_output import RunRowOutput


T = TypeVar("T", bound="PaginatedRunRowOutputList")


@dataclass
class PaginatedRunRowOutputList:
    """
    Attributes:
        next_ (None | str):  Example: http://api.example.org/accounts/?cursor=cD00ODY%3D".
        previous (None | str):  Example: http://api.example.org/accounts/?cursor=cj0xJnA9NDg3.
        results (list[RunRowOutput]):
    """

    next_: None | str
    previous: None | str
    results: list[RunRowOutput]
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        next_: None | str
        next_ = self.next_

        previous: None | str
        previous = self.previous

        results = []
        for results_item_data in self.results:
            results_item = results_item_data.to_dict()
            results.append(results_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "next": next_,
                "previous": previous,
                "results": results,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.run_row_output import RunRowOutput  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_next_(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        next_ = _parse_next_(d.pop("next"))

        def _parse_previous(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        previous = _parse_previous(d.pop("previous"))

        results = []
        _results = d.pop("results")
        for results_item_data in _results:
            results_item = RunRowOutput.from_dict(results_item_data)

            results.append(results_item)

        paginated_run_row_output_list = cls(
            next_=next_,
            previous=previous,
            results=results,
        )

        paginated_run_row_output_list.additional_properties = d
        return paginated_run_row_output_list

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
