"""Sections and examples of a prompt version, as a user may see them, and differences between two."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from django.contrib.auth.models import AnonymousUser

from common.diff import Part, word_diff
from evaluation.models.judges import Judge, JudgePrompt
from evaluation.models.prompts import FewShotExample, PromptVersion
from evaluation.prompts.core.changes import Section, SectionChange, prompt_sections, section_changes
from labeling.models.people import User
from labeling.people.queries.visibility import chats_shown


@dataclass(frozen=True, slots=True)
class ShownExample:
    """A worked example: the excerpt, its answer and the reason."""

    position: int
    chat_id: str
    chat_pk: int
    topic: str
    first_turn: int
    last_turn: int
    value: bool | None
    rationale: str
    messages: tuple[Mapping[str, Any], ...]

    @property
    def turns(self) -> str:
        """The turns in words: `turn 3`, `turns 3 to 5`."""
        if self.first_turn == self.last_turn:
            return f"turn {self.first_turn}"
        return f"turns {self.first_turn} to {self.last_turn}"

    def as_line(self) -> dict[str, Any]:
        """Return the example in the form of drafts and the API."""
        return {
            "chat": self.chat_id,
            "turns": [self.first_turn, self.last_turn],
            "value": self.value,
            "rationale": self.rationale,
        }


@dataclass(frozen=True, slots=True)
class Examples:
    """The examples whose chats the user can see, and the number of the others."""

    shown: tuple[ShownExample, ...]
    hidden: int


@dataclass(frozen=True, slots=True)
class ExampleChange:
    """An example that was added, removed or changed; `old` is the example before a change.

    `rationale` is a word diff.
    """

    kind: Literal["added", "removed", "changed"]
    example: ShownExample
    rationale: tuple[Part, ...]
    old: ShownExample | None = None


@dataclass(frozen=True, slots=True)
class VersionDiff:
    """The differences; `hidden` counts examples that the user cannot see."""

    sections: tuple[SectionChange, ...]
    examples: tuple[ExampleChange, ...]
    hidden: int

    @property
    def is_empty(self) -> bool:
        """Whether there is no visible difference."""
        return not (self.sections or self.examples)


def sections_of(version: PromptVersion) -> tuple[Section, ...]:
    """Return the text by CO-STAR section."""
    return prompt_sections(version.text)


def examples_for(version: PromptVersion, *, user: User | AnonymousUser) -> Examples:
    """Return the worked examples in order; two queries."""
    rows = FewShotExample.objects.filter(prompt_version=version).select_related("chat__topic")
    ordered = list(rows.order_by("position"))
    allowed = set(
        chats_shown(user=user).filter(pk__in=[row.chat_id for row in ordered]).values_list("pk", flat=True)
    )
    shown = tuple(_example(row) for row in ordered if row.chat_id in allowed)
    return Examples(shown, len(ordered) - len(shown))


def hides_examples(judge: Judge, *, user: User | AnonymousUser) -> bool:
    """Return whether a prompt of the judge has an example on a chat that the user cannot see; one query.

    A chat may become holdout in another set long after it became an example.
    """
    prompts = JudgePrompt.objects.filter(judge=judge).values("prompt_version")
    rows = FewShotExample.objects.filter(prompt_version__in=prompts)
    return rows.exclude(chat__in=chats_shown(user=user).values("pk")).exists()


def version_diff(old: PromptVersion, new: PromptVersion, *, user: User | AnonymousUser) -> VersionDiff:
    """Compare two versions; either may be the older one."""
    before, after = examples_for(old, user=user), examples_for(new, user=user)
    return VersionDiff(
        section_changes(old.text, new.text),
        tuple(_changes(before.shown, after.shown)),
        max(before.hidden, after.hidden),
    )


def _changes(before: Sequence[ShownExample], after: Sequence[ShownExample]) -> Iterable[ExampleChange]:
    """Compare by chat, examples of `after` first; their order does not matter."""
    known = {example.chat_pk: example for example in before}
    for new in after:
        old = known.pop(new.chat_pk, None)
        if old is None:
            yield ExampleChange("added", new, word_diff("", new.rationale))
        elif old.as_line() != new.as_line():
            yield ExampleChange("changed", new, word_diff(old.rationale, new.rationale), old)
    for gone in known.values():
        yield ExampleChange("removed", gone, word_diff(gone.rationale, ""))


def _example(row: FewShotExample) -> ShownExample:
    turns = [turn for turn in row.chat.messages if row.first_turn <= turn["n"] <= row.last_turn]
    return ShownExample(
        position=row.position + 1,
        chat_id=row.chat.external_id,
        chat_pk=row.chat_id,
        topic=row.chat.topic.name,
        first_turn=row.first_turn,
        last_turn=row.last_turn,
        value=row.value,
        rationale=row.rationale,
        messages=tuple(turns),
    )
