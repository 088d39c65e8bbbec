"""What raters are told: the rubric's guideline, each criterion's texts, and what of it is news to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import OuterRef, Subquery
from django.urls import reverse

from labeling.models.labels import Assignment, Label
from labeling.models.rubric import Criterion, CriterionVersion, RubricGuideline
from labeling.rubric.queries.criteria import criteria_of, newest_version

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
    """What reads otherwise than the texts that the rater last worked by, the rubric's guideline first.

    Those are the texts that this chat was submitted under. Before, the guideline of the chat of the rubric
    that they submitted last, and of each criterion the version of their last label; where there is none, what
    stood when they took this chat. So a change is told until the rater has worked by it.
    """
    asked = criteria_of(assignment.job) if criteria is None else criteria
    found = [_guideline_change(assignment), *_criterion_changes(assignment, asked)]
    return tuple(change for change in found if change is not None)


def _guideline_change(assignment: Assignment) -> Change | None:
    rubric_id = assignment.job.chat_set.rubric_id
    rows = list(RubricGuideline.objects.filter(rubric=rubric_id).order_by("number"))
    last = assignment if assignment.state == Assignment.State.SUBMITTED else _last_submitted(assignment)
    read = [row for row in rows if (row.pk == last.guideline_id if last else _stood(row, assignment))]
    old, old_text = (read[-1].number, read[-1].text) if read else (0, "")
    if not rows or rows[-1].text == old_text:
        return None
    return Change(rubric_id, criterion="", name="Guideline", old=old, new=rows[-1].number)


def _last_submitted(assignment: Assignment) -> Assignment | None:
    """Of the rater's chats of the rubric; its guideline is the one that they worked by."""
    rows = Assignment.objects.filter(
        rater=assignment.rater_id,
        state=Assignment.State.SUBMITTED,
        job__chat_set__rubric=assignment.job.chat_set.rubric_id,
    )
    return rows.order_by("-submitted_at").first()


def _stood(row: RubricGuideline | CriterionVersion, assignment: Assignment) -> bool:
    """Whether the text was there when the rater took the chat."""
    return assignment.taken_at is None or row.created_at <= assignment.taken_at


def _criterion_changes(assignment: Assignment, asked: Sequence[Criterion]) -> list[Change | None]:
    # Nothing can have changed where there was only ever one text: nothing is looked up then.
    reworded = [criterion for criterion in asked if len(criterion.versions.all()) > 1]
    read = _versions_read(assignment, reworded) if reworded else {}
    return [_criterion_change(assignment, criterion, read.get(criterion.pk)) for criterion in reworded]


def _versions_read(assignment: Assignment, criteria: Sequence[Criterion]) -> dict[int, int | None]:
    """By criterion id, the number of the version that the rater's last label on it was given under."""
    labels = Label.objects.filter(rater=assignment.rater_id, state=Label.State.SUBMITTED)
    if assignment.state == Assignment.State.SUBMITTED:
        labels = labels.filter(chat=assignment.chat_id)
    last = labels.filter(criterion=OuterRef("pk")).order_by("-given_at").values("version__number")
    rows = Criterion.objects.filter(pk__in=[criterion.pk for criterion in criteria])
    return dict(rows.order_by().annotate(read=Subquery(last[:1])).values_list("pk", "read"))


def _criterion_change(assignment: Assignment, criterion: Criterion, read: int | None) -> Change | None:
    versions, new = list(criterion.versions.all()), newest_version(criterion)
    old = [
        row for row in versions if (_stood(row, assignment) if read is None else row.number == read)
    ] or versions[:1]
    if _shown(old[-1]) == _shown(new):
        return None
    return Change(
        criterion.rubric_id, criterion=criterion.key, name=criterion.name, old=old[-1].number, new=new.number
    )


def _shown(version: CriterionVersion) -> tuple[object, ...]:
    return tuple(getattr(version, name) for name in SHOWN)
