"""Forms of regression tests: start and override."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from django import forms
from django.db.models import Count, Q

from alignment.models.regressions import Policy
from alignment.regression.queries.plan import candidates, finished_runs, newest_drafts
from alignment.regression.queries.policy_page import policy_current
from alignment.regression.services.starts import RegressionRequest, profile_recipe, source_hash
from alignment.regression.services.tests import RegressionChoice
from common.problems import FieldProblem
from evaluation.models.judges import JudgeProfile
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run
from evaluation.runs.forms import LEAST_BUDGET, ProfileChoice, SetChoice
from labeling.models.chats import ChatSet, Split
from labeling.models.people import User
from labeling.models.rubric import Criterion

if TYPE_CHECKING:
    OneChoice = forms.ModelChoiceField[Any]
else:
    OneChoice = forms.ModelChoiceField  # NB: not subscriptable at run time

SPLITS = [
    (Split.DEV.value, "dev"),
    (Split.HOLDOUT.value, "holdout"),
    ("", "all splits"),
]
LONGEST_REASON = 2000


class CriterionChoice(OneChoice):
    """Criteria by name."""

    def label_from_instance(self, obj: Any) -> str:
        """Return the name."""
        return cast(Criterion, obj).name


class PolicyChoice(OneChoice):
    """Policies by name and version."""

    def label_from_instance(self, obj: Any) -> str:
        """`start values, version 2`."""
        row = cast(Policy, obj)
        return f"{row.name}, version {row.version}"


class StartForm(forms.Form):
    """Fields of every test; a valid form has the request in `wish`. Subclasses add the candidate.

    Only users who release may choose another policy, because it decides who may release.
    """

    kind = ""
    set = SetChoice(queryset=ChatSet.objects.none(), label="Chat set", empty_label="Choose a set")
    split = forms.ChoiceField(required=False, choices=SPLITS, initial=Split.DEV.value, label="Split")
    policy = PolicyChoice(
        queryset=Policy.objects.none(), required=False, label="Policy", empty_label="current policy"
    )
    noise = forms.BooleanField(
        required=False,
        label="Measure judge noise",
        help_text="Runs the champion twice, to compare the change with its own noise.",
    )
    budget_usd = forms.DecimalField(
        required=False,
        min_value=LEAST_BUDGET,
        max_digits=12,
        decimal_places=4,
        label="Budget per run, US dollars",
        help_text="A run pauses before it exceeds this. Empty: no limit.",
    )
    # New for each page view: distinguishes a repeated submission from a second test.
    form_token = forms.CharField(
        required=False, max_length=40, widget=forms.HiddenInput, initial=lambda: uuid4().hex
    )

    wish: RegressionRequest

    def __init__(self, *args: Any, by: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        counts = {name: Count("members", filter=Q(members__split=name)) for name in Split.values}
        chosen = self.data.get("set") or self.initial.get("set")
        sets = ChatSet.objects.listed(also=chosen).select_related("rubric").annotate(**counts)
        cast(SetChoice, self.fields["set"]).queryset = sets.order_by("name")
        policies = Policy.objects.filter(kind=Policy.Kind.GATE).order_by("-id")
        others = by.has_perm("labeling.release_prompts")
        cast(PolicyChoice, self.fields["policy"]).queryset = policies if others else policies.none()
        for name in ("profile", "candidate_profile"):
            if name in self.fields:
                field = cast(ProfileChoice, self.fields[name])
                field.queryset = JudgeProfile.objects.order_by("-is_default", "name")

    def _cleaned(self, wish: Callable[[dict[str, Any]], RegressionRequest]) -> dict[str, Any]:
        """Build the request from the fields; an invalid recipe is an error of its field."""
        data = dict(super().clean() or {})
        if not self.errors:
            try:
                self.wish = wish(data)
            except FieldProblem as problem:
                self.add_error("profile", f"its recipe is invalid: {problem}")
        return data

    def _choice(self, data: dict[str, Any], **more: Any) -> RegressionChoice:
        """Return the common settings. Raises FieldProblem for an invalid recipe."""
        profile, judge = profile_recipe(data.get("profile"))
        return RegressionChoice(
            chat_set=data["set"],
            split=data["split"],
            judge=judge,
            policy=data["policy"] or policy_current(),
            noise=data["noise"],
            budget_usd=data["budget_usd"],
            profile=profile,
            source_hash=self._source_hash(),
            **more,
        )

    def _source_hash(self) -> str:
        """Return an id of the token and all fields: a changed form starts another test."""
        chosen = {name: self[name].value() for name in self.fields}
        if not chosen["form_token"]:
            return ""
        return source_hash(self.kind, json.dumps(chosen, sort_keys=True, default=str))


class PromptTestForm(StartForm):
    """Test of one prompt version against its champion."""

    __test__ = False  # NB: pytest collects classes with Test in their name
    kind = "prompt"
    criterion = CriterionChoice(
        queryset=Criterion.objects.filter(state=Criterion.State.ACTIVE).order_by(
            "dimension__position", "position"
        ),
        to_field_name="key",
        label="Criterion",
        empty_label="Choose a criterion",
    )
    version = forms.TypedChoiceField(
        coerce=int, label="Version", error_messages={"required": "Choose a version."}
    )
    profile = ProfileChoice(
        queryset=JudgeProfile.objects.none(),
        required=False,
        label="Judge profile of both",
        empty_label="default profile",
    )

    field_order = ("criterion", "version", "set", "split", "profile", "policy", "noise", "budget_usd")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.versions = _versions(self["criterion"].value())
        version = cast(forms.TypedChoiceField, self.fields["version"])
        version.choices = [(row.number, _version_label(row)) for row in self.versions]

    @property
    def nothing_to_test(self) -> bool:
        """Whether the criterion has no version other than its champion."""
        chosen = Criterion.objects.filter(key=self["criterion"].value() or "")
        return not self.versions and chosen.exists()

    def clean(self) -> dict[str, Any]:
        """Build the request."""
        return self._cleaned(self._wish)

    def _wish(self, data: dict[str, Any]) -> RegressionRequest:
        candidate = next(row for row in self.versions if row.number == data["version"])
        return RegressionRequest(choice=self._choice(data), candidate=candidate)


class JudgeTestForm(StartForm):
    """Test of a whole judge against another profile or a finished run."""

    __test__ = False
    kind = "judge"
    candidate_profile = ProfileChoice(
        queryset=JudgeProfile.objects.none(), label="Candidate profile", empty_label=None
    )
    drafts = forms.BooleanField(required=False, label="With the newest draft of every criterion")
    profile = ProfileChoice(
        queryset=JudgeProfile.objects.none(),
        required=False,
        label="Champion profile",
        empty_label="default profile",
    )
    baseline_run = forms.TypedChoiceField(
        required=False,
        coerce=int,
        empty_value=None,
        label="Finished run instead",
        help_text="Use it to test changed knowledge: only an older run has the older version.",
    )

    field_order = (
        "candidate_profile",
        "drafts",
        "profile",
        "baseline_run",
        "set",
        "split",
        "policy",
        "noise",
        "budget_usd",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.finished = {run.pk: run for run in finished_runs()}
        runs = cast(forms.TypedChoiceField, self.fields["baseline_run"])
        runs.choices = [("", "none: run the champion"), *map(_run_option, self.finished.values())]

    def clean(self) -> dict[str, Any]:
        """Build the request."""
        return self._cleaned(self._wish)

    def _wish(self, data: dict[str, Any]) -> RegressionRequest:
        _, judge = profile_recipe(data["candidate_profile"])
        baseline = self.finished.get(data["baseline_run"])
        if baseline is not None:
            # That run's judge is the champion, with the profile it came from.
            data = data | {"profile": baseline.judge.profile}
        rubric = data["set"].rubric
        active = list(rubric.criteria.filter(state=Criterion.State.ACTIVE))
        return RegressionRequest(
            choice=self._choice(data, candidate_profile=data["candidate_profile"]),
            judge=judge,
            baseline=baseline,
            prompts=newest_drafts(active) if data["drafts"] else (),
        )


class OverrideForm(forms.Form):
    """Reason for releasing a candidate that did not pass."""

    reason = forms.CharField(
        max_length=LONGEST_REASON,
        widget=forms.Textarea(attrs={"rows": 3}),
        label="Reason for the override",
        help_text="It stays visible on the test and on the version.",
        error_messages={"required": "Enter a reason."},
    )


def _versions(key: Any) -> list[PromptVersion]:
    """Return the versions of a criterion that can be tested."""
    criterion = Criterion.objects.filter(key=str(key)).first() if key else None
    return candidates(criterion) if criterion else []


def _version_label(row: PromptVersion) -> str:
    """`4, otto, 19 Nov 2026: Calls for evidence`."""
    who = f", {row.author.get_username()}" if row.author else ""
    reason = f": {row.reason}" if row.reason else ""
    text = f"{row.number}{who}, {row.created_at:%-d %b %Y}{reason}"
    return text if len(text) <= 100 else f"{text[:99]}…"


def _run_option(run: Run) -> tuple[str, str]:
    name = run.chat_set.name if run.chat_set else ""
    return str(run.pk), f"Run {run.pk}: {run.judge.name} over {name}, {run.created_at:%-d %b %Y}"
