from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import Any, TypeVar

from ..models.code_enum import CodeEnum

T = TypeVar("T", bound="RowProblemOutput")


@dataclass
class RowProblemOutput:
    """Why a chat was not stored; `index` counts from 0.

    Attributes:
        index (int):
        id (str):
        code (CodeEnum): * `invalid` - invalid
            * `refused` - refused
        field (str):
        message (str):
    """

    index: int
    id: str
    code: CodeEnum
    field: str
    message: str
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        index = self.index

        id = self.id

        code = self.code.value

        field = self.field

        message = self.message

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "index": index,
                "id": id,
                "code": code,
                "field": field,
                "message": message,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        index = d.pop("index")

        id = d.pop("id")

        code = CodeEnum(d.pop("code"))

        field = d.pop("field")

        message = d.pop("message")

        row_problem_output = cls(
            index=index,
            id=id,
            code=code,
            field=field,
            message=message,
        )

        row_problem_output.additional_properties = d
        return row_problem_output

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
