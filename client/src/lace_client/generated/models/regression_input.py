from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from ..models.blank_enum import BlankEnum
from ..models.regression_input_split_enum import RegressionInputSplitEnum
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.regression_input_prompts import RegressionInputPrompts


T = TypeVar("T", bound="RegressionInput")


@dataclass
class RegressionInput:
    """A test to start: a `criterion` and a `version`, or a `candidate_profile` for a whole judge.

    Attributes:
        set_ (str):
        split (BlankEnum | RegressionInputSplitEnum | Unset): '' is all splits.

            * `dev` - dev
            * `holdout` - holdout
            * `` -  Default: RegressionInputSplitEnum.DEV.
        criterion (str | Unset):
        version (int | Unset): Default: the newest version besides the champion.
        candidate_profile (str | Unset):
        prompts (RegressionInputPrompts | Unset): Versions by criterion, used with the candidate's profile.
        baseline_run (int | Unset): A finished run, instead of the champion's recipe.
        profile (str | Unset): The champion's recipe. Default: the default profile.
        policy (int | Unset): Default: the policy in force.
        noise (bool | Unset): Also run the champion a second time, to measure noise. Default: False.
        budget_usd (str | Unset): Budget of each run.
        client_id (UUID | Unset): Repeating it starts no second test.
    """

    set_: str
    split: BlankEnum | RegressionInputSplitEnum | Unset = RegressionInputSplitEnum.DEV
    criterion: str | Unset = UNSET
    version: int | Unset = UNSET
    candidate_profile: str | Unset = UNSET
    prompts: RegressionInputPrompts | Unset = UNSET
    baseline_run: int | Unset = UNSET
    profile: str | Unset = UNSET
    policy: int | Unset = UNSET
    noise: bool | Unset = False
    budget_usd: str | Unset = UNSET
    client_id: UUID | Unset = UNSET
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        set_ = self.set_

        split: str | Unset
        if isinstance(self.split, Unset):
            split = UNSET
        elif isinstance(self.split, RegressionInputSplitEnum):
            split = self.split.value
        else:
            split = self.split.value

        criterion = self.criterion

        version = self.version

        candidate_profile = self.candidate_profile

        prompts: dict[str, Any] | Unset = UNSET
        if not isinstance(self.prompts, Unset):
            prompts = self.prompts.to_dict()

        baseline_run = self.baseline_run

        profile = self.profile

        policy = self.policy

        noise = self.noise

        budget_usd = self.budget_usd

        client_id: str | Unset = UNSET
        if not isinstance(self.client_id, Unset):
            client_id = str(self.client_id)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "set": set_,
            }
        )
        if split is not UNSET:
            field_dict["split"] = split
        if criterion is not UNSET:
            field_dict["criterion"] = criterion
        if version is not UNSET:
            field_dict["version"] = version
        if candidate_profile is not UNSET:
            field_dict["candidate_profile"] = candidate_profile
        if prompts is not UNSET:
            field_dict["prompts"] = prompts
        if baseline_run is not UNSET:
            field_dict["baseline_run"] = baseline_run
        if profile is not UNSET:
            field_dict["profile"] = profile
        if policy is not UNSET:
            field_dict["policy"] = policy
        if noise is not UNSET:
            field_dict["noise"] = noise
        if budget_usd is not UNSET:
            field_dict["budget_usd"] = budget_usd
        if client_id is not UNSET:
            field_dict["client_id"] = client_id

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.regression_input_prompts import RegressionInputPrompts  # noqa: PLC0415

        d = dict(src_dict)
        set_ = d.pop("set")

        def _parse_split(data: object) -> BlankEnum | RegressionInputSplitEnum | Unset:
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                split_type_0 = RegressionInputSplitEnum(data)

                return split_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, str):
                raise TypeError()
            split_type_1 = BlankEnum(data)

            return split_type_1

        split = _parse_split(d.pop("split", UNSET))

        criterion = d.pop("criterion", UNSET)

        version = d.pop("version", UNSET)

        candidate_profile = d.pop("candidate_profile", UNSET)

        _prompts = d.pop("prompts", UNSET)
        prompts: RegressionInputPrompts | Unset
        if isinstance(_prompts, Unset):
            prompts = UNSET
        else:
            prompts = RegressionInputPrompts.from_dict(_prompts)

        baseline_run = d.pop("baseline_run", UNSET)

        profile = d.pop("profile", UNSET)

        policy = d.pop("policy", UNSET)

        noise = d.pop("noise", UNSET)

        budget_usd = d.pop("budget_usd", UNSET)

        _client_id = d.pop("client_id", UNSET)
        client_id: UUID | Unset
        if isinstance(_client_id, Unset):
            client_id = UNSET
        else:
            client_id = UUID(_client_id)

        regression_input = cls(
            set_=set_,
            split=split,
            criterion=criterion,
            version=version,
            candidate_profile=candidate_profile,
            prompts=prompts,
            baseline_run=baseline_run,
            profile=profile,
            policy=policy,
            noise=noise,
            budget_usd=budget_usd,
            client_id=client_id,
        )

        regression_input.additional_properties = d
        return regression_input

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
