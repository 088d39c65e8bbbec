"""The form that starts a run: chats, judge and budget."""

import hashlib
import json
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from django import forms
from django.db.models import Count, Q

from common.problems import FieldProblem
from evaluation.core.types import KnowledgeMode
from evaluation.gateway.current import offered_at
from evaluation.judges.core.spec import MOST_SAMPLES, JudgeSpec
from evaluation.judges.queries.profiles import default_profile, profile_overridden
from evaluation.models.judges import Engine, JudgeProfile
from evaluation.models.runs import Run
from evaluation.runs.services.runs import RunChoice
from labeling.models.chats import ChatSet, Split
from labeling.models.rubric import Criterion

if TYPE_CHECKING:
    ModelChoice = forms.ModelChoiceField[Any]
else:
    ModelChoice = forms.ModelChoiceField  # NB: not subscriptable at run time

AS_PROFILE = ("", "as in the profile")
LEAST_BUDGET = Decimal("0.0001")
KNOWLEDGE_MODES: tuple[KnowledgeMode, ...] = ("none", "static", "retrieved")


class SetChoice(ModelChoice):
    """Chat sets with the size of their splits."""

    def label_from_instance(self, obj: Any) -> str:
        """Return a label such as `calibration: 120 chats (20 train, 60 dev, 40 holdout)`."""
        parts = [f"{getattr(obj, name):,} {name}" for name in Split.values if getattr(obj, name)]
        chats = sum(getattr(obj, name) for name in Split.values)
        inside = f" ({', '.join(parts)})" if len(parts) > 1 else f", {parts[0].split()[1]}" if parts else ""
        return f"{obj.name}: {chats:,} chat{'' if chats == 1 else 's'}{inside}"


class ProfileChoice(ModelChoice):
    """Judge profiles; the default is marked."""

    def label_from_instance(self, obj: Any) -> str:
        """Return the name with the engine."""
        row = cast(JudgeProfile, obj)
        return f"{row.name}, {row.config.get('engine', '?')}{' (default)' if row.is_default else ''}"


class StartForm(forms.Form):
    """`judge` and `run` hold the choice once the form is valid."""

    set = SetChoice(queryset=ChatSet.objects.none(), label="Chat set", empty_label="Choose a set")
    split = forms.ChoiceField(
        required=False, choices=[("", "all splits"), *((name, name) for name in Split.values)], label="Split"
    )
    limit = forms.IntegerField(
        required=False, min_value=1, label="Maximum chats", help_text="The first chats of the set."
    )
    profile = ProfileChoice(queryset=JudgeProfile.objects.none(), label="Judge profile", empty_label=None)
    engine = forms.ChoiceField(
        required=False, choices=[AS_PROFILE, *((name, name) for name in Engine.values)], label="Engine"
    )
    samples = forms.IntegerField(required=False, min_value=1, max_value=MOST_SAMPLES, label="Samples")
    knowledge = forms.ChoiceField(
        required=False, choices=[AS_PROFILE, *((name, name) for name in KNOWLEDGE_MODES)], label="Knowledge"
    )
    model_at = forms.ChoiceField(
        required=False,
        label="Model",
        help_text="Another one answers for every role.",
    )
    budget_usd = forms.DecimalField(
        required=False,
        min_value=LEAST_BUDGET,
        max_digits=12,
        decimal_places=4,
        label="Budget, US dollars",
        help_text="The run pauses before it spends more. Empty: no limit.",
    )

    criteria = forms.MultipleChoiceField(
        required=False, widget=forms.CheckboxSelectMultiple, label="Criteria (all if none is selected)"
    )
    mode = forms.ChoiceField(choices=Run.Mode.choices, initial=Run.Mode.LIVE, label="Mode")
    replicate = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=3000,
        initial=0,
        label="Replicate",
        help_text="Change it to ignore stored answers.",
    )
    max_in_flight = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=10_000,
        label="Calls in flight",
        help_text="Empty: as the server is set.",
    )
    audit = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=100,
        label="Audit, % of answers",
        help_text="Share of answers re-read as a check; verdicts don't change.",
    )

    # New in every form, to tell a double click from a second run.
    form_token = forms.CharField(
        required=False, max_length=40, widget=forms.HiddenInput, initial=lambda: uuid4().hex
    )

    judge: JudgeSpec
    run: RunChoice

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        counts = {name: Count("members", filter=Q(members__split=name)) for name in Split.values}
        sets = cast(SetChoice, self.fields["set"])
        chosen = self.data.get("set") or self.initial.get("set")
        sets.queryset = ChatSet.objects.listed(also=chosen).annotate(**counts).order_by("name")
        sets.error_messages["required"] = "Choose a chat set."
        if len(few := ChatSet.objects.listed()[:2]) == 1:
            sets.initial = few[0]
        profiles = cast(ProfileChoice, self.fields["profile"])
        profiles.queryset = JudgeProfile.objects.order_by("-is_default", "name")
        profiles.initial = default_profile()
        cast(forms.MultipleChoiceField, self.fields["criteria"]).choices = _criterion_choices()
        cast(forms.ChoiceField, self.fields["model_at"]).choices = _model_choices()
        self.fields["samples"].widget.attrs["placeholder"] = AS_PROFILE[1]

    def clean(self) -> dict[str, Any]:
        """Combine profile and changes; what does not fit the set is an error of its field."""
        cleaned = dict(super().clean() or {})
        if self.errors:
            return cleaned
        self._check_criteria(cleaned["set"], cleaned["criteria"])
        try:
            self.judge = profile_overridden(
                cleaned["profile"],
                engine=cleaned["engine"],
                samples=cleaned["samples"],
                knowledge=cleaned["knowledge"],
            )
            if cleaned["model_at"]:
                endpoint, _, model = cleaned["model_at"].partition(" ")
                self.judge = replace(
                    self.judge, endpoint=endpoint, model=model, formatter="", endpoints={}, models={}
                )
        except FieldProblem as problem:
            self.add_error("profile", f"This profile cannot be read: {problem}. Edit and save it.")
        self.run = replace(_run_choice(cleaned), source_hash=self._source_hash())
        return cleaned

    def _check_criteria(self, chat_set: ChatSet, keys: list[str]) -> None:
        known = set(chat_set.rubric.criteria.values_list("key", flat=True))
        if strange := [key for key in keys if key not in known]:
            self.add_error("criteria", f"{strange[0]} is not a criterion of this set's rubric")

    def _source_hash(self) -> str:
        """Return a hash of the token and all values: another choice starts another run."""
        values = {name: self[name].value() for name in self.fields}
        if not values["form_token"]:
            return ""
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    @property
    def what_fields(self) -> list[forms.BoundField]:
        """Return the fields for the chats."""
        return [self[name] for name in ("set", "split", "limit")]

    @property
    def judge_fields(self) -> list[forms.BoundField]:
        """Return the fields for the judge and the run's changes to it."""
        return [self[name] for name in ("profile", "model_at", "engine", "samples", "knowledge")]

    @property
    def more_fields(self) -> list[forms.BoundField]:
        """Return the fields that few runs need."""
        return [self[name] for name in ("mode", "max_in_flight", "replicate", "audit")]

    @property
    def more_open(self) -> bool:
        """Return whether the collapsed section has an error."""
        return any(
            name in self.errors for name in ("criteria", "mode", "replicate", "max_in_flight", "audit")
        )


class ResumeForm(forms.Form):
    """The budget for the rest of a run; an empty field keeps the current one."""

    budget_usd = forms.DecimalField(
        required=False, min_value=LEAST_BUDGET, max_digits=12, decimal_places=4, label="Budget, US dollars"
    )


def _model_choices() -> list[Any]:
    """Return the models of connected endpoints, grouped; an address holds no space."""
    groups = [
        (name, [(f"{at.endpoint} {at.model}", at.model) for at in models])
        for name, models in offered_at()
        if models
    ]
    return [AS_PROFILE, *groups]


def _criterion_choices() -> list[tuple[str, str]]:
    rows = Criterion.objects.filter(state=Criterion.State.ACTIVE).select_related("rubric")
    ordered = list(rows.order_by("rubric__name", "dimension__position", "position"))
    several = len({row.rubric_id for row in ordered}) > 1
    return [(row.key, f"{row.rubric.name}: {row.name}" if several else row.name) for row in ordered]


def _run_choice(cleaned: dict[str, Any]) -> RunChoice:
    options: dict[str, Any] = {"profile": cleaned["profile"].name}
    if cleaned["max_in_flight"]:
        options["max_in_flight"] = cleaned["max_in_flight"]
    return RunChoice(
        criteria=cleaned["criteria"],
        split=cleaned["split"],
        limit=cleaned["limit"],
        replicate=cleaned["replicate"] or 0,
        mode=Run.Mode(cleaned["mode"]),
        budget_usd=cleaned["budget_usd"],
        audit=(cleaned["audit"] or 0) / 100,
        options=options,
    )
