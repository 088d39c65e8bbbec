from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ..models.finding_output import FindingOutput


T = TypeVar("T", bound="LintOutput")


@dataclass
class LintOutput:
    """The problems in a prompt; with `blocked` an error prevents saving. Warnings do not.

    Attributes:
        blocked (bool):
        findings (list[FindingOutput]):
    """

    blocked: bool
    findings: list[FindingOutput]
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        blocked = self.blocked

        findings = []
        for findings_item_data in self.findings:
            findings_item = findings_item_data.to_dict()
            findings.append(findings_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "blocked": blocked,
                "findings": findings,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.finding_output import FindingOutput  # noqa: PLC0415

        d = dict(src_dict)
        blocked = d.pop("blocked")

        findings = []
        _findings = d.pop("findings")
        for findings_item_data in _findings:
            findings_item = FindingOutput.from_dict(findings_item_data)

            findings.append(findings_item)

        lint_output = cls(
            blocked=blocked,
            findings=findings,
        )

        lint_output.additional_properties = d
        return lint_output

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
