from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from ..models.measured_output import MeasuredOutput
    from ..models.version_test_output import VersionTestOutput


T = TypeVar("T", bound="VersionOutput")


@dataclass
class VersionOutput:
    """A version of a prompt; `same_as` is an earlier version with the same text and examples.

    Attributes:
        number (int):
        state (str):
        origin (str):
        base (int | None):
        same_as (int | None):
        reason (str):
        author (None | str):
        created_at (datetime.datetime):
        content_hash (str):
        tests (list[VersionTestOutput]):
        measured (list[MeasuredOutput]):
    """

    number: int
    state: str
    origin: str
    base: int | None
    same_as: int | None
    reason: str
    author: None | str
    created_at: datetime.datetime
    content_hash: str
    tests: list[VersionTestOutput]
    measured: list[MeasuredOutput]
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        number = self.number

        state = self.state

        origin = self.origin

        base: int | None
        base = self.base

        same_as: int | None
        same_as = self.same_as

        reason = self.reason

        author: None | str
        author = self.author

        created_at = self.created_at.isoformat()

        content_hash = self.content_hash

        tests = []
        for tests_item_data in self.tests:
            tests_item = tests_item_data.to_dict()
            tests.append(tests_item)

        measured = []
        for measured_item_data in self.measured:
            measured_item = measured_item_data.to_dict()
            measured.append(measured_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "number": number,
                "state": state,
                "origin": origin,
                "base": base,
                "same_as": same_as,
                "reason": reason,
                "author": author,
                "created_at": created_at,
                "content_hash": content_hash,
                "tests": tests,
                "measured": measured,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.measured_output import MeasuredOutput  # noqa: PLC0415
        from ..models.version_test_output import VersionTestOutput  # noqa: PLC0415

        d = dict(src_dict)
        number = d.pop("number")

        state = d.pop("state")

        origin = d.pop("origin")

        def _parse_base(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        base = _parse_base(d.pop("base"))

        def _parse_same_as(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        same_as = _parse_same_as(d.pop("same_as"))

        reason = d.pop("reason")

        def _parse_author(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        author = _parse_author(d.pop("author"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        content_hash = d.pop("content_hash")

        tests = []
        _tests = d.pop("tests")
        for tests_item_data in _tests:
            tests_item = VersionTestOutput.from_dict(tests_item_data)

            tests.append(tests_item)

        measured = []
        _measured = d.pop("measured")
        for measured_item_data in _measured:
            measured_item = MeasuredOutput.from_dict(measured_item_data)

            measured.append(measured_item)

        version_output = cls(
            number=number,
            state=state,
            origin=origin,
            base=base,
            same_as=same_as,
            reason=reason,
            author=author,
            created_at=created_at,
            content_hash=content_hash,
            tests=tests,
            measured=measured,
        )

        version_output.additional_properties = d
        return version_output

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
