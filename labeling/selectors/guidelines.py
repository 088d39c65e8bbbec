"""What raters are told: the rubric's guideline, each criterion's texts, and what of it is news to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from django.db.models import Max
from django.urls import reverse

from labeling.models.labels import Assignment
from labeling.models.rubric import Criterion, CriterionVersion, RubricGuideline
from labeling.selectors.labels import criteria_of, newest_version

# What a rater reads of a version; the rest of it (what passes) is not theirs.
SHOWN = ("question", "definition", "guideline", "true_example", "false_example", "allow_na")


@dataclass(frozen=True, slots=True)
class CriterionText:
    """What a rater reads about one criterion; `number` is the criterion version."""

    key: str
    name: str
    number: int
    question: str
    definition: str
    guideline: str
    true_example: str
    false_example: str


@dataclass(frozen=True, slots=True)
class Guidance:
    """All that the rater of a chat may read: the rubric's guideline (Markdown, number 0 = none) and the texts
    of its criteria by key."""

    rubric_id: int
    rubric: str
    number: int
    text: str
    criteria: Mapping[str, CriterionText]


@dataclass(frozen=True, slots=True)
class Change:
    """A text that is new to a rater: the rubric's guideline (`criterion` is ''), or a criterion's.

    `old` and `new` are version numbers; `old` 0 = there was none.
    """

    rubric_id: int
    criterion: str
    name: str
    old: int
    new: int

    @property
    def url(self) -> str:
        """The page where the rater reads what changed."""
        page = reverse("labeling:read_guideline", args=[self.rubric_id])
        return f"{page}?{urlencode({'criterion': self.criterion, 'was': self.old})}"


def guideline_in_force(*, rubric_id: int) -> RubricGuideline | None:
    """The newest guideline of a rubric; None where nobody wrote one."""
    return RubricGuideline.objects.filter(rubric=rubric_id).order_by("number").last()


def guideline_for(*, assignment: Assignment, criteria: Sequence[Criterion] | None = None) -> Guidance:
    """What the rater of this chat is told now; `criteria` as of `criteria_of`, where the caller has them."""
    rubric = assignment.job.chat_set.rubric
    asked = criteria_of(assignment.job) if criteria is None else criteria
    guideline = guideline_in_force(rubric_id=rubric.pk)
    return Guidance(
        rubric_id=rubric.pk,
        rubric=rubric.name,
        number=guideline.number if guideline else 0,
        text=guideline.text if guideline else "",
        criteria={row.key: criterion_text(row) for row in asked},
    )


def criterion_text(criterion: Criterion) -> CriterionText:
    """The texts in force of a criterion whose versions are prefetched in order."""
    version = newest_version(criterion)
    return CriterionText(
        key=criterion.key,
        name=criterion.name,
        number=version.number,
        question=version.question,
        definition=version.definition,
        guideline=version.guideline,
        true_example=version.true_example,
        false_example=version.false_example,
    )


def changes_since(
    *, assignment: Assignment, criteria: Sequence[Criterion] | None = None
) -> tuple[Change, ...]:
    """What was written since the rater last worked by it, the rubric's guideline first.

    That is since they submitted this chat, else since they submitted their last chat of the rubric, else
    since they took this one: so a change is told on the first chat it holds for, and no longer on the next.
    """
    since = _since(assignment)
    if since is None:
        return ()
    asked = criteria_of(assignment.job) if criteria is None else criteria
    found = [_guideline_change(assignment.job.chat_set.rubric_id, since)]
    found += [_criterion_change(criterion, since) for criterion in asked]
    return tuple(change for change in found if change is not None)


def _since(assignment: Assignment) -> datetime | None:
    if assignment.state == Assignment.State.SUBMITTED:
        return assignment.submitted_at
    submitted = Assignment.objects.filter(
        rater=assignment.rater_id,
        state=Assignment.State.SUBMITTED,
        job__chat_set__rubric=assignment.job.chat_set.rubric_id,
    )
    last: datetime | None = submitted.aggregate(last=Max("submitted_at"))["last"]
    return last or assignment.taken_at


def _guideline_change(rubric_id: int, since: datetime) -> Change | None:
    rows = list(RubricGuideline.objects.filter(rubric=rubric_id).values_list("number", "created_at", "text"))
    before = [(number, text) for number, at, text in rows if at <= since]
    old_number, old_text = before[-1] if before else (0, "")
    if not rows or rows[-1][2] == old_text:
        return None
    return Change(rubric_id, criterion="", name="Guideline", old=old_number, new=rows[-1][0])


def _criterion_change(criterion: Criterion, since: datetime) -> Change | None:
    old = [version for version in criterion.versions.all() if version.created_at <= since]
    new = newest_version(criterion)
    if not old or _shown(old[-1]) == _shown(new):
        return None
    return Change(
        criterion.rubric_id, criterion=criterion.key, name=criterion.name, old=old[-1].number, new=new.number
    )


def _shown(version: CriterionVersion) -> tuple[object, ...]:
    return tuple(getattr(version, name) for name in SHOWN)
