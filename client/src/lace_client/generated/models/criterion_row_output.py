from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import Any, TypeVar, cast

T = TypeVar("T", bound="CriterionRowOutput")


@dataclass
class CriterionRowOutput:
    """A criterion: its text in force, its champion, and the newest version that awaits test or release.

    Attributes:
        key (str):
        rubric (str):
        dimension (str):
        tier (str):
        critical (bool):
        state (str):
        text_version (int):
        question (str):
        definition (str):
        passes_when (bool):
        allow_na (bool):
        champion (int | None):
        waiting (int | None):
        open_test (int | None):
    """

    key: str
    rubric: str
    dimension: str
    tier: str
    critical: bool
    state: str
    text_version: int
    question: str
    definition: str
    passes_when: bool
    allow_na: bool
    champion: int | None
    waiting: int | None
    open_test: int | None
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        key = self.key

        rubric = self.rubric

        dimension = self.dimension

        tier = self.tier

        critical = self.critical

        state = self.state

        text_version = self.text_version

        question = self.question

        definition = self.definition

        passes_when = self.passes_when

        allow_na = self.allow_na

        champion: int | None
        champion = self.champion

        waiting: int | None
        waiting = self.waiting

        open_test: int | None
        open_test = self.open_test

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "key": key,
                "rubric": rubric,
                "dimension": dimension,
                "tier": tier,
                "critical": critical,
                "state": state,
                "text_version": text_version,
                "question": question,
                "definition": definition,
                "passes_when": passes_when,
                "allow_na": allow_na,
                "champion": champion,
                "waiting": waiting,
                "open_test": open_test,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        key = d.pop("key")

        rubric = d.pop("rubric")

        dimension = d.pop("dimension")

        tier = d.pop("tier")

        critical = d.pop("critical")

        state = d.pop("state")

        text_version = d.pop("text_version")

        question = d.pop("question")

        definition = d.pop("definition")

        passes_when = d.pop("passes_when")

        allow_na = d.pop("allow_na")

        def _parse_champion(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        champion = _parse_champion(d.pop("champion"))

        def _parse_waiting(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        waiting = _parse_waiting(d.pop("waiting"))

        def _parse_open_test(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        open_test = _parse_open_test(d.pop("open_test"))

        criterion_row_output = cls(
            key=key,
            rubric=rubric,
            dimension=dimension,
            tier=tier,
            critical=critical,
            state=state,
            text_version=text_version,
            question=question,
            definition=definition,
            passes_when=passes_when,
            allow_na=allow_na,
            champion=champion,
            waiting=waiting,
            open_test=open_test,
        )

        criterion_row_output.additional_properties = d
        return criterion_row_output

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
