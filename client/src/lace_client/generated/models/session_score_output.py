from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import Any, TypeVar, cast

T = TypeVar("T", bound="SessionScoreOutput")


@dataclass
class SessionScoreOutput:
    """The session scores of a chat by the judge and, as `human_…`, by the raters.

    Attributes:
        chat_id (str):
        split (str):
        session_score (float | None): Share of applicable criteria that pass; 0 when a critical one fails; null without
            any.
        partial (bool): There is a score, and verdicts are missing.
        passed (int):
        applicable (int):
        missing (int):
        critical_failed (bool):
        human_session_score (float | None): Null also against each rater, as all fields of the raters.
        human_partial (bool | None):
        human_passed (int | None):
        human_applicable (int | None):
        human_missing (int | None):
        human_critical_failed (bool | None):
        subjective_counted (bool):
    """

    chat_id: str
    split: str
    session_score: float | None
    partial: bool
    passed: int
    applicable: int
    missing: int
    critical_failed: bool
    human_session_score: float | None
    human_partial: bool | None
    human_passed: int | None
    human_applicable: int | None
    human_missing: int | None
    human_critical_failed: bool | None
    subjective_counted: bool
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        chat_id = self.chat_id

        split = self.split

        session_score: float | None
        session_score = self.session_score

        partial = self.partial

        passed = self.passed

        applicable = self.applicable

        missing = self.missing

        critical_failed = self.critical_failed

        human_session_score: float | None
        human_session_score = self.human_session_score

        human_partial: bool | None
        human_partial = self.human_partial

        human_passed: int | None
        human_passed = self.human_passed

        human_applicable: int | None
        human_applicable = self.human_applicable

        human_missing: int | None
        human_missing = self.human_missing

        human_critical_failed: bool | None
        human_critical_failed = self.human_critical_failed

        subjective_counted = self.subjective_counted

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "chat_id": chat_id,
                "split": split,
                "session_score": session_score,
                "partial": partial,
                "passed": passed,
                "applicable": applicable,
                "missing": missing,
                "critical_failed": critical_failed,
                "human_session_score": human_session_score,
                "human_partial": human_partial,
                "human_passed": human_passed,
                "human_applicable": human_applicable,
                "human_missing": human_missing,
                "human_critical_failed": human_critical_failed,
                "subjective_counted": subjective_counted,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        chat_id = d.pop("chat_id")

        split = d.pop("split")

        def _parse_session_score(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        session_score = _parse_session_score(d.pop("session_score"))

        partial = d.pop("partial")

        passed = d.pop("passed")

        applicable = d.pop("applicable")

        missing = d.pop("missing")

        critical_failed = d.pop("critical_failed")

        def _parse_human_session_score(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        human_session_score = _parse_human_session_score(d.pop("human_session_score"))

        def _parse_human_partial(data: object) -> bool | None:
            if data is None:
                return data
            return cast(bool | None, data)

        human_partial = _parse_human_partial(d.pop("human_partial"))

        def _parse_human_passed(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        human_passed = _parse_human_passed(d.pop("human_passed"))

        def _parse_human_applicable(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        human_applicable = _parse_human_applicable(d.pop("human_applicable"))

        def _parse_human_missing(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        human_missing = _parse_human_missing(d.pop("human_missing"))

        def _parse_human_critical_failed(data: object) -> bool | None:
            if data is None:
                return data
            return cast(bool | None, data)

        human_critical_failed = _parse_human_critical_failed(d.pop("human_critical_failed"))

        subjective_counted = d.pop("subjective_counted")

        session_score_output = cls(
            chat_id=chat_id,
            split=split,
            session_score=session_score,
            partial=partial,
            passed=passed,
            applicable=applicable,
            missing=missing,
            critical_failed=critical_failed,
            human_session_score=human_session_score,
            human_partial=human_partial,
            human_passed=human_passed,
            human_applicable=human_applicable,
            human_missing=human_missing,
            human_critical_failed=human_critical_failed,
            subjective_counted=subjective_counted,
        )

        session_score_output.additional_properties = d
        return session_score_output

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
