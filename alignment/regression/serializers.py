"""What the API of regression tests takes and gives."""

from decimal import Decimal
from typing import Any

from rest_framework import serializers

from alignment.models.regressions import Policy, RegressionTest
from alignment.regression.queries.page import regression_progress
from alignment.regression.queries.plan import candidates, finished_runs
from alignment.regression.queries.tests import regression_answer
from alignment.regression.services.policies import policy_in_force
from alignment.regression.services.starts import RegressionRequest, profile_recipe, source_hash
from alignment.regression.services.tests import RegressionChoice
from common.problems import FieldProblem
from evaluation.models.judges import JudgeProfile
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run
from evaluation.runs.queries.progress import progress_json
from labeling.models.chats import ChatSet, Split
from labeling.models.people import User
from labeling.models.rubric import Criterion

SPLITS = (Split.DEV.value, Split.HOLDOUT.value, "")


class StrictInput(serializers.Serializer[Any]):
    """A body of which every name is known."""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """NB: a misspelt setting must not be dropped in silence: it may cost money, or release something."""
        given = self.initial_data if isinstance(self.initial_data, dict) else {}
        if unknown := {str(name): ["This is no setting here."] for name in given if name not in self.fields}:
            raise serializers.ValidationError(unknown)
        return attrs


class RegressionInput(StrictInput):
    """A test to start: `criterion` and `version`, or `candidate_profile` for a whole judge."""

    set = serializers.CharField(max_length=120)
    split = serializers.ChoiceField(
        SPLITS, default=Split.DEV.value, allow_blank=True, help_text="'' is all splits."
    )
    criterion = serializers.CharField(max_length=64, required=False)
    version = serializers.IntegerField(
        min_value=1, required=False, help_text="Default: the newest that is not the champion."
    )
    candidate_profile = serializers.CharField(max_length=120, required=False)
    prompts = serializers.DictField(
        child=serializers.IntegerField(min_value=1),
        required=False,
        help_text="Versions by criterion that go with the candidate's profile.",
    )
    baseline_run = serializers.IntegerField(
        min_value=1, required=False, help_text="A finished run in place of the champion's recipe."
    )
    profile = serializers.CharField(
        max_length=120, required=False, help_text="The champion's recipe. Default: the default profile."
    )
    policy = serializers.IntegerField(min_value=1, required=False, help_text="Default: the policy in force.")
    noise = serializers.BooleanField(default=False, help_text="Ask the champion once more.")
    budget_usd = serializers.DecimalField(
        12, 4, min_value=Decimal("0.0001"), required=False, help_text="Of each run."
    )
    client_id = serializers.UUIDField(required=False, help_text="The same again starts no second test.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """One candidate, and what belongs to it."""
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
        """What was asked for. Raises FieldProblem by the name of what there is not."""
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
    """How a candidate is released; a test that passed needs nothing."""

    override = serializers.BooleanField(
        default=False, help_text="Release what the gate has not passed; needs a reason."
    )
    reason = serializers.CharField(max_length=2000, default="", allow_blank=True)


class RunsOutput(serializers.Serializer[Any]):
    """One run of a test."""

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
    """Who released the candidate, and why."""

    by = serializers.CharField()
    at = serializers.DateTimeField()
    reason = serializers.CharField()
    overridden = serializers.BooleanField()


class RegressionRowOutput(serializers.Serializer[Any]):
    """A test in the list."""

    test = serializers.IntegerField()
    kind = serializers.CharField(help_text=", ".join(RegressionTest.Kind.values))
    criterion = serializers.CharField(allow_null=True)
    version = serializers.IntegerField(allow_null=True)
    judge = serializers.CharField()
    set = serializers.CharField()
    split = serializers.CharField(allow_blank=True)
    state = serializers.CharField(help_text=", ".join(RegressionTest.State.values))
    gate = serializers.CharField(allow_null=True, help_text="pass, fail, inconclusive; null until then.")
    reasons = serializers.ListField(child=serializers.CharField())
    released = ReleasedOutput(allow_null=True)
    created_by = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class RegressionOutput(RegressionRowOutput):
    """A test: what `regress --json` says once it is done, its state, and how far its runs are."""

    policy = serializers.IntegerField()
    run = serializers.IntegerField()
    baseline_run = serializers.IntegerField()
    more_labels = serializers.IntegerField(allow_null=True)
    criteria = serializers.ListField(child=serializers.DictField())
    pooled = serializers.DictField(allow_null=True)
    bootstrap = serializers.DictField(allow_null=True, help_text="Seed and resamples behind the intervals.")
    runs = RunsOutput(many=True)
    seconds_left = serializers.FloatField(
        allow_null=True, help_text="Of all runs at today's pace; null where none is known."
    )


class LabelledOutput(serializers.Serializer[Any]):
    """Chats that people answered, for one criterion of the test."""

    criterion = serializers.CharField()
    true = serializers.IntegerField()
    false = serializers.IntegerField()
    blocks = serializers.BooleanField()


class OpenedOutput(serializers.Serializer[Any]):
    """How often the holdout was opened for the criterion it was opened for most."""

    criterion = serializers.CharField()
    times = serializers.IntegerField()
    last = serializers.DateTimeField()
    often = serializers.BooleanField(help_text="Whether it was opened so often that pages warn.")


class EstimateOutput(serializers.Serializer[Any]):
    """What a test would ask and cost, and what it could show."""

    calls = serializers.IntegerField()
    reused = serializers.IntegerField()
    confirming_calls = serializers.IntegerField(help_text="At most, where the candidate fails.")
    cost_usd = serializers.FloatField(allow_null=True)
    fits_budget = serializers.BooleanField(allow_null=True)
    seconds = serializers.FloatField(
        allow_null=True, help_text="At the pace of earlier runs; null with nothing to go by."
    )
    runs = serializers.DictField(child=serializers.DictField())
    labelled = LabelledOutput(many=True)
    sight = serializers.CharField()
    opens_holdout = serializers.BooleanField()
    opened = OpenedOutput(allow_null=True, help_text="Null where it was never opened for these criteria.")


def regression_row(test: RegressionTest) -> dict[str, Any]:
    """A test as the list answers it."""
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
    """A test with its findings and its runs."""
    found, progress = regression_answer(test), regression_progress(test)
    return {
        "more_labels": None,
        "criteria": [],
        "pooled": None,
        "bootstrap": None,
        **{name: found[name] for name in ("more_labels", "criteria", "pooled", "bootstrap") if name in found},
        **regression_row(test),
        "policy": test.policy_id,
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
    mark = body.get("client_id")
    return RegressionChoice(
        chat_set=chat_set,
        split=body["split"],
        judge=judge,
        policy=_policy(body.get("policy"), by),
        noise=body["noise"],
        budget_usd=body.get("budget_usd"),
        profile=row,
        candidate_profile=candidate_profile,
        source_hash=source_hash(str(by.pk), str(mark)) if mark else "",
    )


def _candidate(key: str, number: int | None) -> PromptVersion:
    """A version by criterion and number; without a number the newest that is not the champion."""
    criterion = Criterion.objects.filter(key=key).first()
    if criterion is None:
        raise FieldProblem("criterion", f"There is no criterion {key!r}.")
    if number is not None:
        row = PromptVersion.objects.filter(criterion=criterion, number=number).select_related("criterion")
        if (found := row.first()) is None:
            raise FieldProblem("version", f"{key} has no version {number}.")
        return found
    if not (versions := candidates(criterion)):
        raise FieldProblem("version", f"{key} has no version beside its champion.")
    return versions[0]


def _profile(field: str, name: str) -> JudgeProfile:
    row = JudgeProfile.objects.filter(name=name).first()
    if row is None:
        raise FieldProblem(field, f"There is no judge profile {name!r}.")
    return row


def _policy(pk: int | None, by: User) -> Policy:
    """The policy in force; another one for those who release, for it says who may release what it passes."""
    in_force = policy_in_force()
    if pk is None or pk == in_force.pk:
        return in_force
    if not by.has_perm("labeling.release_prompts"):
        raise FieldProblem("policy", "Only who may release chooses another than the one in force.")
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
