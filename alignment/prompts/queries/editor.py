"""The prompt editor's page: what is edited, from what it started, and what was saved meanwhile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from alignment.prompts.queries.example_picker import Chosen, chosen_examples
from evaluation.models.prompts import ArticleVersion, PromptVersion
from evaluation.prompts.core.costar import panes_of
from evaluation.prompts.queries.criteria import articles_of
from evaluation.prompts.queries.drafts import WorkingPrompt, working_prompt
from evaluation.prompts.queries.versions import champions, newer_versions, next_number
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion

ABOUT: Mapping[str, str] = {
    "context": (
        "What the judge has to know first: whose bot it is, which records a chat holds. The line "
        "{{knowledge}} stands for the criterion’s articles."
    ),
    "objective": "The question word for word as raters see it; then what is True, what False, and the line.",
    "style": "How to go through the chat: what to look for, what decides, what belongs to another criterion.",
    "tone": "The attitude towards bot and customer: impartial, neither lenient nor harsh.",
    "audience": "Who reads the rationale, and what they check it against.",
    "response": "What the rationale says first and how long it is. For the verdict the engine asks itself.",
}


@dataclass(frozen=True, slots=True)
class Pane:
    """One section with its text."""

    name: str
    label: str
    about: str
    text: str


@dataclass(frozen=True, slots=True)
class Editor:
    """What the page shows; without `panes` the text is edited whole.

    `asked` is another version than the draft's base, which the address asked to start from. `newer` were
    saved after the base, oldest first.
    """

    criterion: Criterion
    version: CriterionVersion
    champion: PromptVersion | None
    prompt: WorkingPrompt
    asked: PromptVersion | None
    panes: tuple[Pane, ...]
    splits: bool
    examples: Sequence[Chosen]
    articles: Sequence[ArticleVersion]
    newer: Sequence[PromptVersion]
    next_number: int

    @property
    def overtaken(self) -> bool:
        """Whether another version than the one that this started from is the champion."""
        return self.champion is not None and self.champion.pk != self.prompt.base.pk

    @property
    def unstored(self) -> bool:
        """Whether what is shown is not what panels that know no draft take: the champion."""
        return self.prompt.revision == 0 and self.overtaken


def start_of(criterion: Criterion) -> PromptVersion | None:
    """What a new draft starts from: the champion, before any release the newest version."""
    champion = champions(criteria=[criterion]).get(criterion.pk)
    return champion or PromptVersion.objects.filter(criterion=criterion).order_by("-number").first()


def editor_of(
    *, criterion: Criterion, author: User, base: PromptVersion, asked: bool = False, whole: bool = False
) -> Editor:
    """The author's draft, or `base` where there is none.

    `asked` says that the author wants to start from `base`; a draft on another one is shown all the same.
    `whole` shows the text in one pane even where it could be split.
    """
    prompt = working_prompt(criterion=criterion, author=author, base=base)
    panes = panes_of(prompt.text)
    return Editor(
        criterion=criterion,
        version=criterion.versions.latest("number"),
        champion=champions(criteria=[criterion]).get(criterion.pk),
        prompt=prompt,
        asked=base if asked and prompt.base.pk != base.pk else None,
        panes=() if whole or panes is None else _panes(panes),
        splits=panes is not None,
        examples=chosen_examples(user=author, lines=prompt.examples),
        articles=articles_of([criterion])[criterion.pk],
        newer=newer_versions(prompt.base),
        next_number=next_number(criterion),
    )


def _panes(texts: Mapping[str, str]) -> tuple[Pane, ...]:
    return tuple(Pane(name, name.capitalize(), ABOUT[name], text) for name, text in texts.items())
