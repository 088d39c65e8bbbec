"""Bodies of the API of runs."""

import hashlib
from decimal import Decimal
from typing import Any

from rest_framework import serializers

from common.api import RowOutput, StrictInput
from evaluation.judges.core.spec import LONGEST_NAME, MOST_SAMPLES
from evaluation.models.judges import Engine
from evaluation.models.runs import Run
from evaluation.runs.queries.progress import progress_json, run_progress
from evaluation.runs.services.runs import RunChoice
from labeling.models.chats import Split
from labeling.models.people import User

MOST_IN_FLIGHT = 1024
# Everything else is the judge's recipe, which evaluation.judges.core.spec reads.
RUN_FIELDS = (
    "set",
    "profile",
    "criteria",
    "split",
    "limit",
    "replicate",
    "mode",
    "budget_usd",
    "audit",
    "max_in_flight",
    "client_id",
)


class RunInput(StrictInput):
    """A run to start. The judge: a `profile`, an `engine`, or both; settings override the profile's."""

    set = serializers.CharField(max_length=120)
    profile = serializers.CharField(max_length=120, required=False)
    engine = serializers.ChoiceField(Engine.choices, required=False)
    endpoint = serializers.CharField(
        max_length=LONGEST_NAME,
        required=False,
        allow_blank=True,
        help_text="Name or id of a connected endpoint; '' for the server's own.",
    )
    model = serializers.CharField(max_length=LONGEST_NAME, required=False, allow_blank=True)
    formatter = serializers.CharField(max_length=LONGEST_NAME, required=False, allow_blank=True)
    endpoints = serializers.DictField(
        child=serializers.CharField(), required=False, help_text="By role, where it is another one."
    )
    models = serializers.DictField(child=serializers.CharField(), required=False)
    temperatures = serializers.DictField(child=serializers.FloatField(), required=False)
    efforts = serializers.DictField(child=serializers.CharField(), required=False)
    grouping = serializers.CharField(required=False)
    knowledge = serializers.CharField(required=False)
    passage_tokens = serializers.IntegerField(min_value=1, required=False)
    embedding_model = serializers.CharField(max_length=LONGEST_NAME, required=False, allow_blank=True)
    samples = serializers.IntegerField(min_value=1, max_value=MOST_SAMPLES, required=False)
    role_in = serializers.CharField(required=False)
    layout = serializers.CharField(required=False)
    windows = serializers.DictField(required=False, allow_null=True)
    logprobs = serializers.BooleanField(required=False)
    ablation = serializers.CharField(required=False, allow_blank=True)

    criteria = serializers.ListField(
        child=serializers.CharField(max_length=64), required=False, allow_empty=False, max_length=1000
    )
    split = serializers.ChoiceField(Split.choices, required=False)
    limit = serializers.IntegerField(min_value=1, max_value=2**31 - 1, required=False)
    replicate = serializers.IntegerField(min_value=0, max_value=3000, required=False)
    mode = serializers.ChoiceField(Run.Mode.choices, required=False)
    budget_usd = serializers.DecimalField(12, 4, min_value=Decimal("0.0001"), required=False)
    audit = serializers.FloatField(min_value=0, max_value=1, required=False)
    max_in_flight = serializers.IntegerField(min_value=1, max_value=MOST_IN_FLIGHT, required=False)
    client_id = serializers.UUIDField(required=False, help_text="Repeating it starts no second run.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require a judge."""
        attrs = super().validate(attrs)
        if "profile" not in attrs and "engine" not in attrs:
            raise serializers.ValidationError({"engine": ["Name an engine or a profile."]})
        return attrs

    def recipe(self) -> dict[str, Any]:
        """Return the judge's settings."""
        return {name: value for name, value in self.validated_data.items() if name not in RUN_FIELDS}

    def choice(self, by: User) -> RunChoice:
        """Return the run's settings."""
        body = self.validated_data
        most, client_id = body.get("max_in_flight"), body.get("client_id")
        return RunChoice(
            criteria=tuple(body.get("criteria", ())),
            split=body.get("split", ""),
            limit=body.get("limit"),
            replicate=body.get("replicate", 0),
            mode=Run.Mode(body.get("mode", Run.Mode.LIVE)),
            budget_usd=body.get("budget_usd"),
            audit=body.get("audit", 0.0),
            options={"max_in_flight": most} if most else {},
            source_hash=hashlib.sha256(f"api run {by.pk} {client_id}".encode()).hexdigest()
            if client_id
            else "",
        )


class ResumeInput(serializers.Serializer[Any]):
    """How a run resumes; all fields are optional."""

    budget_usd = serializers.DecimalField(
        12, 4, min_value=Decimal("0.0001"), required=False, help_text="The run's new cap."
    )


class StartedOutput(RowOutput[Run]):
    """A planned run."""

    units = serializers.IntegerField(source="units_total")

    class Meta:
        model = Run
        fields = ("id", "state", "units")


class RunRowOutput(serializers.Serializer[Any]):
    """A run in a list."""

    id = serializers.IntegerField()
    set = serializers.CharField(allow_blank=True)
    judge = serializers.CharField()
    fingerprint = serializers.CharField()
    engine = serializers.CharField(allow_blank=True, help_text="'' for imported verdicts.")
    model = serializers.CharField(allow_blank=True)
    state = serializers.ChoiceField(Run.State.choices)
    units = serializers.IntegerField()
    units_done = serializers.IntegerField()
    units_failed = serializers.IntegerField()
    verdicts = serializers.IntegerField()
    unparsed = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class RunOutput(serializers.Serializer[Any]):
    """A run with its progress. Numbers of verdicts are in the list of runs and in the report."""

    id = serializers.IntegerField()
    set = serializers.CharField()
    judge = serializers.CharField()
    fingerprint = serializers.CharField()
    engine = serializers.CharField()
    model = serializers.CharField()
    state = serializers.ChoiceField(Run.State.choices)
    state_label = serializers.CharField()
    error = serializers.CharField()
    units = serializers.IntegerField()
    units_done = serializers.IntegerField()
    units_failed = serializers.IntegerField()
    in_flight = serializers.IntegerField(help_text="Calls in progress.")
    workers = serializers.IntegerField(help_text="Worker processes on the run, heard of lately.")
    hold_up = serializers.CharField(
        help_text="Why a running run stands still, in a sentence; empty if nothing is known to hold it up."
    )
    calls = serializers.IntegerField()
    reused = serializers.IntegerField()
    prompt_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    cost_usd = serializers.FloatField(
        allow_null=True, help_text="Sum of the known costs; null where the cost of an answer is unknown."
    )
    unknown_cost_requests = serializers.IntegerField(
        help_text="Requests without a known cost: pending, broken off, timed out, or without a price."
    )
    unknown_cost_usd = serializers.FloatField(
        allow_null=True, help_text="What they add at most; null without a budget."
    )
    budget_usd = serializers.FloatField(allow_null=True)
    rate = serializers.FloatField(help_text="Recently finished units per minute.")
    seconds_left = serializers.FloatField(allow_null=True)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


def run_body(run: Run) -> dict[str, Any]:
    """Return a run (with its judge and chat set) and its progress, with the keys of `list_runs`."""
    return RunOutput(
        {
            "set": run.chat_set.name if run.chat_set else "",
            "judge": run.judge.name,
            "fingerprint": run.judge.fingerprint,
            "engine": run.judge.engine,
            "model": run.judge.model,
            "created_at": run.created_at,
            "finished_at": run.finished_at,
        }
        | progress_json(run_progress(run))
    ).data
