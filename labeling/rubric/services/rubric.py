"""Import of rubrics: create and extend them, add criterion versions."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from django.db import transaction
from django.db.models import Max

from common.import_watch import import_watch
from common.jsonl import Fields, Ignored, ImportResult, read_document
from common.problems import FieldProblem, shown
from labeling.models.labels import Adjudication, Label
from labeling.models.rubric import Criterion, Dimension, Rubric
from labeling.people.services.audit import acting_user, audit, audit_import
from labeling.rubric.core.rubric import (
    WORDS_FOR_RATERS,
    CriterionSpec,
    DimensionSpec,
    rubric_of,
)
from labeling.rubric.queries.lineage import BROUGHT_BACK, ENDED
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
    rubric, created = Rubric.objects.get_or_create(name=spec.name)
    import_watch().created([rubric] * created)
    dimensions = {dimension.key: _dimension(dimension) for dimension in spec.dimensions}
    kept = set(rubric.criteria.values_list("key", flat=True)) if only_new else set()
    counts: Counter[str] = Counter()
    for n, criterion in enumerate(spec.criteria):
        if criterion.key in kept:
            counts["unchanged"] += 1
            continue
        try:
            outcome = _criterion(criterion, rubric, dimensions[criterion.dimension], path.name, articles_set)
        except FieldProblem as problem:
            raise FieldProblem(f"criteria[{n}].{problem.field}", problem.message) from None
        counts[outcome] += 1
    result = ImportResult(
        created=counts["created"],
        unchanged=counts["unchanged"],
        updated=counts["updated"],
        ignored=ignored.counts,
    )
    audit_import(what="rubric", path=path, result=result, obj=rubric)
    return result


def _dimension(spec: DimensionSpec) -> Dimension:
    row, created = Dimension.objects.get_or_create(
        key=spec.key, defaults={"name": spec.name, "position": _next_position(Dimension)}
    )
    import_watch().created([row] * created)
    if not created and row.name != spec.name:
        import_watch().updated(row, {"name": row.name}, {"name": spec.name})
        row.name = spec.name
        row.save(update_fields=["name"])
    return row


def _next_position(model: type[Dimension] | type[Criterion]) -> int:
    highest = model._default_manager.aggregate(highest=Max("position"))["highest"]
    return 0 if highest is None else int(highest) + 1


def _criterion(
    spec: CriterionSpec, rubric: Rubric, dimension: Dimension, source: str, articles_set: ArticlesSet
) -> str:
    """Store one criterion; return whether it was created, updated or unchanged."""
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
            key=spec.key, rubric=rubric, position=_next_position(Criterion), **fields
        )
        import_watch().created([row], ("tier", "critical", "articles", "state", "dimension_id"))
    elif row.rubric_id != rubric.pk:
        raise FieldProblem("key", f"{shown(spec.key)} belongs to the rubric {shown(row.rubric.name)}")
    was = row.state
    changed = [_apply(row, fields), _version(row, spec, source), articles_set(row, spec.knowledge or ())]
    if row.state != was:
        verb = ENDED["retire"] if row.state == Criterion.State.RETIRED else BROUGHT_BACK
        audit(actor=acting_user(), verb=verb, obj=row, criterion=row.key, reason=_reason(source))
    return "created" if created else "updated" if any(changed) else "unchanged"


def _reason(source: str) -> str:
    return f"Imported from {source}"


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


def _version(row: Criterion, spec: CriterionSpec, source: str) -> bool:
    """Add a new version where text or rule changed; existing labels keep their version."""
    newest = row.versions.order_by("number").last()
    rule = {name: bool(getattr(spec, name)) for name in RULE}
    texts = {"question": spec.question, "definition": spec.definition}
    texts |= {name: getattr(newest, name, "") for name in WORDS_FOR_RATERS} | dict(spec.words_for_raters)
    if newest is not None:
        if all(getattr(newest, name) == value for name, value in (texts | rule).items()):
            return False
        if newest.passes_when != spec.passes_when and _is_labelled(row):
            raise FieldProblem("passes_when", f"cannot change: {row.key} has labels; make a new criterion")
    version = version_add(criterion=row, texts=texts, rule=rule, reason=_reason(source), by=acting_user())
    import_watch().created([version])
    return True


def _is_labelled(row: Criterion) -> bool:
    return Label.objects.filter(criterion=row).exists() or Adjudication.objects.filter(criterion=row).exists()
