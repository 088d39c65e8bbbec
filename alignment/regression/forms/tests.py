"""Forms of regression tests: starting one, and releasing against the gate's answer."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from django import forms
from django.db.models import Count, Q

from alignment.models.regressions import Policy
from alignment.regression.queries.plan import candidates, finished_runs, newest_drafts
from alignment.regression.services.policies import policy_in_force
from alignment.regression.services.starts import Wish, profile_recipe, source_hash
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
    """Criteria under their readable names."""

    def label_from_instance(self, obj: Any) -> str:
        """Words instead of the key."""
        return cast(Criterion, obj).name


class PolicyChoice(OneChoice):
    """Policies by name and version."""

    def label_from_instance(self, obj: Any) -> str:
        """`start values, version 2`."""
        row = cast(Policy, obj)
        return f"{row.name}, version {row.version}"


class StartForm(forms.Form):
    """What every test has; `wish` is what it amounts to once it is valid. The two kinds name the candidate.

    Another policy than the one in force is for those who release: it says who may release what it passes.
    """

    kind = ""
    set = SetChoice(queryset=ChatSet.objects.none(), label="Chat set", empty_label="Choose a set")
    split = forms.ChoiceField(required=False, choices=SPLITS, initial=Split.DEV.value, label="Split")
    policy = PolicyChoice(
        queryset=Policy.objects.none(), required=False, label="Policy", empty_label="the one in force"
    )
    noise = forms.BooleanField(
        required=False,
        label="Ask the champion once more",
        help_text="Shows how much the judge flips by itself, so that noise is not read as progress.",
    )
    budget_usd = forms.DecimalField(
        required=False,
        min_value=LEAST_BUDGET,
        max_digits=12,
        decimal_places=4,
        label="Budget of each run, US dollars",
        help_text="A run pauses before it would spend more. Empty: no cap.",
    )
    # New with every form shown: a second press of the button is told from a second test that is meant.
    form_token = forms.CharField(
        required=False, max_length=40, widget=forms.HiddenInput, initial=lambda: uuid4().hex
    )

    wish: Wish

    def __init__(self, *args: Any, by: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        counts = {name: Count("members", filter=Q(members__split=name)) for name in Split.values}
        sets = ChatSet.objects.select_related("rubric").annotate(**counts)
        cast(SetChoice, self.fields["set"]).queryset = sets.order_by("name")
        policies = Policy.objects.filter(kind=Policy.Kind.GATE).order_by("-id")
        others = by.has_perm("labeling.release_prompts")
        cast(PolicyChoice, self.fields["policy"]).queryset = policies if others else policies.none()
        for name in ("profile", "candidate_profile"):
            if name in self.fields:
                field = cast(ProfileChoice, self.fields[name])
                field.queryset = JudgeProfile.objects.order_by("-is_default", "name")

    def _cleaned(self, wish: Callable[[dict[str, Any]], Wish]) -> dict[str, Any]:
        """Put `wish` together from what was chosen; what cannot be read is an error of its field."""
        given = dict(super().clean() or {})
        if not self.errors:
            try:
                self.wish = wish(given)
            except FieldProblem as problem:
                self.add_error("profile", f"its recipe cannot be read: {problem}")
        return given

    def _choice(self, given: dict[str, Any], **more: Any) -> RegressionChoice:
        """What both kinds of test choose alike. Raises FieldProblem for a recipe that cannot be read."""
        profile, judge = profile_recipe(given.get("profile"))
        return RegressionChoice(
            chat_set=given["set"],
            split=given["split"],
            judge=judge,
            policy=given["policy"] or policy_in_force(),
            noise=given["noise"],
            budget_usd=given["budget_usd"],
            profile=profile,
            source_hash=self._source_hash(),
            **more,
        )

    def _source_hash(self) -> str:
        """Of the token and all that was chosen: with another choice the form starts another test."""
        chosen = {name: self[name].value() for name in self.fields}
        if not chosen["form_token"]:
            return ""
        return source_hash(self.kind, json.dumps(chosen, sort_keys=True, default=str))


class PromptTestForm(StartForm):
    """One version of one criterion's prompt against its champion."""

    __test__ = False  # NB: pytest takes every class with Test in its name for its own
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
        coerce=int, label="Version", error_messages={"required": "Choose the version to test."}
    )
    profile = ProfileChoice(
        queryset=JudgeProfile.objects.none(),
        required=False,
        label="Judge profile, both sides",
        empty_label="the default profile",
    )

    field_order = ("criterion", "version", "set", "split", "profile", "policy", "noise", "budget_usd")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.versions = _versions(self["criterion"].value())
        version = cast(forms.TypedChoiceField, self.fields["version"])
        version.choices = [(row.number, _version_label(row)) for row in self.versions]

    @property
    def nothing_to_test(self) -> bool:
        """Whether a criterion is chosen that has no version beside its champion."""
        return bool(self["criterion"].value()) and not self.versions

    def clean(self) -> dict[str, Any]:
        """And what test it amounts to."""
        return self._cleaned(self._wish)

    def _wish(self, given: dict[str, Any]) -> Wish:
        candidate = next(row for row in self.versions if row.number == given["version"])
        return Wish(choice=self._choice(given), candidate=candidate)


class JudgeTestForm(StartForm):
    """A whole judge against the default one, or today's knowledge and prompts against a finished run."""

    __test__ = False
    kind = "judge"
    candidate_profile = ProfileChoice(
        queryset=JudgeProfile.objects.none(), label="Candidate's profile", empty_label=None
    )
    drafts = forms.BooleanField(required=False, label="with the newest draft of every criterion")
    profile = ProfileChoice(
        queryset=JudgeProfile.objects.none(),
        required=False,
        label="Against the profile",
        empty_label="the default profile",
    )
    baseline_run = forms.TypedChoiceField(
        required=False,
        coerce=int,
        empty_value=None,
        label="or against a finished run",
        help_text="After a change of the knowledge only an older run knows the older one.",
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
        runs.choices = [("", "none: ask the champion today"), *map(_run_option, self.finished.values())]

    def clean(self) -> dict[str, Any]:
        """And what test it amounts to."""
        return self._cleaned(self._wish)

    def _wish(self, given: dict[str, Any]) -> Wish:
        _, judge = profile_recipe(given["candidate_profile"])
        baseline = self.finished.get(given["baseline_run"])
        if baseline is not None:
            # What stands for the champion is that run's judge, with the profile it came from.
            given = given | {"profile": baseline.judge.profile}
        rubric = given["set"].rubric
        active = list(rubric.criteria.filter(state=Criterion.State.ACTIVE))
        return Wish(
            choice=self._choice(given, candidate_profile=given["candidate_profile"]),
            judge=judge,
            baseline=baseline,
            prompts=newest_drafts(active) if given["drafts"] else (),
        )


class OverrideForm(forms.Form):
    """Why a candidate is released that the gate has not passed."""

    reason = forms.CharField(
        max_length=LONGEST_REASON,
        widget=forms.Textarea(attrs={"rows": 3}),
        label="Why it is released all the same",
        help_text="It stays visible on the test and on the version for ever.",
        error_messages={"required": "An override needs a reason."},
    )


def _versions(key: Any) -> list[PromptVersion]:
    """The versions of the criterion of this key that may be tested."""
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
