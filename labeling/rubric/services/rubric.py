"""Create, extend and rename rubrics, from a file or on a page; add criterion versions."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from django.db import transaction
from django.db.models import Max

from common.import_watch import import_watch
from common.jsonl import NAME_LIMIT, Fields, Ignored, ImportResult, read_document
from common.problems import FieldProblem, shown
from labeling.models.people import User
from labeling.models.rubric import Criterion, Dimension, Rubric
from labeling.people.services.audit import acting_user, audit, audit_import
from labeling.rubric.core.rubric import (
    WORDS_FOR_RATERS,
    CriterionSpec,
    DimensionSpec,
    RubricSpec,
    rubric_of,
)
from labeling.rubric.queries.label_counts import is_labelled
from labeling.rubric.queries.lineage import BROUGHT_BACK, ENDED
from labeling.rubric.services.judging import articles_set, prompts_ensure
from labeling.rubric.services.versions import RULE, version_add

ArticlesSet = Callable[[Criterion, Sequence[str]], bool]


def rubric_import(*, path: Path, articles_set: ArticlesSet, only_new: bool = False) -> ImportResult:
    """
    Create the rubric of a file, or extend it; other criteria do not change. The result counts criteria.

    With `only_new` the rubric's own criteria do not change either; the file only adds missing ones.

    `articles_set(criterion, keys)` stores the knowledge articles of a criterion and returns whether that
    changed anything; it raises FieldProblem("knowledge[n]", …). This app knows nothing about articles.

    Raises ImportProblem; no data is written then.
    """
    with transaction.atomic():
        return read_document(path, lambda fields: _store(fields, path, articles_set, only_new))


def _store(fields: Fields, path: Path, articles_set: ArticlesSet, only_new: bool) -> ImportResult:
    ignored = Ignored()
    spec = rubric_of(fields, ignored)
    stored = rubric_store(
        spec=spec, reason=f"Imported from {path.name}", articles_set=articles_set, only_new=only_new
    )
    counts = stored.counts
    result = ImportResult(
        created=counts["created"],
        unchanged=counts["unchanged"],
        updated=counts["updated"],
        ignored=ignored.counts,
    )
    audit_import(what="rubric", path=path, result=result, obj=stored.rubric)
    return result


@dataclass(frozen=True, slots=True)
class StoredRubric:
    """A rubric, its new criteria, and how many were created, updated or unchanged."""

    rubric: Rubric
    counts: Counter[str]
    created: tuple[Criterion, ...]


def rubric_store(
    *,
    spec: RubricSpec,
    reason: str,
    articles_set: ArticlesSet,
    only_new: bool = False,
    by: User | None = None,
) -> StoredRubric:
    """Create or extend a rubric; call it in a transaction. `by` is None for a command.

    Only a command renames the dimensions that exist: on pages that is a step of its own.

    Raises FieldProblem at `criteria[n]`.
    """
    rubric, created_now = Rubric.objects.get_or_create(name=spec.name)
    import_watch().created([rubric] * created_now)
    dimensions = {dimension.key: _dimension(dimension, rename=by is None) for dimension in spec.dimensions}
    kept = set(rubric.criteria.values_list("key", flat=True)) if only_new else set()
    counts: Counter[str] = Counter()
    created = []
    for n, criterion in enumerate(spec.criteria):
        if criterion.key in kept:
            counts["unchanged"] += 1
            continue
        try:
            row, outcome = criterion_store(
                spec=criterion,
                rubric=rubric,
                dimension=dimensions[criterion.dimension],
                reason=reason,
                articles_set=articles_set,
                by=by,
            )
        except FieldProblem as problem:
            raise FieldProblem(f"criteria[{n}].{problem.field}", problem.message) from None
        counts[outcome] += 1
        created += [row] if outcome == "created" else []
    return StoredRubric(rubric, counts, tuple(created))


def _dimension(spec: DimensionSpec, *, rename: bool) -> Dimension:
    row, created = Dimension.objects.get_or_create(
        key=spec.key, defaults={"name": spec.name, "position": next_position(Dimension)}
    )
    import_watch().created([row] * created)
    if rename and not created and row.name != spec.name:
        import_watch().updated(row, {"name": row.name}, {"name": spec.name})
        row.name = spec.name
        row.save(update_fields=["name"])
    return row


def next_position(model: type[Dimension] | type[Criterion]) -> int:
    highest = model._default_manager.aggregate(highest=Max("position"))["highest"]
    return 0 if highest is None else int(highest) + 1


def criterion_store(
    *,
    spec: CriterionSpec,
    rubric: Rubric,
    dimension: Dimension,
    reason: str,
    articles_set: ArticlesSet,
    by: User | None = None,
) -> tuple[Criterion, str]:
    """Store one criterion; return it and "created", "updated" or "unchanged". Raises FieldProblem."""
    fields = {
        "dimension": dimension,
        "tier": spec.tier,
        "critical": spec.critical,
        "evidence_on_fail": spec.evidence_on_fail,
        "articles": Criterion.Articles.ALL if spec.reads_all_articles else Criterion.Articles.LISTED,
        "state": spec.state or None,
    }
    fields = {name: value for name, value in fields.items() if value is not None}
    row = Criterion.objects.select_related("rubric").filter(key=spec.key).first()
    created = row is None
    if row is None:
        row = Criterion.objects.create(
            key=spec.key, rubric=rubric, position=next_position(Criterion), **fields
        )
        import_watch().created([row], ("tier", "critical", "articles", "state", "dimension_id"))
    elif row.rubric_id != rubric.pk:
        raise FieldProblem("key", f"{shown(spec.key)} belongs to the rubric {shown(row.rubric.name)}")
    was = row.state
    changed = [_apply(row, fields), _version(row, spec, reason, by), articles_set(row, spec.knowledge or ())]
    if row.state != was:
        verb = ENDED["retire"] if row.state == Criterion.State.RETIRED else BROUGHT_BACK
        audit(actor=by or acting_user(), verb=verb, obj=row, criterion=row.key, reason=reason)
    return row, "created" if created else "updated" if any(changed) else "unchanged"


def _apply(row: Criterion, fields: dict[str, object]) -> bool:
    changed = [name for name, value in fields.items() if getattr(row, name) != value]
    if changed:
        stored = [f"{name}_id" if name == "dimension" else name for name in changed]
        before = {name: getattr(row, name) for name in stored}
        for name in changed:
            setattr(row, name, fields[name])
        import_watch().updated(row, before, {name: getattr(row, name) for name in stored})
        row.save(update_fields=changed)
    return bool(changed)


def _version(row: Criterion, spec: CriterionSpec, reason: str, by: User | None) -> bool:
    """Add a new version where text or rule changed; existing labels keep their version."""
    newest = row.versions.order_by("number").last()
    rule = {name: bool(getattr(spec, name)) for name in RULE}
    texts = {"question": spec.question, "definition": spec.definition}
    texts |= {name: getattr(newest, name, "") for name in WORDS_FOR_RATERS} | dict(spec.words_for_raters)
    if newest is not None:
        if all(getattr(newest, name) == value for name, value in (texts | rule).items()):
            return False
        if newest.passes_when != spec.passes_when:
            passing_check(row)
    version = version_add(criterion=row, texts=texts, rule=rule, reason=reason, by=by or acting_user())
    import_watch().created([version])
    return True


def passing_check(row: Criterion) -> None:
    """Raise FieldProblem where the passing answer may not change: labels would turn into their opposite."""
    if is_labelled(row):
        raise FieldProblem("passes_when", f"cannot change: {row.key} has labels; make a new criterion")


# ---------- pages ----------


@transaction.atomic
def rubric_create(*, spec: RubricSpec, reason: str, by: User) -> StoredRubric:
    """
    Create a rubric with these dimensions and criteria, each with its first prompt.

    Raises FieldProblem: the name is taken, or one of the criteria is in another rubric.
    """
    if Rubric.objects.filter(name=spec.name).exists():
        raise FieldProblem("name", f"The rubric {shown(spec.name)} exists already. Choose another name.")
    stored = rubric_store(spec=spec, reason=reason, articles_set=articles_set, by=by)
    audit(
        actor=by,
        verb="rubric created",
        obj=stored.rubric,
        name=spec.name,
        dimensions=[dimension.key for dimension in spec.dimensions],
        criteria=[criterion.key for criterion in spec.criteria],
        reason=reason,
    )
    prompts_ensure(criteria=stored.created, by=by)
    return stored


@transaction.atomic
def rubric_extend(*, rubric: Rubric, spec: RubricSpec, reason: str, by: User) -> StoredRubric:
    """Add the criteria of a specification that the rubric does not have, each with its first prompt.

    Raises FieldProblem: one of them is in another rubric.
    """
    Rubric.objects.select_for_update(no_key=True).get(pk=rubric.pk)
    spec = replace(spec, name=rubric.name)
    stored = rubric_store(spec=spec, reason=reason, articles_set=articles_set, only_new=True, by=by)
    if stored.created:
        keys = [row.key for row in stored.created]
        audit(actor=by, verb="rubric extended", obj=rubric, name=rubric.name, criteria=keys, reason=reason)
    prompts_ensure(criteria=stored.created, by=by)
    return stored


@transaction.atomic
def rubric_rename(*, rubric: Rubric, name: str, seen: str, by: User) -> Rubric:
    """Rename a rubric; `seen` is the name that the user saw. Raises FieldProblem."""
    row = Rubric.objects.select_for_update(no_key=True).get(pk=rubric.pk)
    name = name_check(name, current=row.name, seen=seen)
    if name == row.name:
        return row
    if Rubric.objects.filter(name=name).exists():
        raise FieldProblem("name", f"The rubric {shown(name)} exists already. Choose another name.")
    audit(actor=by, verb="rubric renamed", obj=row, name={"old": row.name, "new": name})
    row.name = name
    row.save(update_fields=["name"])
    return row


def name_check(name: str, *, current: str, seen: str) -> str:
    """Return the trimmed name. Raises FieldProblem, also where somebody renamed it since the user saw it."""
    name = name.strip()
    if not name:
        raise FieldProblem("name", "The name is missing.")
    if len(name) > NAME_LIMIT:
        raise FieldProblem("name", f"The name is longer than {NAME_LIMIT} characters ({len(name)}).")
    if name != current and seen != current:
        raise FieldProblem("name", f"Somebody renamed it to {shown(current)} meanwhile. Rename it again.")
    return name
