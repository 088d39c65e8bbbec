from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from ..models.engine_enum import EngineEnum
from ..models.run_input_mode_enum import RunInputModeEnum
from ..models.split_enum import SplitEnum
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.run_input_efforts import RunInputEfforts
    from ..models.run_input_endpoints import RunInputEndpoints
    from ..models.run_input_models import RunInputModels
    from ..models.run_input_temperatures import RunInputTemperatures
    from ..models.run_input_windows_type_0 import RunInputWindowsType0


T = TypeVar("T", bound="RunInput")


@dataclass
class RunInput:
    """A run to start. The judge: a `profile`, an `engine`, or both; settings override the profile's.

    Attributes:
        set_ (str):
        profile (str | Unset):
        engine (EngineEnum | Unset): * `direct` - direct
            * `reflection` - reflection
            * `debate` - debate
            * `auto` - auto
        endpoint (str | Unset): Name or id of a connected endpoint; '' for the server's own.
        model (str | Unset):
        formatter (str | Unset):
        endpoints (RunInputEndpoints | Unset): By role, where it is another one.
        models (RunInputModels | Unset):
        temperatures (RunInputTemperatures | Unset):
        efforts (RunInputEfforts | Unset):
        grouping (str | Unset):
        knowledge (str | Unset):
        passage_tokens (int | Unset):
        embedding_model (str | Unset):
        samples (int | Unset):
        role_in (str | Unset):
        layout (str | Unset):
        windows (None | RunInputWindowsType0 | Unset):
        logprobs (bool | Unset):
        ablation (str | Unset):
        criteria (list[str] | Unset):
        split (SplitEnum | Unset): * `` -
            * `train` - train
            * `dev` - dev
            * `holdout` - holdout
        limit (int | Unset):
        replicate (int | Unset):
        mode (RunInputModeEnum | Unset): * `live` - One request a call
            * `batch` - Batch API, half price
        budget_usd (str | Unset):
        audit (float | Unset):
        max_in_flight (int | Unset):
        client_id (UUID | Unset): Repeating it starts no second run.
    """

    set_: str
    profile: str | Unset = UNSET
    engine: EngineEnum | Unset = UNSET
    endpoint: str | Unset = UNSET
    model: str | Unset = UNSET
    formatter: str | Unset = UNSET
    endpoints: RunInputEndpoints | Unset = UNSET
    models: RunInputModels | Unset = UNSET
    temperatures: RunInputTemperatures | Unset = UNSET
    efforts: RunInputEfforts | Unset = UNSET
    grouping: str | Unset = UNSET
    knowledge: str | Unset = UNSET
    passage_tokens: int | Unset = UNSET
    embedding_model: str | Unset = UNSET
    samples: int | Unset = UNSET
    role_in: str | Unset = UNSET
    layout: str | Unset = UNSET
    windows: None | RunInputWindowsType0 | Unset = UNSET
    logprobs: bool | Unset = UNSET
    ablation: str | Unset = UNSET
    criteria: list[str] | Unset = UNSET
    split: SplitEnum | Unset = UNSET
    limit: int | Unset = UNSET
    replicate: int | Unset = UNSET
    mode: RunInputModeEnum | Unset = UNSET
    budget_usd: str | Unset = UNSET
    audit: float | Unset = UNSET
    max_in_flight: int | Unset = UNSET
    client_id: UUID | Unset = UNSET
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.run_input_windows_type_0 import RunInputWindowsType0  # noqa: PLC0415

        set_ = self.set_

        profile = self.profile

        engine: str | Unset = UNSET
        if not isinstance(self.engine, Unset):
            engine = self.engine.value

        endpoint = self.endpoint

        model = self.model

        formatter = self.formatter

        endpoints: dict[str, Any] | Unset = UNSET
        if not isinstance(self.endpoints, Unset):
            endpoints = self.endpoints.to_dict()

        models: dict[str, Any] | Unset = UNSET
        if not isinstance(self.models, Unset):
            models = self.models.to_dict()

        temperatures: dict[str, Any] | Unset = UNSET
        if not isinstance(self.temperatures, Unset):
            temperatures = self.temperatures.to_dict()

        efforts: dict[str, Any] | Unset = UNSET
        if not isinstance(self.efforts, Unset):
            efforts = self.efforts.to_dict()

        grouping = self.grouping

        knowledge = self.knowledge

        passage_tokens = self.passage_tokens

        embedding_model = self.embedding_model

        samples = self.samples

        role_in = self.role_in

        layout = self.layout

        windows: dict[str, Any] | None | Unset
        if isinstance(self.windows, Unset):
            windows = UNSET
        elif isinstance(self.windows, RunInputWindowsType0):
            windows = self.windows.to_dict()
        else:
            windows = self.windows

        logprobs = self.logprobs

        ablation = self.ablation

        criteria: list[str] | Unset = UNSET
        if not isinstance(self.criteria, Unset):
            criteria = self.criteria

        split: str | Unset = UNSET
        if not isinstance(self.split, Unset):
            split = self.split.value

        limit = self.limit

        replicate = self.replicate

        mode: str | Unset = UNSET
        if not isinstance(self.mode, Unset):
            mode = self.mode.value

        budget_usd = self.budget_usd

        audit = self.audit

        max_in_flight = self.max_in_flight

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
        if profile is not UNSET:
            field_dict["profile"] = profile
        if engine is not UNSET:
            field_dict["engine"] = engine
        if endpoint is not UNSET:
            field_dict["endpoint"] = endpoint
        if model is not UNSET:
            field_dict["model"] = model
        if formatter is not UNSET:
            field_dict["formatter"] = formatter
        if endpoints is not UNSET:
            field_dict["endpoints"] = endpoints
        if models is not UNSET:
            field_dict["models"] = models
        if temperatures is not UNSET:
            field_dict["temperatures"] = temperatures
        if efforts is not UNSET:
            field_dict["efforts"] = efforts
        if grouping is not UNSET:
            field_dict["grouping"] = grouping
        if knowledge is not UNSET:
            field_dict["knowledge"] = knowledge
        if passage_tokens is not UNSET:
            field_dict["passage_tokens"] = passage_tokens
        if embedding_model is not UNSET:
            field_dict["embedding_model"] = embedding_model
        if samples is not UNSET:
            field_dict["samples"] = samples
        if role_in is not UNSET:
            field_dict["role_in"] = role_in
        if layout is not UNSET:
            field_dict["layout"] = layout
        if windows is not UNSET:
            field_dict["windows"] = windows
        if logprobs is not UNSET:
            field_dict["logprobs"] = logprobs
        if ablation is not UNSET:
            field_dict["ablation"] = ablation
        if criteria is not UNSET:
            field_dict["criteria"] = criteria
        if split is not UNSET:
            field_dict["split"] = split
        if limit is not UNSET:
            field_dict["limit"] = limit
        if replicate is not UNSET:
            field_dict["replicate"] = replicate
        if mode is not UNSET:
            field_dict["mode"] = mode
        if budget_usd is not UNSET:
            field_dict["budget_usd"] = budget_usd
        if audit is not UNSET:
            field_dict["audit"] = audit
        if max_in_flight is not UNSET:
            field_dict["max_in_flight"] = max_in_flight
        if client_id is not UNSET:
            field_dict["client_id"] = client_id

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.run_input_efforts import RunInputEfforts  # noqa: PLC0415
        from ..models.run_input_endpoints import RunInputEndpoints  # noqa: PLC0415
        from ..models.run_input_models import RunInputModels  # noqa: PLC0415
        from ..models.run_input_temperatures import RunInputTemperatures  # noqa: PLC0415
        from ..models.run_input_windows_type_0 import RunInputWindowsType0  # noqa: PLC0415

        d = dict(src_dict)
        set_ = d.pop("set")

        profile = d.pop("profile", UNSET)

        _engine = d.pop("engine", UNSET)
        engine: EngineEnum | Unset
        if isinstance(_engine, Unset):
            engine = UNSET
        else:
            engine = EngineEnum(_engine)

        endpoint = d.pop("endpoint", UNSET)

        model = d.pop("model", UNSET)

        formatter = d.pop("formatter", UNSET)

        _endpoints = d.pop("endpoints", UNSET)
        endpoints: RunInputEndpoints | Unset
        if isinstance(_endpoints, Unset):
            endpoints = UNSET
        else:
            endpoints = RunInputEndpoints.from_dict(_endpoints)

        _models = d.pop("models", UNSET)
        models: RunInputModels | Unset
        if isinstance(_models, Unset):
            models = UNSET
        else:
            models = RunInputModels.from_dict(_models)

        _temperatures = d.pop("temperatures", UNSET)
        temperatures: RunInputTemperatures | Unset
        if isinstance(_temperatures, Unset):
            temperatures = UNSET
        else:
            temperatures = RunInputTemperatures.from_dict(_temperatures)

        _efforts = d.pop("efforts", UNSET)
        efforts: RunInputEfforts | Unset
        if isinstance(_efforts, Unset):
            efforts = UNSET
        else:
            efforts = RunInputEfforts.from_dict(_efforts)

        grouping = d.pop("grouping", UNSET)

        knowledge = d.pop("knowledge", UNSET)

        passage_tokens = d.pop("passage_tokens", UNSET)

        embedding_model = d.pop("embedding_model", UNSET)

        samples = d.pop("samples", UNSET)

        role_in = d.pop("role_in", UNSET)

        layout = d.pop("layout", UNSET)

        def _parse_windows(data: object) -> None | RunInputWindowsType0 | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                windows_type_0 = RunInputWindowsType0.from_dict(data)

                return windows_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | RunInputWindowsType0 | Unset, data)

        windows = _parse_windows(d.pop("windows", UNSET))

        logprobs = d.pop("logprobs", UNSET)

        ablation = d.pop("ablation", UNSET)

        criteria = cast(list[str], d.pop("criteria", UNSET))

        _split = d.pop("split", UNSET)
        split: SplitEnum | Unset
        if isinstance(_split, Unset):
            split = UNSET
        else:
            split = SplitEnum(_split)

        limit = d.pop("limit", UNSET)

        replicate = d.pop("replicate", UNSET)

        _mode = d.pop("mode", UNSET)
        mode: RunInputModeEnum | Unset
        if isinstance(_mode, Unset):
            mode = UNSET
        else:
            mode = RunInputModeEnum(_mode)

        budget_usd = d.pop("budget_usd", UNSET)

        audit = d.pop("audit", UNSET)

        max_in_flight = d.pop("max_in_flight", UNSET)

        _client_id = d.pop("client_id", UNSET)
        client_id: UUID | Unset
        if isinstance(_client_id, Unset):
            client_id = UNSET
        else:
            client_id = UUID(_client_id)

        run_input = cls(
            set_=set_,
            profile=profile,
            engine=engine,
            endpoint=endpoint,
            model=model,
            formatter=formatter,
            endpoints=endpoints,
            models=models,
            temperatures=temperatures,
            efforts=efforts,
            grouping=grouping,
            knowledge=knowledge,
            passage_tokens=passage_tokens,
            embedding_model=embedding_model,
            samples=samples,
            role_in=role_in,
            layout=layout,
            windows=windows,
            logprobs=logprobs,
            ablation=ablation,
            criteria=criteria,
            split=split,
            limit=limit,
            replicate=replicate,
            mode=mode,
            budget_usd=budget_usd,
            audit=audit,
            max_in_flight=max_in_flight,
            client_id=client_id,
        )

        run_input.additional_properties = d
        return run_input

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
