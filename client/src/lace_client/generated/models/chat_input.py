from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import TYPE_CHECKING, Any, TypeVar

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.chat_input_metadata import ChatInputMetadata
    from ..models.message_input import MessageInput


T = TypeVar("T", bound="ChatInput")


@dataclass
class ChatInput:
    """A chat, as in a file of chats.

    Attributes:
        id (str):
        messages (list[MessageInput]):
        topic (str | Unset):
        started_at (datetime.datetime | Unset):
        unit_id (str | Unset): Unit that the experiment assigns to a variant.
        experiment (str | Unset):
        variant (str | Unset):
        cluster (str | Unset): Such as a customer.
        metadata (ChatInputMetadata | Unset):
    """

    id: str
    messages: list[MessageInput]
    topic: str | Unset = UNSET
    started_at: datetime.datetime | Unset = UNSET
    unit_id: str | Unset = UNSET
    experiment: str | Unset = UNSET
    variant: str | Unset = UNSET
    cluster: str | Unset = UNSET
    metadata: ChatInputMetadata | Unset = UNSET
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        messages = []
        for messages_item_data in self.messages:
            messages_item = messages_item_data.to_dict()
            messages.append(messages_item)

        topic = self.topic

        started_at: str | Unset = UNSET
        if not isinstance(self.started_at, Unset):
            started_at = self.started_at.isoformat()

        unit_id = self.unit_id

        experiment = self.experiment

        variant = self.variant

        cluster = self.cluster

        metadata: dict[str, Any] | Unset = UNSET
        if not isinstance(self.metadata, Unset):
            metadata = self.metadata.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "messages": messages,
            }
        )
        if topic is not UNSET:
            field_dict["topic"] = topic
        if started_at is not UNSET:
            field_dict["started_at"] = started_at
        if unit_id is not UNSET:
            field_dict["unit_id"] = unit_id
        if experiment is not UNSET:
            field_dict["experiment"] = experiment
        if variant is not UNSET:
            field_dict["variant"] = variant
        if cluster is not UNSET:
            field_dict["cluster"] = cluster
        if metadata is not UNSET:
            field_dict["metadata"] = metadata

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.chat_input_metadata import ChatInputMetadata  # noqa: PLC0415
        from ..models.message_input import MessageInput  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        messages = []
        _messages = d.pop("messages")
        for messages_item_data in _messages:
            messages_item = MessageInput.from_dict(messages_item_data)

            messages.append(messages_item)

        topic = d.pop("topic", UNSET)

        _started_at = d.pop("started_at", UNSET)
        started_at: datetime.datetime | Unset
        if isinstance(_started_at, Unset):
            started_at = UNSET
        else:
            started_at = datetime.datetime.fromisoformat(_started_at)

        unit_id = d.pop("unit_id", UNSET)

        experiment = d.pop("experiment", UNSET)

        variant = d.pop("variant", UNSET)

        cluster = d.pop("cluster", UNSET)

        _metadata = d.pop("metadata", UNSET)
        metadata: ChatInputMetadata | Unset
        if isinstance(_metadata, Unset):
            metadata = UNSET
        else:
            metadata = ChatInputMetadata.from_dict(_metadata)

        chat_input = cls(
            id=id,
            messages=messages,
            topic=topic,
            started_at=started_at,
            unit_id=unit_id,
            experiment=experiment,
            variant=variant,
            cluster=cluster,
            metadata=metadata,
        )

        chat_input.additional_properties = d
        return chat_input

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
