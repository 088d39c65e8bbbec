"""Propose redesigns, and carry them out for criteria without open tests; knowledge articles are kept."""

from django.db import IntegrityError, transaction

from alignment.models.requests import LONGEST, RedesignProposal
from alignment.prompts.redesign.queries import open_tests
from common.inbox.services import Kind, inbox_add
from common.problems import FieldProblem, InputProblem
from evaluation.knowledge.services import criterion_articles_set
from evaluation.models.prompts import CriterionArticle
from labeling.consensus.services.consensus import criteria_lock
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.people.queries.visibility import accounts_with
from labeling.people.services.audit import audit
from labeling.rubric.core.redesign import Redesign
from labeling.rubric.services.redesign import Redesigned, criteria_redesign

Answer = RedesignProposal.Answer


@transaction.atomic
def redesign_carry_out(*, redesign: Redesign, reason: str, by: User | None) -> Redesigned:
    """
    Redesign criteria; the new ones get the articles that the old ones list.

    Raises FieldProblem as `criteria_redesign` does, and while an open regression test includes one of the old
    criteria: its result would be about a question that is no longer in use.
    """
    # Locked before the check, as a starting test locks its criteria, too.
    criteria_lock(criterion_ids=list(Criterion.objects.values_list("pk", flat=True)))
    if tests := open_tests(criteria=Criterion.objects.filter(key__in=redesign.olds)):
        raise FieldProblem("kind", f"regression test {tests[0].pk} is open: wait for it or cancel it first")
    done = criteria_redesign(redesign=redesign, reason=reason, by=by)
    _copy_articles(done)
    for row in RedesignProposal.objects.filter(criterion__in=done.olds, answer=Answer.OPEN):
        _answered(row, Answer.REDESIGNED, by=by)
    return done


def _copy_articles(done: Redesigned) -> None:
    """Copy listed articles; a criterion that reads all articles needs no list."""
    if any(row.articles == Criterion.Articles.ALL for row in done.olds):
        return
    links = CriterionArticle.objects.filter(criterion__in=done.olds)
    listed = sorted(set(links.values_list("article__key", flat=True)))
    if not listed:
        return
    for criterion in done.new:
        criterion.articles = Criterion.Articles.LISTED
        criterion.save(update_fields=["articles"])
        criterion_articles_set(criterion, listed)


# ---------- proposals ----------


@transaction.atomic
def redesign_propose(*, criterion: Criterion, note: str, by: User) -> RedesignProposal:
    """Propose to the leads to redesign a criterion. Raises InputProblem."""
    if criterion.state == Criterion.State.RETIRED:
        raise InputProblem(f"{criterion.name} is retired")
    _demand(note, "a note that says what should change")
    try:
        with transaction.atomic():
            row = RedesignProposal.objects.create(criterion=criterion, note=note.strip(), by=by)
    except IntegrityError as error:
        raise InputProblem("a redesign is proposed already") from error
    audit(actor=by, verb="redesign proposed", obj=criterion, note=row.note)
    inbox_add(users=accounts_with("manage_labeling"), kind=Kind.REDESIGN, subject=_subject(row), by=by)
    return row


@transaction.atomic
def redesign_refuse(*, proposal: RedesignProposal, reason: str, by: User) -> RedesignProposal:
    """Refuse a proposal with a reason, and tell who made it. Raises InputProblem."""
    rows = RedesignProposal.objects.select_for_update(of=("self",)).select_related("by", "criterion")
    row = rows.get(pk=proposal.pk)
    if row.answer != Answer.OPEN:
        raise InputProblem(f"the proposal was answered already: {row.get_answer_display().lower()}")
    _demand(reason, "a reason")
    _answered(row, Answer.REFUSED, reason=reason.strip(), by=by)
    audit(actor=by, verb="redesign refused", obj=row.criterion, reason=row.reason)
    return row


def _demand(text: str, what: str) -> None:
    if not text.strip() or len(text) > LONGEST:
        raise InputProblem(f"enter {what}, of at most {LONGEST:,} characters")


def _answered(row: RedesignProposal, answer: str, *, reason: str = "", by: User | None) -> None:
    row.store_answer(answer, reason=reason, by=by)
    inbox_add(users=[row.by], kind=Kind.ANSWERED, subject=_subject(row), by=by)


def _subject(row: RedesignProposal) -> str:
    return f"redesign:{row.pk}"
