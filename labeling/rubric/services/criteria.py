"""Criteria on pages and in the API: add one, change its settings and its text."""

from dataclasses import asdict, dataclass, replace

from django.db import IntegrityError, transaction

from common.problems import FieldProblem, shown
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion, Dimension, Rubric
from labeling.people.services.audit import audit
from labeling.rubric.core.meaning import Change
from labeling.rubric.core.rubric import CRITERION_KEY, CRITERION_KEY_LIMIT, CriterionSettings, CriterionSpec
from labeling.rubric.core.rubric import suggested_key as key_from
from labeling.rubric.queries.editor import key_is_fixed, settings_of
from labeling.rubric.queries.versions import TEXTS
from labeling.rubric.services.guidelines import CriterionWords, criterion_write
from labeling.rubric.services.judging import articles_set, prompts_ensure
from labeling.rubric.services.rubric import criterion_store, passing_check


class SettingsConflict(Exception):
    """Another lead saved other settings than those that were edited; `theirs` are the settings now."""

    def __init__(self, theirs: CriterionSettings) -> None:
        super().__init__("Another lead changed the settings first. Yours are not saved.")
        self.theirs = theirs


@dataclass(frozen=True, slots=True)
class Question:
    """What a criterion asks, and what its answers mean."""

    question: str
    definition: str
    passes_when: bool
    allow_na: bool


@dataclass(frozen=True, slots=True)
class ChangedCriterion:
    """A criterion after a change: its versions before and now, and the names of the settings that changed."""

    criterion: Criterion
    before: CriterionVersion
    version: CriterionVersion
    settings: tuple[str, ...]


@transaction.atomic
def criterion_add(*, rubric: Rubric, spec: CriterionSpec, reason: str, by: User) -> Criterion:
    """
    Add a criterion after the others, with version 1 and its first prompt.

    Without a key it gets one from its question. Raises FieldProblem: the key is taken, or another field is
    not valid.
    """
    Rubric.objects.select_for_update(no_key=True).get(pk=rubric.pk)
    if not spec.key:
        taken = set(Criterion.objects.values_list("key", flat=True))
        spec = replace(spec, key=key_from(spec.question, taken=taken))
    _key_check(spec.key)
    try:
        with transaction.atomic():
            row, _ = criterion_store(
                spec=spec,
                rubric=rubric,
                dimension=_dimension(spec.dimension),
                reason=reason,
                articles_set=articles_set,
                by=by,
            )
    except IntegrityError:  # added to another rubric at the same time
        raise _taken(spec.key) from None
    names = ("question", "definition", "passes_when", "allow_na")
    asked = {name: getattr(spec, name) for name in names}
    rest = {name: value for name, value in asdict(settings_of(row)).items() if name != "key"}
    detail = {"criterion": row.key, "rubric": rubric.name, **asked, **rest}
    audit(actor=by, verb="criterion created", obj=row, **detail)
    prompts_ensure(criteria=[row], by=by)
    return row


@transaction.atomic
def criterion_change(
    *,
    criterion: Criterion,
    settings: CriterionSettings,
    question: Question,
    base: int,
    seen: str,
    reason: str,
    by: User,
    meaning: Change = "",
) -> ChangedCriterion:
    """
    Change a criterion: other settings apply at once, another question or definition makes a version.

    `base` is the number of the version that was edited, `seen` the digest of the settings; `meaning` as in
    `criterion_write`. Guideline and examples stay.

    Raises EditConflict or SettingsConflict where somebody saved first, FieldProblem for what is not allowed:
    another key once the criterion is in use, another passing answer once it has labels.
    """
    locked = Criterion.objects.select_for_update(of=("self",), no_key=True)
    row = locked.select_related("dimension").get(pk=criterion.pk)
    theirs = settings_of(row)
    if settings != theirs and seen != theirs.digest:
        raise SettingsConflict(theirs)
    if not reason.strip():
        raise FieldProblem("reason", "is missing")
    before = row.versions.latest("number")
    if question.passes_when != before.passes_when:
        passing_check(row)
    texts = {name: getattr(before, name) for name in TEXTS}
    words = CriterionWords(**texts | {"question": question.question, "definition": question.definition})
    rule = {"passes_when": question.passes_when, "allow_na": question.allow_na}
    version = criterion_write(
        criterion=row, words=words, reason=reason, base=base, by=by, meaning=meaning, rule=rule
    )
    changed = _apply(row, settings, theirs, reason=reason, by=by)
    return ChangedCriterion(row, before, version, changed)


def _apply(
    row: Criterion, settings: CriterionSettings, theirs: CriterionSettings, *, reason: str, by: User
) -> tuple[str, ...]:
    """Store the settings that differ, and log them before and after; return their names."""
    new, old = asdict(settings), asdict(theirs)
    changed = tuple(name for name in new if new[name] != old[name])
    if not changed:
        return ()
    if settings.key != row.key:
        if key_is_fixed(row):
            raise FieldProblem("key", f"cannot change any more: {row.key} is in use")
        _key_check(settings.key)
    row.key, row.tier, row.critical = settings.key, settings.tier, settings.critical
    row.dimension, row.evidence_on_fail = _dimension(settings.dimension), settings.evidence_on_fail
    row.articles = Criterion.Articles.ALL if settings.all_articles else Criterion.Articles.LISTED
    row.save(update_fields=["key", "tier", "critical", "dimension", "evidence_on_fail", "articles"])
    articles_set(row, () if settings.all_articles else settings.knowledge)
    details = {name: {"old": old[name], "new": new[name]} for name in changed}
    audit(actor=by, verb="criterion changed", obj=row, criterion=row.key, reason=reason.strip(), **details)
    return changed


def _key_check(key: str) -> None:
    """Raise FieldProblem for a key that is not valid or is taken."""
    if not CRITERION_KEY.fullmatch(key) or len(key) > CRITERION_KEY_LIMIT:
        limit = f"at most {CRITERION_KEY_LIMIT} lower-case letters, digits and _, letter first"
        raise FieldProblem("key", f"must be {limit}, not {shown(key)}")
    if Criterion.objects.filter(key=key).exists():
        raise _taken(key)


def _taken(key: str) -> FieldProblem:
    return FieldProblem("key", f"{shown(key)} is taken: keys are unique in the workspace")


def _dimension(key: str) -> Dimension:
    """Return the dimension, locked so that nobody removes it meanwhile. Raises FieldProblem."""
    row = Dimension.objects.select_for_update(no_key=True).filter(key=key).first()
    if row is None:
        raise FieldProblem("dimension", f"{shown(key)} is not a dimension any more: choose another one")
    return row
