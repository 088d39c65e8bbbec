from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ..models.chats_output_ignored import ChatsOutputIgnored
    from ..models.chats_output_redactions import ChatsOutputRedactions
    from ..models.row_problem_output import RowProblemOutput


T = TypeVar("T", bound="ChatsOutput")


@dataclass
class ChatsOutput:
    """Counts and errors of a request; `ignored` counts the chats with each unknown field.

    Attributes:
        received (int):
        created (int):
        updated (int):
        unchanged (int):
        refused (int):
        ignored (ChatsOutputIgnored):
        redactions (ChatsOutputRedactions):
        errors (list[RowProblemOutput]):
    """

    received: int
    created: int
    updated: int
    unchanged: int
    refused: int
    ignored: ChatsOutputIgnored
    redactions: ChatsOutputRedactions
    errors: list[RowProblemOutput]
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        received = self.received

        created = self.created

        updated = self.updated

        unchanged = self.unchanged

        refused = self.refused

        ignored = self.ignored.to_dict()

        redactions = self.redactions.to_dict()

        errors = []
        for errors_item_data in self.errors:
            errors_item = errors_item_data.to_dict()
            errors.append(errors_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "received": received,
                "created": created,
                "updated": updated,
                "unchanged": unchanged,
                "refused": refused,
                "ignored": ignored,
                "redactions": redactions,
                "errors": errors,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.chats_output_ignored import ChatsOutputIgnored  # noqa: PLC0415
        from ..models.chats_output_redactions import ChatsOutputRedactions  # noqa: PLC0415
        from ..models.row_problem_output import RowProblemOutput  # noqa: PLC0415

        d = dict(src_dict)
        received = d.pop("received")

        created = d.pop("created")

        updated = d.pop("updated")

        unchanged = d.pop("unchanged")

        refused = d.pop("refused")

        ignored = ChatsOutputIgnored.from_dict(d.pop("ignored"))

        redactions = ChatsOutputRedactions.from_dict(d.pop("redactions"))

        errors = []
        _errors = d.pop("errors")
        for errors_item_data in _errors:
            errors_item = RowProblemOutput.from_dict(errors_item_data)

            errors.append(errors_item)

        chats_output = cls(
            received=received,
            created=created,
            updated=updated,
            unchanged=unchanged,
            refused=refused,
            ignored=ignored,
            redactions=redactions,
            errors=errors,
        )

        chats_output.additional_properties = d
        return chats_output

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
