from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as _field
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from ..models.candidate_test_output import CandidateTestOutput
    from ..models.regression_output_bootstrap_type_0 import RegressionOutputBootstrapType0
    from ..models.regression_output_criteria_item import RegressionOutputCriteriaItem
    from ..models.regression_output_pooled_type_0 import RegressionOutputPooledType0
    from ..models.released_output import ReleasedOutput
    from ..models.runs_output import RunsOutput


T = TypeVar("T", bound="RegressionOutput")


@dataclass
class RegressionOutput:
    """A test: its state, the progress of its runs, and when it is done the result of `regress --json`.

    Attributes:
        test (int):
        kind (str): prompt, judge
        criterion (None | str):
        version (int | None):
        judge (str):
        set_ (str):
        split (str):
        state (str): running, confirming, done, cancelled
        gate (None | str): pass, fail or inconclusive; null before the decision.
        reasons (list[str]):
        released (None | ReleasedOutput):
        created_by (None | str):
        created_at (datetime.datetime):
        finished_at (datetime.datetime | None):
        policy (int):
        policy_version (str): Name and version of the policy that decided.
        run (int):
        baseline_run (int):
        cautions (list[str]):
        advice (None | str): What decides an inconclusive test.
        tests (list[CandidateTestOutput]): All tests of the candidate, newest first.
        needs_override (list[str]): Why a release from this test needs an override; empty if it needs none.
        warnings (list[str]):
        more_labels (int | None):
        bound (float | None): One-sided lower bound of the change in accuracy, as a share.
        criteria (list[RegressionOutputCriteriaItem]):
        pooled (None | RegressionOutputPooledType0):
        bootstrap (None | RegressionOutputBootstrapType0): Seed and number of resamples of the intervals.
        runs (list[RunsOutput]):
        seconds_left (float | None): Of all runs at the current pace; null if unknown.
    """

    test: int
    kind: str
    criterion: None | str
    version: int | None
    judge: str
    set_: str
    split: str
    state: str
    gate: None | str
    reasons: list[str]
    released: None | ReleasedOutput
    created_by: None | str
    created_at: datetime.datetime
    finished_at: datetime.datetime | None
    policy: int
    policy_version: str
    run: int
    baseline_run: int
    cautions: list[str]
    advice: None | str
    tests: list[CandidateTestOutput]
    needs_override: list[str]
    warnings: list[str]
    more_labels: int | None
    bound: float | None
    criteria: list[RegressionOutputCriteriaItem]
    pooled: None | RegressionOutputPooledType0
    bootstrap: None | RegressionOutputBootstrapType0
    runs: list[RunsOutput]
    seconds_left: float | None
    additional_properties: dict[str, Any] = _field(init=False, default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.regression_output_bootstrap_type_0 import RegressionOutputBootstrapType0  # noqa: PLC0415
        from ..models.regression_output_pooled_type_0 import RegressionOutputPooledType0  # noqa: PLC0415
        from ..models.released_output import ReleasedOutput  # noqa: PLC0415

        test = self.test

        kind = self.kind

        criterion: None | str
        criterion = self.criterion

        version: int | None
        version = self.version

        judge = self.judge

        set_ = self.set_

        split = self.split

        state = self.state

        gate: None | str
        gate = self.gate

        reasons = self.reasons

        released: dict[str, Any] | None
        if isinstance(self.released, ReleasedOutput):
            released = self.released.to_dict()
        else:
            released = self.released

        created_by: None | str
        created_by = self.created_by

        created_at = self.created_at.isoformat()

        finished_at: None | str
        if isinstance(self.finished_at, datetime.datetime):
            finished_at = self.finished_at.isoformat()
        else:
            finished_at = self.finished_at

        policy = self.policy

        policy_version = self.policy_version

        run = self.run

        baseline_run = self.baseline_run

        cautions = self.cautions

        advice: None | str
        advice = self.advice

        tests = []
        for tests_item_data in self.tests:
            tests_item = tests_item_data.to_dict()
            tests.append(tests_item)

        needs_override = self.needs_override

        warnings = self.warnings

        more_labels: int | None
        more_labels = self.more_labels

        bound: float | None
        bound = self.bound

        criteria = []
        for criteria_item_data in self.criteria:
            criteria_item = criteria_item_data.to_dict()
            criteria.append(criteria_item)

        pooled: dict[str, Any] | None
        if isinstance(self.pooled, RegressionOutputPooledType0):
            pooled = self.pooled.to_dict()
        else:
            pooled = self.pooled

        bootstrap: dict[str, Any] | None
        if isinstance(self.bootstrap, RegressionOutputBootstrapType0):
            bootstrap = self.bootstrap.to_dict()
        else:
            bootstrap = self.bootstrap

        runs = []
        for runs_item_data in self.runs:
            runs_item = runs_item_data.to_dict()
            runs.append(runs_item)

        seconds_left: float | None
        seconds_left = self.seconds_left

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "test": test,
                "kind": kind,
                "criterion": criterion,
                "version": version,
                "judge": judge,
                "set": set_,
                "split": split,
                "state": state,
                "gate": gate,
                "reasons": reasons,
                "released": released,
                "created_by": created_by,
                "created_at": created_at,
                "finished_at": finished_at,
                "policy": policy,
                "policy_version": policy_version,
                "run": run,
                "baseline_run": baseline_run,
                "cautions": cautions,
                "advice": advice,
                "tests": tests,
                "needs_override": needs_override,
                "warnings": warnings,
                "more_labels": more_labels,
                "bound": bound,
                "criteria": criteria,
                "pooled": pooled,
                "bootstrap": bootstrap,
                "runs": runs,
                "seconds_left": seconds_left,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.candidate_test_output import CandidateTestOutput  # noqa: PLC0415
        from ..models.regression_output_bootstrap_type_0 import RegressionOutputBootstrapType0  # noqa: PLC0415
        from ..models.regression_output_criteria_item import RegressionOutputCriteriaItem  # noqa: PLC0415
        from ..models.regression_output_pooled_type_0 import RegressionOutputPooledType0  # noqa: PLC0415
        from ..models.released_output import ReleasedOutput  # noqa: PLC0415
        from ..models.runs_output import RunsOutput  # noqa: PLC0415

        d = dict(src_dict)
        test = d.pop("test")

        kind = d.pop("kind")

        def _parse_criterion(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        criterion = _parse_criterion(d.pop("criterion"))

        def _parse_version(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        version = _parse_version(d.pop("version"))

        judge = d.pop("judge")

        set_ = d.pop("set")

        split = d.pop("split")

        state = d.pop("state")

        def _parse_gate(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        gate = _parse_gate(d.pop("gate"))

        reasons = cast(list[str], d.pop("reasons"))

        def _parse_released(data: object) -> None | ReleasedOutput:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                released_type_1 = ReleasedOutput.from_dict(data)

                return released_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ReleasedOutput, data)

        released = _parse_released(d.pop("released"))

        def _parse_created_by(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        created_by = _parse_created_by(d.pop("created_by"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_finished_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                finished_at_type_0 = datetime.datetime.fromisoformat(data)

                return finished_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        finished_at = _parse_finished_at(d.pop("finished_at"))

        policy = d.pop("policy")

        policy_version = d.pop("policy_version")

        run = d.pop("run")

        baseline_run = d.pop("baseline_run")

        cautions = cast(list[str], d.pop("cautions"))

        def _parse_advice(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        advice = _parse_advice(d.pop("advice"))

        tests = []
        _tests = d.pop("tests")
        for tests_item_data in _tests:
            tests_item = CandidateTestOutput.from_dict(tests_item_data)

            tests.append(tests_item)

        needs_override = cast(list[str], d.pop("needs_override"))

        warnings = cast(list[str], d.pop("warnings"))

        def _parse_more_labels(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        more_labels = _parse_more_labels(d.pop("more_labels"))

        def _parse_bound(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        bound = _parse_bound(d.pop("bound"))

        criteria = []
        _criteria = d.pop("criteria")
        for criteria_item_data in _criteria:
            criteria_item = RegressionOutputCriteriaItem.from_dict(criteria_item_data)

            criteria.append(criteria_item)

        def _parse_pooled(data: object) -> None | RegressionOutputPooledType0:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                pooled_type_0 = RegressionOutputPooledType0.from_dict(data)

                return pooled_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | RegressionOutputPooledType0, data)

        pooled = _parse_pooled(d.pop("pooled"))

        def _parse_bootstrap(data: object) -> None | RegressionOutputBootstrapType0:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                bootstrap_type_0 = RegressionOutputBootstrapType0.from_dict(data)

                return bootstrap_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | RegressionOutputBootstrapType0, data)

        bootstrap = _parse_bootstrap(d.pop("bootstrap"))

        runs = []
        _runs = d.pop("runs")
        for runs_item_data in _runs:
            runs_item = RunsOutput.from_dict(runs_item_data)

            runs.append(runs_item)

        def _parse_seconds_left(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        seconds_left = _parse_seconds_left(d.pop("seconds_left"))

        regression_output = cls(
            test=test,
            kind=kind,
            criterion=criterion,
            version=version,
            judge=judge,
            set_=set_,
            split=split,
            state=state,
            gate=gate,
            reasons=reasons,
            released=released,
            created_by=created_by,
            created_at=created_at,
            finished_at=finished_at,
            policy=policy,
            policy_version=policy_version,
            run=run,
            baseline_run=baseline_run,
            cautions=cautions,
            advice=advice,
            tests=tests,
            needs_override=needs_override,
            warnings=warnings,
            more_labels=more_labels,
            bound=bound,
            criteria=criteria,
            pooled=pooled,
            bootstrap=bootstrap,
            runs=runs,
            seconds_left=seconds_left,
        )

        regression_output.additional_properties = d
        return regression_output

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
