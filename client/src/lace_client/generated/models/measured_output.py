from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from ..models.measured_output_balanced_accuracy import MeasuredOutputBalancedAccuracy
    from ..models.measured_output_confusion import MeasuredOutputConfusion
    from ..models.measured_output_tnr import MeasuredOutputTnr
    from ..models.measured_output_tpr import MeasuredOutputTpr


T = TypeVar("T", bound="MeasuredOutput")


@dataclass
class MeasuredOutput:
    """Agreement of judge and consensus on one split of a chat set; `ceiling` is the human ceiling.

    If chats were sampled by verdict, rates are weighted and do not follow from `confusion`.

        Attributes:
            set_ (str):
            split (str):
            run (int):
            judge (str):
            confusion (MeasuredOutputConfusion):
            no_verdict (int):
            drawn_by_verdict (int):
            balanced_accuracy (MeasuredOutputBalancedAccuracy):
            tpr (MeasuredOutputTpr):
            tnr (MeasuredOutputTnr):
            ceiling (float | None):
            status (None | str):
    """

    set_: str
    split: str
    run: int
    judge: str
    confusion: MeasuredOutputConfusion
    no_verdict: int
    drawn_by_verdict: int
    balanced_accuracy: MeasuredOutputBalancedAccuracy
    tpr: MeasuredOutputTpr
    tnr: MeasuredOutputTnr
    ceiling: float | None
    status: None | str
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        set_ = self.set_

        split = self.split

        run = self.run

        judge = self.judge

        confusion = self.confusion.to_dict()

        no_verdict = self.no_verdict

        drawn_by_verdict = self.drawn_by_verdict

        balanced_accuracy = self.balanced_accuracy.to_dict()

        tpr = self.tpr.to_dict()

        tnr = self.tnr.to_dict()

        ceiling: float | None
        ceiling = self.ceiling

        status: None | str
        status = self.status

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "set": set_,
                "split": split,
                "run": run,
                "judge": judge,
                "confusion": confusion,
                "no_verdict": no_verdict,
                "drawn_by_verdict": drawn_by_verdict,
                "balanced_accuracy": balanced_accuracy,
                "tpr": tpr,
                "tnr": tnr,
                "ceiling": ceiling,
                "status": status,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.measured_output_balanced_accuracy import MeasuredOutputBalancedAccuracy  # noqa: PLC0415
        from ..models.measured_output_confusion import MeasuredOutputConfusion  # noqa: PLC0415
        from ..models.measured_output_tnr import MeasuredOutputTnr  # noqa: PLC0415
        from ..models.measured_output_tpr import MeasuredOutputTpr  # noqa: PLC0415

        d = dict(src_dict)
        set_ = d.pop("set")

        split = d.pop("split")

        run = d.pop("run")

        judge = d.pop("judge")

        confusion = MeasuredOutputConfusion.from_dict(d.pop("confusion"))

        no_verdict = d.pop("no_verdict")

        drawn_by_verdict = d.pop("drawn_by_verdict")

        balanced_accuracy = MeasuredOutputBalancedAccuracy.from_dict(d.pop("balanced_accuracy"))

        tpr = MeasuredOutputTpr.from_dict(d.pop("tpr"))

        tnr = MeasuredOutputTnr.from_dict(d.pop("tnr"))

        def _parse_ceiling(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        ceiling = _parse_ceiling(d.pop("ceiling"))

        def _parse_status(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        status = _parse_status(d.pop("status"))

        measured_output = cls(
            set_=set_,
            split=split,
            run=run,
            judge=judge,
            confusion=confusion,
            no_verdict=no_verdict,
            drawn_by_verdict=drawn_by_verdict,
            balanced_accuracy=balanced_accuracy,
            tpr=tpr,
            tnr=tnr,
            ceiling=ceiling,
            status=status,
        )

        measured_output.additional_properties = d
        return measured_output

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
