"""A prompt author's home: criteria to work on, own drafts, tests and requests, notes of raters."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, QuerySet
from django.urls import reverse

from alignment.comparison.queries.disclosure import hide_small_counts
from alignment.home.queries.glance import GlanceRow
from alignment.misalignments.queries.misalignment_list import misalignments_listed, runs_with_own_chats
from alignment.models.misalignments import Misalignment
from alignment.models.regressions import RegressionTest, ReleaseRequest
from alignment.reports.core.status import Status
from evaluation.models.prompts import PromptDraft
from labeling.models.labels import RaterNote
from labeling.models.people import User
from labeling.models.rubric import Criterion
from labeling.rating.queries.notes import notes_for

WORK, TESTS, REQUESTS, NOTES = 10, 5, 5, 5
MENDED_BY_LABELS = {
    Status.NOT_ENOUGH_LABELS: "more labels first",
    Status.RATERS_DISAGREE: "a clearer guideline: raters disagree",
}


@dataclass(frozen=True, slots=True)
class WorkRow:
    """A criterion to work on: why, its open disagreements that the user may see, and the next action."""

    glance: GlanceRow
    disagreements: int
    drafted: bool

    @property
    def criterion(self) -> Criterion:
        """The criterion."""
        return self.glance.criterion

    @property
    def reason(self) -> str:
        """Why it needs work, in a sentence."""
        newest = self.glance.newest
        if newest is None or not newest.decision.reasons:
            return f"{self.disagreements:,} open disagreement{'' if self.disagreements == 1 else 's'}."
        reason = newest.decision.reasons[0]
        return f"{reason[:1].upper()}{reason[1:]}."

    @property
    def test(self) -> RegressionTest | None:
        """The test of its waiting version that is open or passed."""
        waiting = self.glance.row.waiting
        return (waiting.open_test or waiting.passed) if waiting else None

    @property
    def action(self) -> str:
        """The words on its button."""
        if self.test:
            return f"Open test {self.test.pk}"
        return "Continue draft" if self.drafted else "Edit prompt"

    @property
    def url(self) -> str:
        """The page of its next action."""
        if self.test:
            return reverse("alignment:regression_detail", args=[self.test.pk])
        return reverse("alignment:prompt_edit", args=[self.criterion.key])


@dataclass(frozen=True, slots=True)
class AuthorHome:
    """The sections of an author's home. `assigned`: own open disagreements by criterion."""

    work: Sequence[WorkRow]
    waiting: Sequence[tuple[str, Sequence[GlanceRow]]]  # criteria that no prompt can mend, by what they need
    unmeasured: int
    drafts: Sequence[PromptDraft]
    tests: Sequence[RegressionTest]
    requests: Sequence[ReleaseRequest]
    notes: Sequence[RaterNote]
    open_notes: int
    assigned: Sequence[tuple[Criterion, int]]

    @property
    def headline(self) -> str:
        """The number of criteria to work on."""
        n = len(self.work)
        return f"{n} criteri{'on' if n == 1 else 'a'} to work on" if n else "No criterion needs work"


def author_home(*, user: User, glance: Sequence[GlanceRow]) -> AuthorHome:
    """Return an author's home with these rows, in a constant number of queries.

    It shows no holdout chat, and no figure on fewer holdout chats than the policy allows.
    """
    rows = glance
    shown = misalignments_listed(user=user, without=runs_with_own_chats(user=user))
    every, own = _counts(shown.exclude(state=Misalignment.State.CLOSED), user)
    drafts = list(
        PromptDraft.objects.filter(author=user)
        .select_related("criterion", "base")
        .defer("text", "base__text")
    )
    drafted = {draft.criterion_id for draft in drafts}
    notes = notes_for(user=user).filter(settled_at=None)
    work = [
        WorkRow(row, every.get(row.criterion.pk, 0), row.criterion.pk in drafted)
        for row in rows
        if _needs_work(row, every.get(row.criterion.pk, 0))
    ]
    names = {row.criterion.pk: row.criterion for row in rows}
    return AuthorHome(
        work=work[:WORK],
        waiting=[
            (words, found)
            for status, words in MENDED_BY_LABELS.items()
            if (found := [row for row in rows if row.status == status])
        ],
        unmeasured=sum(row.newest is None for row in rows),
        drafts=sorted(drafts, key=lambda draft: draft.updated_at, reverse=True),
        tests=_tests(user),
        requests=_requests(user),
        notes=list(notes.select_related("rater", "criterion", "chat").defer("chat__messages")[:NOTES]),
        open_notes=notes.count(),
        assigned=[(names[pk], n) for pk, n in own.items() if pk in names],
    )


def _needs_work(row: GlanceRow, disagreements: int) -> bool:
    """Whether a prompt may mend it: not aligned, or disagreements and no figures that the author may see."""
    unknown = row.newest is None and disagreements > 0
    return not row.directional and (row.status == Status.NOT_ALIGNED or unknown)


def _counts(rows: QuerySet[Misalignment], user: User) -> tuple[dict[int, int], dict[int, int]]:
    """Count disagreements by criterion: all of them, and the user's own; two queries."""
    by_criterion = rows.order_by().values_list("criterion")
    own = rows.filter(owner=user).order_by().values_list("criterion")
    return dict(by_criterion.annotate(n=Count("pk"))), dict(own.annotate(n=Count("pk")))


def _tests(user: User) -> list[RegressionTest]:
    """Return the user's newest decided tests, without counts that they may not see."""
    rows = RegressionTest.objects.filter(created_by=user, state=RegressionTest.State.DONE)
    tests = list(
        rows.select_related("candidate__criterion", "candidate_run__judge", "chat_set", "baseline_run")
        .defer("candidate__text")
        .order_by("-finished_at")[:TESTS]
    )
    hide_small_counts(tests, user=user)
    return tests


def _requests(user: User) -> list[ReleaseRequest]:
    rows = ReleaseRequest.objects.filter(by=user).select_related(
        "answered_by", "regression__candidate__criterion", "regression__candidate_run__judge"
    )
    return list(rows.order_by("-pk")[:REQUESTS])
