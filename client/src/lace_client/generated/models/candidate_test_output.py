from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import Any, TypeVar, cast

T = TypeVar("T", bound="CandidateTestOutput")


@dataclass
class CandidateTestOutput:
    """A test of the same candidate.

    Attributes:
        test (int):
        kind (str): prompt, judge
        set_ (str):
        split (str):
        state (str): running, confirming, done, cancelled
        gate (None | str):
        counts (bool): Whether a release considers it: the newest decided test on its set and split, or a FAIL there
            that no newer test replaced by a PASS under the policy in force.
        policy (str): Name and version.
        policy_in_force (bool):
        finished_at (None | str):
    """

    test: int
    kind: str
    set_: str
    split: str
    state: str
    gate: None | str
    counts: bool
    policy: str
    policy_in_force: bool
    finished_at: None | str
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        test = self.test

        kind = self.kind

        set_ = self.set_

        split = self.split

        state = self.state

        gate: None | str
        gate = self.gate

        counts = self.counts

        policy = self.policy

        policy_in_force = self.policy_in_force

        finished_at: None | str
        finished_at = self.finished_at

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "test": test,
                "kind": kind,
                "set": set_,
                "split": split,
                "state": state,
                "gate": gate,
                "counts": counts,
                "policy": policy,
                "policy_in_force": policy_in_force,
                "finished_at": finished_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        test = d.pop("test")

        kind = d.pop("kind")

        set_ = d.pop("set")

        split = d.pop("split")

        state = d.pop("state")

        def _parse_gate(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        gate = _parse_gate(d.pop("gate"))

        counts = d.pop("counts")

        policy = d.pop("policy")

        policy_in_force = d.pop("policy_in_force")

        def _parse_finished_at(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        finished_at = _parse_finished_at(d.pop("finished_at"))

        candidate_test_output = cls(
            test=test,
            kind=kind,
            set_=set_,
            split=split,
            state=state,
            gate=gate,
            counts=counts,
            policy=policy,
            policy_in_force=policy_in_force,
            finished_at=finished_at,
        )

        candidate_test_output.additional_properties = d
        return candidate_test_output

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
