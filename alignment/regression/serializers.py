"""Bodies of the API of regression tests."""

from decimal import Decimal
from typing import Any

from rest_framework import serializers

from alignment.models.regressions import Policy, RegressionTest
from alignment.regression.queries.candidate_tests import release_answer
from alignment.regression.queries.page import regression_progress
from alignment.regression.queries.plan import candidates, finished_runs
from alignment.regression.queries.tests import regression_answer
from alignment.regression.services.policies import policy_in_force
from alignment.regression.services.starts import RegressionRequest, profile_recipe, source_hash
from alignment.regression.services.tests import RegressionChoice
from common.api import StrictInput
from common.problems import FieldProblem
from evaluation.models.judges import JudgeProfile
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run
from evaluation.runs.queries.progress import progress_json
from labeling.models.chats import ChatSet, Split
from labeling.models.people import User
from labeling.models.rubric import Criterion

SPLITS = (Split.DEV.value, Split.HOLDOUT.value, "")


class RegressionInput(StrictInput):
    """A test to start: a `criterion` and a `version`, or a `candidate_profile` for a whole judge."""

    set = serializers.CharField(max_length=120)
    split = serializers.ChoiceField(
        SPLITS, default=Split.DEV.value, allow_blank=True, help_text="'' is all splits."
    )
    criterion = serializers.CharField(max_length=64, required=False)
    version = serializers.IntegerField(
        min_value=1, required=False, help_text="Default: the newest version besides the champion."
    )
    candidate_profile = serializers.CharField(max_length=120, required=False)
    prompts = serializers.DictField(
        child=serializers.IntegerField(min_value=1),
        required=False,
        help_text="Versions by criterion, used with the candidate's profile.",
    )
    baseline_run = serializers.IntegerField(
        min_value=1, required=False, help_text="A finished run, instead of the champion's recipe."
    )
    profile = serializers.CharField(
        max_length=120, required=False, help_text="The champion's recipe. Default: the default profile."
    )
    policy = serializers.IntegerField(min_value=1, required=False, help_text="Default: the policy in force.")
    noise = serializers.BooleanField(
        default=False, help_text="Also run the champion a second time, to measure noise."
    )
    budget_usd = serializers.DecimalField(
        12, 4, min_value=Decimal("0.0001"), required=False, help_text="Budget of each run."
    )
    client_id = serializers.UUIDField(required=False, help_text="Repeating it starts no second test.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require one candidate, and only the fields of its kind."""
        attrs = super().validate(attrs)
        if ("criterion" in attrs) == ("candidate_profile" in attrs):
            raise serializers.ValidationError(
                {"criterion": ["Name a criterion, or a candidate_profile for a whole judge."]}
            )
        of_judge = "candidate_profile" in attrs
        for name in ("version",) if of_judge else ("prompts", "baseline_run"):
            if name in attrs:
                kind = "one prompt" if of_judge else "a whole judge"
                raise serializers.ValidationError({name: [f"Belongs to a test of {kind}."]})
        return attrs

    def wish(self, by: User) -> RegressionRequest:
        """Return the test to start. Raises FieldProblem for an unknown name or id."""
        body = self.validated_data
        chat_set = ChatSet.objects.select_related("rubric").filter(name=body["set"]).first()
        if chat_set is None:
            raise FieldProblem("set", f"There is no chat set {body['set']!r}.")
        if "criterion" in body:
            candidate = _candidate(body["criterion"], body.get("version"))
            return RegressionRequest(choice=_choice(body, chat_set, by), candidate=candidate)
        candidate_profile = _profile("candidate_profile", body["candidate_profile"])
        baseline = _baseline(body.get("baseline_run"))
        profile = baseline.judge.profile if baseline else None
        return RegressionRequest(
            choice=_choice(body, chat_set, by, profile=profile, candidate_profile=candidate_profile),
            judge=profile_recipe(candidate_profile)[1],
            baseline=baseline,
            prompts=[_candidate(key, number) for key, number in sorted(body.get("prompts", {}).items())],
        )


class ReleaseInput(StrictInput):
    """How to release a candidate; without `needs_override` no fields are needed."""

    override = serializers.BooleanField(
        default=False, help_text="Release in spite of `needs_override`; requires a reason."
    )
    reason = serializers.CharField(max_length=2000, default="", allow_blank=True)


class RunsOutput(serializers.Serializer[Any]):
    """A run of a test."""

    what = serializers.CharField()
    run = serializers.IntegerField()
    state = serializers.CharField(help_text=", ".join(Run.State.values))
    units = serializers.IntegerField()
    units_done = serializers.IntegerField()
    units_failed = serializers.IntegerField()
    calls = serializers.IntegerField()
    reused = serializers.IntegerField()
    cost_usd = serializers.FloatField(allow_null=True)
    seconds_left = serializers.FloatField(allow_null=True)


class ReleasedOutput(serializers.Serializer[Any]):
    """The release of the candidate."""

    by = serializers.CharField()
    at = serializers.DateTimeField()
    reason = serializers.CharField()
    overridden = serializers.BooleanField()


class RegressionRowOutput(serializers.Serializer[Any]):
    """A test in a list."""

    test = serializers.IntegerField()
    kind = serializers.CharField(help_text=", ".join(RegressionTest.Kind.values))
    criterion = serializers.CharField(allow_null=True)
    version = serializers.IntegerField(allow_null=True)
    judge = serializers.CharField()
    set = serializers.CharField()
    split = serializers.CharField(allow_blank=True)
    state = serializers.CharField(help_text=", ".join(RegressionTest.State.values))
    gate = serializers.CharField(
        allow_null=True, help_text="pass, fail or inconclusive; null before the decision."
    )
    reasons = serializers.ListField(child=serializers.CharField())
    released = ReleasedOutput(allow_null=True)
    created_by = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class CandidateTestOutput(serializers.Serializer[Any]):
    """A test of the same candidate."""

    test = serializers.IntegerField()
    kind = serializers.CharField(help_text=", ".join(RegressionTest.Kind.values))
    set = serializers.CharField()
    split = serializers.CharField(allow_blank=True)
    state = serializers.CharField(help_text=", ".join(RegressionTest.State.values))
    gate = serializers.CharField(allow_null=True)
    counts = serializers.BooleanField(
        help_text="Whether a release considers it: the newest decided test on its set and split, or a FAIL "
        "there that no newer test replaced by a PASS under the policy in force."
    )
    policy = serializers.CharField(help_text="Name and version.")
    policy_in_force = serializers.BooleanField()
    finished_at = serializers.CharField(allow_null=True)


class RegressionOutput(RegressionRowOutput):
    """A test: its state, the progress of its runs, and when it is done the result of `regress --json`."""

    policy = serializers.IntegerField()
    policy_version = serializers.CharField(help_text="Name and version of the policy that decided.")
    run = serializers.IntegerField()
    baseline_run = serializers.IntegerField()
    cautions = serializers.ListField(child=serializers.CharField())
    advice = serializers.CharField(
        allow_blank=True, allow_null=True, help_text="What decides an inconclusive test."
    )
    tests = CandidateTestOutput(many=True, help_text="All tests of the candidate, newest first.")
    needs_override = serializers.ListField(
        child=serializers.CharField(),
        help_text="Why a release from this test needs an override; empty if it needs none.",
    )
    warnings = serializers.ListField(child=serializers.CharField())
    more_labels = serializers.IntegerField(allow_null=True)
    bound = serializers.FloatField(
        allow_null=True, help_text="One-sided lower bound of the change in accuracy, as a share."
    )
    criteria = serializers.ListField(child=serializers.DictField())
    pooled = serializers.DictField(allow_null=True)
    bootstrap = serializers.DictField(
        allow_null=True, help_text="Seed and number of resamples of the intervals."
    )
    runs = RunsOutput(many=True)
    seconds_left = serializers.FloatField(
        allow_null=True, help_text="Of all runs at the current pace; null if unknown."
    )


class LabelledOutput(serializers.Serializer[Any]):
    """Labelled chats of one criterion of the test."""

    criterion = serializers.CharField()
    true = serializers.IntegerField()
    false = serializers.IntegerField()
    blocks = serializers.BooleanField()
    more_labels = serializers.CharField(
        help_text="Chats to label for a status, ±6 points and the gate; '' if none."
    )


class OpenedOutput(serializers.Serializer[Any]):
    """Uses of the holdout for the criterion with the most uses."""

    criterion = serializers.CharField()
    times = serializers.IntegerField()
    last = serializers.DateTimeField()
    often = serializers.BooleanField(help_text="True when the pages warn about the number of uses.")


class EstimateOutput(serializers.Serializer[Any]):
    """Calls, cost and power of a test."""

    calls = serializers.IntegerField()
    reused = serializers.IntegerField()
    confirming_calls = serializers.IntegerField(help_text="At most, if the candidate fails.")
    cost_usd = serializers.FloatField(allow_null=True)
    fits_budget = serializers.BooleanField(allow_null=True)
    seconds = serializers.FloatField(
        allow_null=True, help_text="At the pace of earlier runs; null if unknown."
    )
    runs = serializers.DictField(child=serializers.DictField())
    labelled = LabelledOutput(many=True)
    sight = serializers.CharField()
    opens_holdout = serializers.BooleanField()
    opened = OpenedOutput(allow_null=True, help_text="Null if the holdout was never used for these criteria.")


def regression_row(test: RegressionTest) -> dict[str, Any]:
    """Return a test as the list shows it."""
    return {
        "test": test.pk,
        "kind": test.kind,
        "criterion": test.candidate.criterion.key if test.candidate else None,
        "version": test.candidate.number if test.candidate else None,
        "judge": test.candidate_run.judge.name,
        "set": test.chat_set.name,
        "split": test.split,
        "state": test.state,
        "gate": test.result or None,
        "reasons": test.reasons,
        "released": _released(test),
        "created_by": test.created_by.get_username() if test.created_by else None,
        "created_at": test.created_at,
        "finished_at": test.finished_at,
    }


def regression_body(test: RegressionTest) -> dict[str, Any]:
    """Return a test with its results and runs."""
    answer, progress = regression_answer(test), regression_progress(test)
    return {
        "cautions": [],
        "advice": "",
        "more_labels": None,
        "bound": None,
        "criteria": [],
        "pooled": None,
        "bootstrap": None,
        **{
            name: answer[name]
            for name in ("cautions", "advice", "more_labels", "bound", "criteria", "pooled", "bootstrap")
            if name in answer
        },
        **regression_row(test),
        **{name: value for name, value in release_answer(test).items() if name != "created_by"},
        "policy": test.policy_id,
        "policy_version": answer["policy_version"],
        "run": test.candidate_run_id,
        "baseline_run": test.baseline_run_id,
        "runs": [
            {"what": row.role, "run": row.run.pk, **progress_json(row.progress)} for row in progress["runs"]
        ],
        "seconds_left": progress["seconds_left"],
    }


def _released(test: RegressionTest) -> dict[str, Any] | None:
    if test.released_at is None:
        return None
    return {
        "by": test.released_by.get_username() if test.released_by else "",
        "at": test.released_at,
        "reason": test.release_reason,
        "overridden": test.overridden,
    }


def _choice(
    body: dict[str, Any],
    chat_set: ChatSet,
    by: User,
    *,
    profile: JudgeProfile | None = None,
    candidate_profile: JudgeProfile | None = None,
) -> RegressionChoice:
    named = _profile("profile", body["profile"]) if "profile" in body else profile
    row, judge = profile_recipe(named)
    client_id = body.get("client_id")
    return RegressionChoice(
        chat_set=chat_set,
        split=body["split"],
        judge=judge,
        policy=_policy(body.get("policy"), by),
        noise=body["noise"],
        budget_usd=body.get("budget_usd"),
        profile=row,
        candidate_profile=candidate_profile,
        source_hash=source_hash(str(by.pk), str(client_id)) if client_id else "",
    )


def _candidate(key: str, number: int | None) -> PromptVersion:
    """Return a version by criterion and number, by default the newest besides the champion."""
    criterion = Criterion.objects.filter(key=key).first()
    if criterion is None:
        raise FieldProblem("criterion", f"There is no criterion {key!r}.")
    if number is not None:
        rows = PromptVersion.objects.filter(criterion=criterion, number=number).select_related("criterion")
        if (version := rows.first()) is None:
            raise FieldProblem("version", f"{key} has no version {number}.")
        return version
    if not (versions := candidates(criterion)):
        raise FieldProblem("version", f"{key} has no version besides its champion.")
    return versions[0]


def _profile(field: str, name: str) -> JudgeProfile:
    row = JudgeProfile.objects.filter(name=name).first()
    if row is None:
        raise FieldProblem(field, f"There is no judge profile {name!r}.")
    return row


def _policy(pk: int | None, by: User) -> Policy:
    """Return the policy in force, or for users who may release another one: it decides who may release."""
    in_force = policy_in_force()
    if pk is None or pk == in_force.pk:
        return in_force
    if not by.has_perm("labeling.release_prompts"):
        raise FieldProblem("policy", "Only users who may release can choose a policy that is not in force.")
    row = Policy.objects.filter(pk=pk, kind=Policy.Kind.GATE).first()
    if row is None:
        raise FieldProblem("policy", f"There is no policy {pk}.")
    return row


def _baseline(pk: int | None) -> Run | None:
    if pk is None:
        return None
    run = next((run for run in finished_runs(most=None) if run.pk == pk), None)
    if run is None:
        raise FieldProblem("baseline_run", f"There is no finished run {pk}.")
    return run
