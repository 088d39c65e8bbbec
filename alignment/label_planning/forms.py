"""Form for sampling chats for labelling."""

import secrets
from collections.abc import Sequence
from typing import Any, cast
from uuid import uuid4

from django import forms
from django.core.validators import MaxValueValidator

from alignment.comparison.queries.scope import Scope
from alignment.label_planning.queries.plan import TopicLabels
from alignment.label_planning.services.sample import sample_source
from alignment.label_planning.services.sample_preview import MOST, SampleRequest
from common.problems import InputProblem
from labeling.chats.core.allocation import AllocationRule
from labeling.chats.core.splits import proportions_of
from labeling.chats.services.chat_sets import NAME_LIMIT
from labeling.models.people import User

LARGEST_SEED = 2**31 - 1
RULES = [
    (AllocationRule.PROPORTIONAL.value, "Proportional to size"),
    (AllocationRule.SQRT.value, "Proportional to the square root of size"),
    (AllocationRule.EQUAL.value, "Equal"),
]


def random_seed() -> int:
    """Return an unpredictable seed."""
    return secrets.randbelow(1_000_000)


class SampleForm(forms.Form):
    """Criteria, size and strata of a sample; `wish` turns them into a request."""

    criteria = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple,
        label="Criteria",
        error_messages={"required": "Choose at least one criterion."},
    )
    chats = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST,
        label="Chats",
        help_text="Empty: as many as a status is likely to need.",
    )
    judge_false = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST,
        label="Judged False",
        help_text="Empty: as many as are likely to bring the missing False labels.",
    )
    name = forms.CharField(
        max_length=NAME_LIMIT,
        label="Name of the new set",
        help_text="Raters see this name. Do not mention verdicts.",
    )
    topics = forms.MultipleChoiceField(
        required=False, widget=forms.CheckboxSelectMultiple, label="Topics (none selected: all)"
    )
    rule = forms.ChoiceField(required=False, choices=RULES, label="Allocation to topics")
    minimum = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST,
        label="Minimum per topic",
        help_text="For chats judged False and other chats each.",
    )
    # NB: not called `split`: the query string of the page already has the split of the report.
    into = forms.CharField(
        required=False,
        max_length=80,
        label="Split",
        help_text="Empty: chats keep their split. For dev chats: holdout, or train=20,dev=40,holdout=40.",
    )
    seed = forms.IntegerField(
        min_value=0,
        validators=[MaxValueValidator(LARGEST_SEED)],
        label="Seed",
        widget=forms.NumberInput(attrs={"data-random": True}),
    )
    form_token = forms.CharField(
        required=False, max_length=40, widget=forms.HiddenInput, initial=lambda: uuid4().hex
    )

    def __init__(self, *args: Any, scope: Scope, topics: Sequence[TopicLabels], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.scope = scope
        by_name = sorted((row.name, row.key) for row in topics)
        choices = {
            "criteria": [(row.key, row.name) for row in scope.criteria],
            "topics": [(key, name) for name, key in by_name],
        }
        for name, offered in choices.items():
            cast(forms.MultipleChoiceField, self.fields[name]).choices = offered

    def clean_into(self) -> str:
        """Check the proportions."""
        text = str(self.cleaned_data["into"]).strip()
        try:
            if text:
                proportions_of(text)
        except InputProblem as problem:
            raise forms.ValidationError(str(problem).removeprefix("--split: ")) from problem
        return text

    @property
    def more_open(self) -> bool:
        """Whether a field of the folded section has an error or a choice of topics."""
        folded = ("rule", "minimum", "into", "seed", "topics")
        return any(self[name].errors for name in folded) or bool(self["topics"].value())

    def wish(self, *, by: User) -> SampleRequest:
        """Return the request of a valid form."""
        data = self.cleaned_data
        chosen = set(data["criteria"])
        return SampleRequest(
            scope=self.scope,
            criteria=tuple(row for row in self.scope.criteria if row.key in chosen),
            name=data["name"],
            chats=data["chats"],
            suspect=data["judge_false"],
            topics=tuple(data["topics"]),
            rule=AllocationRule(data["rule"] or AllocationRule.PROPORTIONAL),
            minimum=data["minimum"] or 0,
            seed=data["seed"],
            split=data["into"],
            source=sample_source(scope=self.scope, by=by, token=data["form_token"]),
        )
