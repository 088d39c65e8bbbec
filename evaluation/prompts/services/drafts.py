"""Saves an author's draft, and makes versions and tries of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from common.problems import FieldProblem, InputProblem
from evaluation.models.prompts import PromptDraft, PromptVersion
from evaluation.prompts.core.lint import Finding
from evaluation.prompts.queries.definitions import known_version
from evaluation.prompts.queries.drafts import WorkingPrompt
from evaluation.prompts.queries.versions import newer_versions, tried_version
from evaluation.prompts.services.examples import (
    ExampleChoice,
    PromptRefused,
    prompt_check,
    prompt_hash,
    prompt_version_add,
    version_store,
)
from evaluation.prompts.services.lint import prompt_errors
from evaluation.prompts.services.versions import champions_ensure
from labeling.models.chats import Chat
from labeling.models.people import User
from labeling.models.rubric import Criterion


class StaleDraft(InputProblem):
    """A save from an older state of the draft; `draft` is the stored one, None if it is gone."""

    def __init__(self, draft: PromptDraft | None) -> None:
        super().__init__("this draft was changed elsewhere after you opened it")
        self.draft = draft


class NewerVersions(InputProblem):
    """A version based on one that is not the latest; `versions` are those saved since, oldest first."""

    def __init__(self, versions: Sequence[PromptVersion]) -> None:
        named = ", ".join(f"version {version.number}" for version in versions)
        super().__init__(f"saved meanwhile: {named}")
        self.versions = versions


class FaultyPrompt(InputProblem):
    """A text with errors, which are the `findings`."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("; ".join(finding.line for finding in findings))
        self.findings = findings


@dataclass(frozen=True, slots=True)
class SavedVersion:
    """The version with the content to be saved; `added` is False if it already existed."""

    version: PromptVersion
    added: bool


@transaction.atomic
def draft_save(
    *,
    criterion: Criterion,
    author: User,
    base: PromptVersion,
    text: str,
    examples: Sequence[dict[str, Any]],
    revision: int,
    origin: str | None = None,
) -> PromptDraft:
    """Store the draft over revision `revision` of it (0: there is none); increases its revision by one.

    Revisions are never reused: a new draft continues the count of the previous one. Without `origin` it keeps
    its own; a new draft is the author's. Repeating a save after a lost response changes nothing. Raises
    StaleDraft if another revision is stored.
    """
    Criterion.objects.select_for_update(no_key=True).get(pk=criterion.pk)
    row = PromptDraft._base_manager.filter(criterion=criterion, author=author).first()
    draft = None if row is None or row.ended else row
    if (draft.revision if draft else 0) != revision:
        content = (base.pk, text, list(examples))
        again = draft and revision in (0, draft.revision - 1)
        if draft and again and content == (draft.base_id, draft.text, draft.examples):
            return draft
        raise StaleDraft(draft)
    draft = row or PromptDraft(criterion=criterion, author=author, revision=0)
    draft.base, draft.text, draft.examples, draft.ended = base, text, list(examples), False
    draft.origin = origin or draft.origin
    draft.revision += 1
    draft.save()
    return draft


def draft_discard(*, criterion: Criterion, author: User) -> None:
    """Discard the author's draft; the number of its revisions is kept."""
    drafts = PromptDraft.objects.filter(criterion=criterion, author=author)
    drafts.update(text="", examples=[], origin=PromptVersion.Origin.AUTHOR, ended=True)


def example_choices(lines: Sequence[dict[str, Any]], *, chats: Sequence[Chat]) -> tuple[ExampleChoice, ...]:
    """Return a draft's examples with their chats, out of `chats`. Raises PromptRefused for any other chat."""
    by_id = {chat.external_id: chat for chat in chats}
    for index, line in enumerate(lines):
        if line["chat"] not in by_id:
            # NB: without its id: a chat of the base may be hidden from the author by now.
            raise PromptRefused("chat", "you cannot read this example's chat", index=index)
    return tuple(_choice(line, by_id[line["chat"]]) for line in lines)


def _choice(line: dict[str, Any], chat: Chat) -> ExampleChoice:
    first, last = line["turns"]
    return ExampleChoice(chat, first, last, line["value"], line["rationale"])


def version_save(
    *,
    criterion: Criterion,
    author: User,
    text: str,
    examples: Sequence[ExampleChoice],
    reason: str,
    base: PromptVersion | None,
    confirmed: int = 0,
) -> SavedVersion:
    """Save an author's text as a version, and end their draft if it has the same content.

    A text that was saved for an older definition of the criterion is saved again: its author says that it
    still holds. The version has the draft's origin if their texts are equal, else it is the author's.
    `confirmed` is the number of the latest version that the author has seen.

    Raises FieldProblem without a reason, FaultyPrompt for a text with errors, PromptRefused as
    `prompt_version_add`, NewerVersions for an unconfirmed version saved after `base`.
    """
    digest = prompt_hash(text=text, examples=examples)
    # Checks without a lock come first. Versions are never deleted, so an equal one stays.
    if known_version(criterion=criterion, content_hash=digest) is None:
        _check(criterion, text, examples, reason)
    with transaction.atomic():
        _lock(criterion)
        draft = PromptDraft.objects.filter(criterion=criterion, author=author).first()
        known = known_version(criterion=criterion, content_hash=digest)
        if known is None:
            _check_newer(base, confirmed)
        saved = known or prompt_version_add(
            criterion=criterion,
            text=text,
            examples=examples,
            reason=reason.strip(),
            author=author,
            base=base,
            origin=draft.origin if draft is not None and draft.text == text else PromptVersion.Origin.AUTHOR,
        )
        if draft is not None and (draft.text, draft.examples) == (text, example_lines(examples)):
            draft_discard(criterion=criterion, author=author)
    return SavedVersion(saved, known is None)


@transaction.atomic
def try_ensure(
    *, criterion: Criterion, prompt: WorkingPrompt, examples: Sequence[ExampleChoice], author: User
) -> PromptVersion:
    """Return the draft as a row for a judge: its unchanged base, the version with the same content, or a try.

    `examples` are the prompt's with their chats. A try has no number; equal text and examples are the same
    row. Raises PromptRefused as prompt_version_add does.
    """
    if prompt.revision == 0:
        return prompt.base
    # A try must not become version 1, which is the shipped or generated champion.
    champions_ensure(criteria=[criterion], by=author)
    Criterion.objects.select_for_update(no_key=True).get(pk=criterion.pk)
    prompt_check(criterion=criterion, text=prompt.text, examples=examples)
    digest = prompt_hash(text=prompt.text, examples=examples)
    saved = PromptVersion.objects.filter(criterion=criterion, content_hash=digest).first()
    known = saved or tried_version(criterion=criterion, content_hash=digest)
    return known or version_store(
        criterion=criterion,
        number=None,
        text=prompt.text,
        examples=examples,
        origin=prompt.origin,
        base=prompt.base,
        author=author,
    )


def example_lines(examples: Sequence[ExampleChoice]) -> list[dict[str, Any]]:
    """Return examples in the form of a draft's."""
    return [
        {
            "chat": one.chat.external_id,
            "turns": [one.first_turn, one.last_turn],
            "value": one.value,
            "rationale": one.rationale,
        }
        for one in examples
    ]


def _lock(criterion: Criterion) -> None:
    row = Criterion.objects.select_for_update(no_key=True).get(pk=criterion.pk)
    if row.state == Criterion.State.RETIRED:
        raise PromptRefused("prompt", f"{row.key} is retired and gets no new versions")


def _check_newer(base: PromptVersion | None, confirmed: int) -> None:
    since = newer_versions(base) if base else []
    if since and (since[-1].number or 0) > confirmed:
        raise NewerVersions(since)


def _check(criterion: Criterion, text: str, examples: Sequence[ExampleChoice], reason: str) -> None:
    if not reason.strip():
        raise FieldProblem("reason", "is missing: say what is new")
    if errors := prompt_errors(criterion=criterion, text=text, examples=examples):
        raise FaultyPrompt(errors)
