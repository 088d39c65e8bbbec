"""The form that draws chats for labelling."""

import secrets
from collections.abc import Sequence
from typing import Any, cast
from uuid import uuid4

from django import forms
from django.core.validators import MaxValueValidator

from alignment.comparison.queries.scope import Scope
from alignment.label_planning.queries.plan import TopicLabels
from alignment.label_planning.services.draw_preview import MOST, DrawWish
from alignment.label_planning.services.draws import draw_source
from common.problems import InputProblem
from labeling.chats.core.allocation import AllocationRule
from labeling.chats.core.splits import proportions_of
from labeling.chats.services.chat_sets import NAME_LIMIT
from labeling.models.people import User

LARGEST_SEED = 2**31 - 1
RULES = [
    (AllocationRule.PROPORTIONAL.value, "by their size"),
    (AllocationRule.SQRT.value, "by the root of their size"),
    (AllocationRule.EQUAL.value, "equally"),
]


def some_seed() -> int:
    """A seed that nobody can guess."""
    return secrets.randbelow(1_000_000)


class DrawForm(forms.Form):
    """Which criteria, how many chats, how many of those judged False; `wish` is what it amounts to."""

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
        help_text="Empty: as many as a badge is likely to need.",
    )
    judge_false = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST,
        label="of them judged False",
        help_text="Empty: as many as are likely to bring the missing False answers.",
    )
    name = forms.CharField(
        max_length=NAME_LIMIT,
        label="Name of the new set",
        help_text="Raters read it. It must not say what the judge thinks.",
    )
    topics = forms.MultipleChoiceField(
        required=False, widget=forms.CheckboxSelectMultiple, label="Topics, none: all"
    )
    rule = forms.ChoiceField(required=False, choices=RULES, label="Topics share the chats")
    minimum = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST,
        label="At least of each topic",
        help_text="Of either kind of chat, or all there are.",
    )
    # NB: another name than that of the split which the page is about: both stand in one query string.
    into = forms.CharField(
        required=False,
        max_length=80,
        label="Split",
        help_text="Empty: each chat keeps its own. Or, for dev chats, holdout or train=20,dev=40,holdout=40.",
    )
    seed = forms.IntegerField(min_value=0, validators=[MaxValueValidator(LARGEST_SEED)], label="Seed")
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
        """Words that a split can be read from."""
        given = str(self.cleaned_data["into"]).strip()
        try:
            if given:
                proportions_of(given)
        except InputProblem as problem:
            raise forms.ValidationError(str(problem).removeprefix("--split: ")) from problem
        return given

    @property
    def more_open(self) -> bool:
        """Whether something in the folded part was chosen or is wrong."""
        folded = ("rule", "minimum", "into", "seed", "topics")
        return any(self[name].errors for name in folded) or bool(self["topics"].value())

    def wish(self, *, by: User) -> DrawWish:
        """What the valid form asks for."""
        given = self.cleaned_data
        chosen = set(given["criteria"])
        return DrawWish(
            scope=self.scope,
            criteria=tuple(row for row in self.scope.criteria if row.key in chosen),
            name=given["name"],
            chats=given["chats"],
            suspect=given["judge_false"],
            topics=tuple(given["topics"]),
            rule=AllocationRule(given["rule"] or AllocationRule.PROPORTIONAL),
            minimum=given["minimum"] or 0,
            seed=given["seed"],
            split=given["into"],
            source=draw_source(scope=self.scope, by=by, token=given["form_token"]),
        )
