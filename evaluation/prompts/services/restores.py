"""Restores an earlier prompt version: its text and examples as a new version."""

from django.db import transaction

from common.problems import InputProblem
from evaluation.models.prompts import PromptVersion
from evaluation.prompts.queries.versions import champions
from evaluation.prompts.services.examples import ExampleChoice, PromptRefused, prompt_version_add
from labeling.models.people import User
from labeling.models.rubric import Criterion

KEPT_ORIGINS = (PromptVersion.Origin.SUGGESTED, PromptVersion.Origin.AGENT)


class RestoreRefused(InputProblem):
    """A refused restore; the message says why."""


@transaction.atomic
def prompt_restore(*, version: PromptVersion, reason: str, by: User | None = None) -> PromptVersion:
    """Add a version with the text and examples of an earlier one, as a draft based on it.

    Raises RestoreRefused without a reason, for a retired criterion, if the champion or the latest version has
    the same content, and if an example may no longer be used.
    """
    if not reason.strip():
        raise RestoreRefused("restoring a version needs a reason")
    criterion = Criterion.objects.select_for_update(no_key=True).get(pk=version.criterion_id)
    _check(version, criterion)
    try:
        return prompt_version_add(
            criterion=criterion,
            text=version.text,
            examples=_examples(version),
            reason=reason.strip(),
            author=by,
            base=version,
            origin=version.origin if version.origin in KEPT_ORIGINS else PromptVersion.Origin.AUTHOR,
            again=True,
        )
    except PromptRefused as problem:
        raise RestoreRefused(_why(version, problem)) from None


def _check(version: PromptVersion, criterion: Criterion) -> None:
    if criterion.state == Criterion.State.RETIRED:
        raise RestoreRefused(f"{criterion.key} is retired and gets no new prompts")
    newest = PromptVersion.objects.filter(criterion=criterion).latest("number")
    champion = champions(criteria=[criterion]).get(criterion.pk)
    for other in (champion, newest):
        if other is not None and other.content_hash == version.content_hash:
            what = "the champion" if other == champion else "the latest one"
            raise RestoreRefused(f"version {other.number}, {what}, has the same content")


def _examples(version: PromptVersion) -> list[ExampleChoice]:
    rows = version.examples.select_related("chat__topic").order_by("position")
    return [ExampleChoice(row.chat, row.first_turn, row.last_turn, row.value, row.rationale) for row in rows]


def _why(version: PromptVersion, problem: PromptRefused) -> str:
    """Return why a version cannot be restored. NB: the chat is not named: it may be holdout by now."""
    problem_text = f"version {version.number} cannot be restored as it is"
    if problem.index is None:
        return f"{problem_text}: {problem.message}"
    if problem.field == "chat_id":
        return f"{problem_text}: the chat of example {problem.index + 1} is no longer for training alone"
    return f"{problem_text}: {problem.field} of example {problem.index + 1} {problem.message}"
