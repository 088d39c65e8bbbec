"""Adds prompt versions with worked examples; a chat for measuring judges never becomes an example."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from common.problems import FieldProblem, InputProblem, shown
from evaluation.core.hashing import canonical, text_hash
from evaluation.models.prompts import FewShotExample, PromptVersion
from evaluation.prompts.core import sections
from evaluation.prompts.core.example_lines import ExampleShape, check_example, check_mixture
from evaluation.prompts.queries.definitions import known_version
from evaluation.prompts.queries.leaks import MEASURED, measured_chats, nearly_measured
from evaluation.prompts.queries.versions import newest_versions, next_number, tried_version
from evaluation.prompts.services.versions import champions_ensure, prompt_confirm
from labeling.models.chats import Chat, ChatSetMember, Split
from labeling.models.people import User
from labeling.models.rubric import Criterion

LONGEST_PROMPT = 100_000


@dataclass(frozen=True, slots=True)
class ExampleChoice:
    """An excerpt of a chat (turns from 1, last one included), the raters' answer, and the reason."""

    chat: Chat
    first_turn: int
    last_turn: int
    value: bool | None
    rationale: str


class PromptRefused(InputProblem):
    """A refused prompt version; `index` is the number of the wrong example, from 0, if it is about one."""

    def __init__(self, field: str, message: str, *, index: int | None = None) -> None:
        where = field if index is None else f"examples[{index}].{field}"
        super().__init__(f"{where}: {message}")
        self.field = field
        self.message = message
        self.index = index


@transaction.atomic
def prompt_version_add(
    *,
    criterion: Criterion,
    text: str,
    examples: Sequence[ExampleChoice] = (),
    reason: str = "",
    author: User | None = None,
    base: PromptVersion | None = None,
    origin: str = PromptVersion.Origin.AUTHOR,
    again: bool = False,
) -> PromptVersion:
    """Add the next version of a criterion's prompt, as a draft; the same text and examples add nothing.

    They add a version if the criterion's text changed since they were saved: the author has read them again.
    Such a version of the champion's content becomes the champion, because judges stay the same.
    `again` creates a new version anyway.

    Raises PromptRefused for a prompt that is blank, too long or sets the form of the answer, for an example
    from a chat that is not for training or (nearly) equals a measured one, for a repeated chat, and for a
    wrong turn, value or mixture.
    """
    # A draft must not become version 1: that one is the shipped or generated champion.
    # Locked first: another champion released meanwhile must not be replaced by the earlier one.
    Criterion.objects.select_for_update(no_key=True).get(pk=criterion.pk)
    champion = champions_ensure(criteria=[criterion], by=author)[criterion.pk]
    prompt_check(criterion=criterion, text=text, examples=examples)
    digest = prompt_hash(text=text, examples=examples)
    known = None if again else known_version(criterion=criterion, content_hash=digest)
    if known is not None:
        return known
    added = version_store(
        criterion=criterion,
        number=next_number(criterion),
        text=text,
        examples=examples,
        origin=origin,
        base=base,
        reason=reason,
        author=author,
    )
    if champion.content_hash == digest:
        prompt_confirm(version=added, champion=champion, by=author)
    return added


def version_store(
    *,
    criterion: Criterion,
    number: int | None,
    text: str,
    examples: Sequence[ExampleChoice],
    origin: str,
    base: PromptVersion | None,
    author: User | None,
    reason: str = "",
) -> PromptVersion:
    """Write a checked version; without a number it is only a try.

    If the same content was tried before, its row becomes the version, because judges point to it.
    """
    digest = prompt_hash(text=text, examples=examples)
    row = tried_version(criterion=criterion, content_hash=digest)
    if row is None:
        row = PromptVersion(criterion=criterion, text=text, content_hash=digest)
    row.number, row.origin, row.base, row.reason, row.author = number, origin, base, reason, author
    row.written_for = newest_versions(criteria=[criterion])[criterion.pk]
    row.created_at = timezone.now()
    created = row.pk is None
    row.save()
    if created:
        FewShotExample.objects.bulk_create(_row(row, n, one) for n, one in enumerate(examples))
    return row


def prompt_check(*, criterion: Criterion, text: str, examples: Sequence[ExampleChoice]) -> None:
    """Raise PromptRefused for a text or examples that no version of this criterion may have."""
    _check_text(text)
    _check_examples(criterion, examples)


def prompt_hash(*, text: str, examples: Sequence[ExampleChoice]) -> str:
    """Return the content address of a prompt: of its text alone, or of text and examples in any order.

    Each judge orders the examples by its seed, so their order does not matter.
    """
    if not examples:
        return text_hash(text)
    worked = [
        [one.chat.content_hash, one.first_turn, one.last_turn, one.value, one.rationale] for one in examples
    ]
    return text_hash(canonical([text, sorted(worked, key=canonical)]))


def _row(version: PromptVersion, position: int, example: ExampleChoice) -> FewShotExample:
    return FewShotExample(
        prompt_version=version,
        position=position,
        chat=example.chat,
        first_turn=example.first_turn,
        last_turn=example.last_turn,
        value=example.value,
        rationale=example.rationale,
    )


def _check_text(text: str) -> None:
    if not text.strip():
        raise PromptRefused("prompt", "is empty")
    if len(text) > LONGEST_PROMPT:
        raise PromptRefused("prompt", f"is longer than {LONGEST_PROMPT:,} characters ({len(text):,})")
    if "\0" in text:
        raise PromptRefused("prompt", "contains a NUL character")
    response = sections(text).get("response", "")
    if any(line.strip(" #*`:").casefold() == "verdicts" for line in response.split("\n")):
        raise PromptRefused("prompt", "# Response contains a VERDICTS block: remove it, the engine adds one")


def _check_examples(criterion: Criterion, examples: Sequence[ExampleChoice]) -> None:
    try:
        check_mixture([example.value for example in examples])
    except FieldProblem as problem:
        raise PromptRefused(problem.field, problem.message) from None
    examples_check(criterion=criterion, examples=examples)


def examples_check(*, criterion: Criterion, examples: Sequence[ExampleChoice]) -> None:
    """Raise PromptRefused for an example that a prompt may not have; their mixture is checked elsewhere."""
    allow_na = newest_versions(criteria=[criterion])[criterion.pk].allow_na
    for index, example in enumerate(examples):
        try:
            check_example(_shape(example), allow_na=allow_na)
        except FieldProblem as problem:
            raise PromptRefused(problem.field, problem.message, index=index) from None
    _check_twins(examples)
    _check_splits(examples)
    _check_resemblance(examples)


def _shape(example: ExampleChoice) -> ExampleShape:
    return ExampleShape(
        first_turn=example.first_turn,
        last_turn=example.last_turn,
        turns=example.chat.message_count,
        value=example.value,
        rationale=example.rationale,
    )


def _check_twins(examples: Sequence[ExampleChoice]) -> None:
    by_hash: dict[str, ExampleChoice] = {}
    for index, example in enumerate(examples):
        first = by_hash.setdefault(example.chat.content_hash, example)
        if first is not example:
            raise _chat_refused(index, example, "is already an example")


def _check_splits(examples: Sequence[ExampleChoice]) -> None:
    """Check that every chat is `train` somewhere and has no other split."""
    splits_by_chat: dict[int, set[str]] = {}
    rows = ChatSetMember.objects.filter(chat__in=[example.chat.pk for example in examples])
    for chat, split in rows.values_list("chat_id", "split"):
        splits_by_chat.setdefault(chat, set()).add(split)
    for index, example in enumerate(examples):
        splits = splits_by_chat.get(example.chat.pk, set())
        for split in MEASURED:
            if split in splits:
                raise _chat_refused(index, example, f"is {split} in a set; examples come from train only")
        if Split.TRAIN not in splits:
            raise _chat_refused(index, example, "is train in no set; examples come from train only")


def _check_resemblance(examples: Sequence[ExampleChoice]) -> None:
    """Check that no chat equals or nearly equals one of dev or holdout; the other chat is not revealed."""
    if not examples:
        return
    hashes = [example.chat.content_hash for example in examples]
    same = set(measured_chats().filter(content_hash__in=hashes).values_list("content_hash", flat=True))
    near = nearly_measured([example.chat for example in examples])
    for index, example in enumerate(examples):
        chat = example.chat
        if chat.content_hash in same:
            raise _chat_refused(index, example, "has the same messages as a dev or holdout chat")
        if chat.pk in near:
            raise _chat_refused(index, example, "is nearly the same as a dev or holdout chat")


def _chat_refused(index: int, example: ExampleChoice, message: str) -> PromptRefused:
    return PromptRefused("chat_id", f"{shown(example.chat.external_id)} {message}", index=index)
