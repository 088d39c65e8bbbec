from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import Any, TypeVar

T = TypeVar("T", bound="SetOutput")


@dataclass
class SetOutput:
    """A chat set with its numbers of chats and open jobs.

    Attributes:
        id (int):
        name (str):
        kind (str):
        rubric (str):
        chats (int):
        train (int):
        dev (int):
        holdout (int):
        labelled (int):
        open_jobs (int):
    """

    id: int
    name: str
    kind: str
    rubric: str
    chats: int
    train: int
    dev: int
    holdout: int
    labelled: int
    open_jobs: int
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        name = self.name

        kind = self.kind

        rubric = self.rubric

        chats = self.chats

        train = self.train

        dev = self.dev

        holdout = self.holdout

        labelled = self.labelled

        open_jobs = self.open_jobs

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "name": name,
                "kind": kind,
                "rubric": rubric,
                "chats": chats,
                "train": train,
                "dev": dev,
                "holdout": holdout,
                "labelled": labelled,
                "open_jobs": open_jobs,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        name = d.pop("name")

        kind = d.pop("kind")

        rubric = d.pop("rubric")

        chats = d.pop("chats")

        train = d.pop("train")

        dev = d.pop("dev")

        holdout = d.pop("holdout")

        labelled = d.pop("labelled")

        open_jobs = d.pop("open_jobs")

        set_output = cls(
            id=id,
            name=name,
            kind=kind,
            rubric=rubric,
            chats=chats,
            train=train,
            dev=dev,
            holdout=holdout,
            labelled=labelled,
            open_jobs=open_jobs,
        )

        set_output.additional_properties = d
        return set_output

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
