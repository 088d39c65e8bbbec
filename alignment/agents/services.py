"""What an agent may change: its author's draft, and a regression test of it on dev; both are audited."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from django.db import transaction
from rest_framework.exceptions import ValidationError
from structlog.contextvars import bound_contextvars

from alignment.agents.core import SCOPES
from alignment.agents.queries import PROPOSED, criterion_named, open_test_of, proposed_revision
from alignment.models.regressions import RegressionTest
from alignment.prompts.services import draft_publish, draft_write, example_choices_for
from alignment.regression.serializers import RegressionInput
from alignment.regression.services.starts import regression_start
from common.problems import InputProblem
from evaluation.models.prompts import PromptDraft, PromptVersion
from evaluation.prompts.core.lint import Finding
from evaluation.prompts.queries.drafts import draft_of
from evaluation.prompts.queries.versions import champions
from evaluation.prompts.services.drafts import StaleDraft
from evaluation.prompts.services.lint import prompt_lint
from labeling.models.chats import Split
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.services.audit import audit, through_agent
from labeling.people.services.tokens import TokenRefused, token_user

UNKNOWN = "The token is unknown, revoked or expired. Create one on the page API tokens."
OWN_DRAFT = (
    "Your author has written or edited the draft of this prompt. Ask them to save or discard it: agents do "
    "not replace the work of people."
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """The saved draft, and the problems in its text, errors first."""

    draft: PromptDraft
    findings: Sequence[Finding]


@contextmanager
def agent_session(*, secret: str, program: str, scope: str) -> Iterator[User]:
    """
    Yield the token's user for one call, with the scopes of agents alone; changes are audited as the agent's.

    Raises InputProblem for a token that is not valid or lacks the scope.
    """
    try:
        user, token = token_user(secret=secret)
    except TokenRefused:
        # NB: without `from None` the refused token would be in the traceback's frames.
        raise InputProblem(UNKNOWN) from None
    user.scopes = (user.scopes or frozenset()) & SCOPES
    if not user.has_perm(f"labeling.{scope}"):
        raise InputProblem(f"The token lacks the scope {scope}, or its user the permission.")
    with bound_contextvars(request_id=uuid4().hex), through_agent(token=token, program=program):
        yield user


@transaction.atomic
def draft_propose(
    *,
    criterion: str,
    author: User,
    text: str,
    examples: Sequence[Mapping[str, Any]] | None,
    base: int,
    revision: int,
) -> Proposal:
    """
    Save a text as the author's draft, marked as an agent's; an earlier proposal is replaced.

    Parameters
    ----------
    examples : worked examples from train chats; None keeps those of the draft or base.
    base : number of the version it starts from; 0 is the champion.
    revision : of the draft that the agent has read; 0 for none.

    Raises InputProblem, also where the author has a draft of their own.
    """
    row = _active(criterion)
    _own_refuse(draft_of(criterion=row, author=author))
    lines = None if examples is None else [dict(one) for one in examples]
    saved = draft_write(
        criterion=row,
        author=author,
        base=_base(row, base),
        revision=revision,
        text=text,
        lines=lines,
        origin=PromptVersion.Origin.AGENT,
    )
    detail = {"criterion": row.key, "base": saved.base.number, "revision": saved.revision}
    audit(actor=author, verb=PROPOSED, obj=saved, **detail)
    choices = example_choices_for(author, saved.examples)
    return Proposal(saved, prompt_lint(criterion=row, text=saved.text, examples=choices))


@transaction.atomic
def draft_test(
    *, criterion: str, author: User, chat_set: str, reason: str, version: int, budget_usd: str
) -> RegressionTest:
    """
    Start the regression test of a version on the dev split; version 0 first saves the author's draft as one.

    Raises InputProblem, also while another test of this author is not decided yet.
    """
    row = _active(criterion)
    if (running := open_test_of(user=author)) is not None:
        raise InputProblem(f"Regression test {running.pk} is not decided yet: read_test tells when it is.")
    number = version or _draft_save(row, author, reason)
    values = {"set": chat_set, "split": Split.DEV.value, "criterion": criterion, "version": number}
    body = RegressionInput(data=values | ({"budget_usd": budget_usd} if budget_usd else {}))
    try:
        body.is_valid(raise_exception=True)
    except ValidationError as wrong:
        raise InputProblem(f"{wrong.detail}") from wrong
    test = regression_start(body.wish(author), by=author).test
    detail = {"criterion": criterion, "version": number, "set": chat_set, "split": test.split}
    audit(actor=author, verb="draft tested", obj=test, **detail)
    return test


def _draft_save(criterion: Criterion, author: User, reason: str) -> int:
    """Save the agent's draft as a version and return its number."""
    draft = draft_of(criterion=criterion, author=author)
    if draft is None:
        raise InputProblem("There is no draft: propose_draft first, or name a version.")
    _own_refuse(draft)
    newest = PromptVersion.objects.filter(criterion=criterion).order_by("-number").first()
    saved = draft_publish(
        criterion=criterion,
        author=author,
        base=draft.base,
        revision=draft.revision,
        reason=reason,
        confirmed=newest.number or 0 if newest else 0,
    )
    audit(
        actor=author,
        verb="draft saved",
        obj=saved.version,
        criterion=criterion.key,
        version=saved.version.number,
    )
    return saved.version.number or 0


def _own_refuse(draft: PromptDraft | None) -> None:
    """Raise InputProblem for a draft that a person wrote or has edited since an agent proposed it."""
    if draft is not None and proposed_revision(draft) != draft.revision:
        raise InputProblem(OWN_DRAFT)


def _active(key: str) -> Criterion:
    row = criterion_named(key)
    if row.state != Criterion.State.ACTIVE:
        raise InputProblem(f"{key} is retired.")
    return row


def _base(criterion: Criterion, number: int) -> PromptVersion:
    rows = PromptVersion.objects.filter(criterion=criterion)
    row = rows.filter(number=number).first() if number else champions(criteria=[criterion]).get(criterion.pk)
    row = row or (None if number else rows.order_by("-number").first())
    if row is None:
        raise InputProblem(f"{criterion.key} has no version {number}.")
    return row


def problem_text(problem: Exception) -> str:
    """Return a refusal in words for an agent."""
    if isinstance(problem, StaleDraft):
        now = problem.draft.revision if problem.draft else 0
        return f"The draft has changed: its revision is {now}. read_draft, then propose again."
    return str(problem)
