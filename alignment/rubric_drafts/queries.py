"""What a drafted definition is made from, and the drafts that a lead sees beside the form."""

from alignment.models.rubric_drafts import CriterionDraft
from alignment.rubric_drafts.core import Material, OtherCriterion
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion, Dimension, Rubric


def draft_material(
    *,
    rubric: Rubric,
    criterion: Criterion | None,
    question: str,
    dimension: str,
    tier: str,
    allow_na: bool,
) -> Material:
    """Return the question and the rubric's other active criteria, without chats and labels; three queries."""
    rows = rubric.criteria.filter(state=Criterion.State.ACTIVE)
    if criterion is not None:
        rows = rows.exclude(pk=criterion.pk)
    criteria = list(rows.order_by("dimension__position", "dimension_id", "position", "id"))
    versions = CriterionVersion.objects.filter(criterion__in=criteria).order_by("number")
    newest = {row.criterion_id: row for row in versions}
    name = Dimension.objects.filter(key=dimension).values_list("name", flat=True).first()
    return Material(
        question=question.strip(),
        dimension=name or dimension,
        tier=tier,
        allow_na=allow_na,
        others=tuple(
            OtherCriterion(row.key, newest[row.pk].question, newest[row.pk].definition) for row in criteria
        ),
    )


def open_draft(*, rubric: Rubric, by: User) -> CriterionDraft | None:
    """Return the draft that this user waits for, if any."""
    states = (CriterionDraft.State.OPEN, CriterionDraft.State.ASKING)
    return CriterionDraft.objects.filter(rubric=rubric, by=by, state__in=states).first()


def newest_draft(*, rubric: Rubric, by: User, question: str) -> CriterionDraft | None:
    """Return this user's newest finished draft for a question, if any."""
    done = CriterionDraft.objects.filter(rubric=rubric, by=by, asked=question.strip())
    return done.exclude(finished_at=None).select_related("call").first()
