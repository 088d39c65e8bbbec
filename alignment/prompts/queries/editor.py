"""The prompt editor's page: the draft, its base, and versions saved meanwhile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from alignment.prompts.queries.example_picker import DraftExample, chosen_examples
from alignment.prompts.queries.versions import VersionRow, VersionState, version_rows
from evaluation.models.prompts import ArticleVersion, PromptVersion
from evaluation.prompts.core.costar import panes_of
from evaluation.prompts.queries.criteria import articles_of
from evaluation.prompts.queries.definitions import notices_of, older_definitions
from evaluation.prompts.queries.drafts import WorkingPrompt, working_prompt
from evaluation.prompts.queries.versions import champions, newer_versions, next_number
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion

ABOUT: Mapping[str, str] = {
    "context": (
        "The facts that the judge needs first: whose bot it is, which records a chat holds. The line "
        "{{knowledge}} lists the criterion’s articles."
    ),
    "objective": (
        "The question word for word as raters see it; then what is True, what is False, and the boundary "
        "cases."
    ),
    "style": "How to read the chat: what to look for, what decides, what belongs to another criterion.",
    "tone": "The attitude towards bot and customer: impartial, neither lenient nor harsh.",
    "audience": "The readers of the rationale, and what they check it against.",
    "response": "How the rationale starts, and its length. The engine itself asks for the verdict.",
}


@dataclass(frozen=True, slots=True)
class Pane:
    """One section of the prompt; `base` is its text in the version that the draft starts from."""

    name: str
    label: str
    about: str
    text: str
    base: str

    @property
    def changed(self) -> bool:
        """Whether the text differs from that version."""
        return self.text.strip() != self.base.strip()

    @property
    def words(self) -> int:
        """The number of words."""
        return len(self.text.split())


@dataclass(frozen=True, slots=True)
class Editor:
    """The content of the page; without `panes` the text is edited as a whole.

    `requested`: the version that the address names, if the draft has another base. `newer`: versions saved
    after the base, oldest first. `versions` are all, newest first.
    """

    criterion: Criterion
    version: CriterionVersion
    champion: PromptVersion | None
    prompt: WorkingPrompt
    requested: PromptVersion | None
    panes: tuple[Pane, ...]
    splits: bool
    examples: Sequence[DraftExample]
    articles: Sequence[ArticleVersion]
    newer: Sequence[PromptVersion]
    versions: Sequence[VersionRow]
    next_number: int

    @property
    def base(self) -> VersionRow | None:
        """The version that the draft starts from, with its state."""
        return next((row for row in self.versions if row.prompt.pk == self.prompt.base.pk), None)

    @property
    def notices(self) -> list[str]:
        """Return what the text that is edited was written for, if the criterion's text changed since."""
        older = older_definitions([self.prompt.base], newest={self.criterion.pk: self.version})
        return notices_of(older.values())

    @property
    def overtaken(self) -> bool:
        """Whether the champion is not the version that the draft started from."""
        return self.champion is not None and self.champion.pk != self.prompt.base.pk

    @property
    def unstored(self) -> bool:
        """Whether there is no draft and the page does not show the champion, which other panels would use."""
        return self.prompt.revision == 0 and self.overtaken


def start_of(criterion: Criterion) -> PromptVersion | None:
    """Return the version that a new draft starts from.

    The newest version that is a draft, if none was released after it; otherwise the released version.
    """
    return _start_of(version_rows(criteria=[criterion])[criterion.pk])


def _start_of(rows: Sequence[VersionRow]) -> PromptVersion | None:
    for row in rows:
        if row.state in (VersionState.DRAFT, VersionState.RELEASED):
            return row.prompt
    return rows[0].prompt if rows else None


def editor_of(
    *, criterion: Criterion, author: User, base: PromptVersion, requested: bool = False, whole: bool = False
) -> Editor:
    """Return the author's draft, or `base` if there is none.

    `requested`: the author wants to start from `base`; a draft with another base is shown nevertheless.
    `whole`: show the text in one pane even if it could be split.
    """
    prompt = working_prompt(criterion=criterion, author=author, base=base)
    panes = panes_of(prompt.text)
    return Editor(
        criterion=criterion,
        version=criterion.versions.latest("number"),
        champion=champions(criteria=[criterion]).get(criterion.pk),
        prompt=prompt,
        requested=base if requested and prompt.base.pk != base.pk else None,
        panes=() if whole or panes is None else _panes(panes, panes_of(prompt.base.text) or {}),
        splits=panes is not None,
        examples=chosen_examples(user=author, lines=prompt.examples, criterion=criterion),
        articles=articles_of([criterion])[criterion.pk],
        newer=newer_versions(prompt.base),
        versions=version_rows(criteria=[criterion])[criterion.pk],
        next_number=next_number(criterion),
    )


def _panes(texts: Mapping[str, str], base: Mapping[str, str]) -> tuple[Pane, ...]:
    return tuple(
        Pane(name, name.capitalize(), ABOUT[name], text, base.get(name, "")) for name, text in texts.items()
    )
