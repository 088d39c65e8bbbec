from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from ..models.estimate_output_runs import EstimateOutputRuns
    from ..models.labelled_output import LabelledOutput
    from ..models.opened_output import OpenedOutput


T = TypeVar("T", bound="EstimateOutput")


@dataclass
class EstimateOutput:
    """Calls, cost and power of a test.

    Attributes:
        calls (int):
        reused (int):
        confirming_calls (int): At most, if the candidate fails.
        cost_usd (float | None):
        fits_budget (bool | None):
        seconds (float | None): At the pace of earlier runs; null if unknown.
        runs (EstimateOutputRuns):
        labelled (list[LabelledOutput]):
        sight (str):
        opens_holdout (bool):
        opened (None | OpenedOutput): Null if the holdout was never used for these criteria.
    """

    calls: int
    reused: int
    confirming_calls: int
    cost_usd: float | None
    fits_budget: bool | None
    seconds: float | None
    runs: EstimateOutputRuns
    labelled: list[LabelledOutput]
    sight: str
    opens_holdout: bool
    opened: None | OpenedOutput
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.opened_output import OpenedOutput  # noqa: PLC0415

        calls = self.calls

        reused = self.reused

        confirming_calls = self.confirming_calls

        cost_usd: float | None
        cost_usd = self.cost_usd

        fits_budget: bool | None
        fits_budget = self.fits_budget

        seconds: float | None
        seconds = self.seconds

        runs = self.runs.to_dict()

        labelled = []
        for labelled_item_data in self.labelled:
            labelled_item = labelled_item_data.to_dict()
            labelled.append(labelled_item)

        sight = self.sight

        opens_holdout = self.opens_holdout

        opened: dict[str, Any] | None
        if isinstance(self.opened, OpenedOutput):
            opened = self.opened.to_dict()
        else:
            opened = self.opened

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "calls": calls,
                "reused": reused,
                "confirming_calls": confirming_calls,
                "cost_usd": cost_usd,
                "fits_budget": fits_budget,
                "seconds": seconds,
                "runs": runs,
                "labelled": labelled,
                "sight": sight,
                "opens_holdout": opens_holdout,
                "opened": opened,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.estimate_output_runs import EstimateOutputRuns  # noqa: PLC0415
        from ..models.labelled_output import LabelledOutput  # noqa: PLC0415
        from ..models.opened_output import OpenedOutput  # noqa: PLC0415

        d = dict(src_dict)
        calls = d.pop("calls")

        reused = d.pop("reused")

        confirming_calls = d.pop("confirming_calls")

        def _parse_cost_usd(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        cost_usd = _parse_cost_usd(d.pop("cost_usd"))

        def _parse_fits_budget(data: object) -> bool | None:
            if data is None:
                return data
            return cast(bool | None, data)

        fits_budget = _parse_fits_budget(d.pop("fits_budget"))

        def _parse_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        seconds = _parse_seconds(d.pop("seconds"))

        runs = EstimateOutputRuns.from_dict(d.pop("runs"))

        labelled = []
        _labelled = d.pop("labelled")
        for labelled_item_data in _labelled:
            labelled_item = LabelledOutput.from_dict(labelled_item_data)

            labelled.append(labelled_item)

        sight = d.pop("sight")

        opens_holdout = d.pop("opens_holdout")

        def _parse_opened(data: object) -> None | OpenedOutput:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                opened_type_1 = OpenedOutput.from_dict(data)

                return opened_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | OpenedOutput, data)

        opened = _parse_opened(d.pop("opened"))

        estimate_output = cls(
            calls=calls,
            reused=reused,
            confirming_calls=confirming_calls,
            cost_usd=cost_usd,
            fits_budget=fits_budget,
            seconds=seconds,
            runs=runs,
            labelled=labelled,
            sight=sight,
            opens_holdout=opens_holdout,
            opened=opened,
        )

        estimate_output.additional_properties = d
        return estimate_output

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
