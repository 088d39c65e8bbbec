"""What a prompt version consists of, as a user may see it, and what changed between two."""

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
    """A worked example: the excerpt, what people decided on it, and why."""

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
        """`turn 3`, `turns 3 to 5`."""
        if self.first_turn == self.last_turn:
            return f"turn {self.first_turn}"
        return f"turns {self.first_turn} to {self.last_turn}"

    def as_line(self) -> dict[str, Any]:
        """As drafts and the API write it."""
        return {
            "chat": self.chat_id,
            "turns": [self.first_turn, self.last_turn],
            "value": self.value,
            "rationale": self.rationale,
        }


@dataclass(frozen=True, slots=True)
class Examples:
    """Those whose chats the user may read, and how many there are beside them."""

    shown: tuple[ShownExample, ...]
    hidden: int


@dataclass(frozen=True, slots=True)
class ExampleChange:
    """An example that was added, removed or changed; `old` is what it was before a change.

    `rationale` is its word diff.
    """

    kind: Literal["added", "removed", "changed"]
    example: ShownExample
    rationale: tuple[Part, ...]
    old: ShownExample | None = None


@dataclass(frozen=True, slots=True)
class VersionDiff:
    """What changed; `hidden` examples are among those of either side."""

    sections: tuple[SectionChange, ...]
    examples: tuple[ExampleChange, ...]
    hidden: int

    @property
    def is_empty(self) -> bool:
        """Whether the two say the same."""
        return not (self.sections or self.examples)


def sections_of(version: PromptVersion) -> tuple[Section, ...]:
    """The text by CO-STAR section."""
    return prompt_sections(version.text)


def examples_for(version: PromptVersion, *, user: User | AnonymousUser) -> Examples:
    """The worked examples in order; two queries."""
    rows = FewShotExample.objects.filter(prompt_version=version).select_related("chat__topic")
    ordered = list(rows.order_by("position"))
    allowed = set(
        chats_shown(user=user).filter(pk__in=[row.chat_id for row in ordered]).values_list("pk", flat=True)
    )
    shown = tuple(_example(row) for row in ordered if row.chat_id in allowed)
    return Examples(shown, len(ordered) - len(shown))


def hides_examples(judge: Judge, *, user: User | AnonymousUser) -> bool:
    """Whether a prompt of the judge has an example on a chat that is not shown to the user; one query.

    A chat may become holdout in another set long after it became an example.
    """
    prompts = JudgePrompt.objects.filter(judge=judge).values("prompt_version")
    rows = FewShotExample.objects.filter(prompt_version__in=prompts)
    return rows.exclude(chat__in=chats_shown(user=user).values("pk")).exists()


def version_diff(old: PromptVersion, new: PromptVersion, *, user: User | AnonymousUser) -> VersionDiff:
    """From one version to the other, whichever came first."""
    before, after = examples_for(old, user=user), examples_for(new, user=user)
    return VersionDiff(
        section_changes(old.text, new.text),
        tuple(_changes(before.shown, after.shown)),
        max(before.hidden, after.hidden),
    )


def _changes(before: Sequence[ShownExample], after: Sequence[ShownExample]) -> Iterable[ExampleChange]:
    """By chat, those of the newer side first; the order of examples is no difference."""
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
