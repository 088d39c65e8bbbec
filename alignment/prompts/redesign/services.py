"""Carry out redesigns of criteria without open tests; the new ones keep the knowledge articles."""

from django.db import transaction

from alignment.prompts.redesign.queries import open_tests
from common.problems import FieldProblem
from evaluation.knowledge.services import criterion_articles_set
from evaluation.models.prompts import CriterionArticle
from labeling.consensus.services.consensus import criteria_lock
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.rubric.core.redesign import Redesign
from labeling.rubric.services.redesign import Redesigned, criteria_redesign


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
