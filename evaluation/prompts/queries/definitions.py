"""Prompts that were written for an older text of their criterion."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from evaluation.models.judges import Judge, JudgePrompt
from evaluation.models.prompts import PromptVersion
from evaluation.prompts.core.definition import Definition, changed_texts
from evaluation.prompts.queries.versions import champions, newest_versions
from labeling.models.rubric import Criterion, CriterionVersion


@dataclass(frozen=True, slots=True)
class OlderDefinition:
    """A prompt version whose criterion's text changed since; both texts by number."""

    criterion: str
    prompt: int | None
    written_for: int
    newest: int
    changed: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Return what changed since the prompt was written."""
        changed = " and ".join(filter(None, (", ".join(self.changed[:-1]), self.changed[-1])))
        return (
            f"written for an older definition of {self.criterion}: "
            f"text {self.written_for}, now {self.newest} ({changed} changed)"
        )


def definition_of(version: CriterionVersion) -> Definition:
    """Return a version's texts and rule."""
    return Definition(
        question=version.question,
        definition=version.definition,
        guideline=version.guideline,
        true_example=version.true_example,
        false_example=version.false_example,
        allow_na=version.allow_na,
    )


def older_definitions(
    prompts: Collection[PromptVersion], *, newest: Mapping[int, CriterionVersion]
) -> dict[int, OlderDefinition]:
    """Return by prompt id how the criterion's text changed since; prompts that still fit are missing.

    A prompt fits if a version with the same content was saved for today's text. The prompts' `written_for` is
    read: select it with them. `newest` as from newest_versions. At most one query.
    """
    older = {row.pk: one for row in prompts if (one := _older(row, newest[row.criterion_id]))}
    if not older:
        return {}
    same = PromptVersion.objects.filter(
        criterion__in={row.criterion_id for row in prompts if row.pk in older},
        content_hash__in={row.content_hash for row in prompts if row.pk in older},
    ).select_related("written_for")
    fits = {(row.criterion_id, row.content_hash) for row in same if not _older(row, newest[row.criterion_id])}
    return {
        row.pk: older[row.pk]
        for row in prompts
        if row.pk in older and (row.criterion_id, row.content_hash) not in fits
    }


def _older(prompt: PromptVersion, newest: CriterionVersion) -> OlderDefinition | None:
    then = prompt.written_for
    if then is None or then.pk == newest.pk:
        return None
    changed = changed_texts(definition_of(then), definition_of(newest))
    if not changed:
        return None
    return OlderDefinition(newest.criterion.key, prompt.number, then.number, newest.number, changed)


def known_version(*, criterion: Criterion, content_hash: str) -> PromptVersion | None:
    """Return the latest version with this content, unless the criterion's text changed since it was saved."""
    same = PromptVersion.objects.filter(criterion=criterion, content_hash=content_hash)
    latest = same.select_related("written_for").last()
    if latest is None or _older(latest, newest_versions(criteria=[criterion])[criterion.pk]):
        return None
    return latest


def older_champions(criteria: Collection[Criterion]) -> dict[int, OlderDefinition]:
    """Return the champions written for an older text, by criterion id. At most four queries."""
    prompts = champions(criteria=criteria)
    older = older_definitions(prompts.values(), newest=newest_versions(criteria=criteria))
    return {pk: older[prompt.pk] for pk, prompt in prompts.items() if prompt.pk in older}


def older_prompts(judges: Iterable[Judge]) -> dict[int, list[OlderDefinition]]:
    """Return the prompts written for an older text, by judge id and in order of the criteria.

    At most three queries.
    """
    rows = list(
        JudgePrompt.objects.filter(judge__in=judges)
        .select_related("prompt_version__written_for")
        .order_by("criterion__key", "prompt_version__number")
    )
    newest = newest_versions(criteria={row.criterion_id for row in rows})
    older = older_definitions([row.prompt_version for row in rows], newest=newest)
    by_judge: dict[int, list[OlderDefinition]] = {}
    for row in rows:
        if row.prompt_version_id in older:
            by_judge.setdefault(row.judge_id, []).append(older[row.prompt_version_id])
    return by_judge


def older_notices(judges: Iterable[Judge]) -> list[str]:
    """Return a notice if prompts of these judges were written for an older text. At most three queries."""
    return notices_of([older for some in older_prompts(judges).values() for older in some])


def notices_of(older: Iterable[OlderDefinition]) -> list[str]:
    """Return one notice for these prompts; empty for none.

    Examples
    --------
    >>> notices_of([OlderDefinition("polite", 1, 1, 2, ("definition",))])
    ['prompt version 1 was written for an older definition of polite: text 1, now 2 (definition changed)']
    """
    each = sorted(set(older), key=lambda one: (one.criterion, one.prompt or 0))
    if not each:
        return []
    if len(each) == 1:
        (one,) = each
        return [
            f"prompt version {one.prompt} was {one.sentence}" if one.prompt else f"a try was {one.sentence}"
        ]
    keys = ", ".join(dict.fromkeys(one.criterion for one in each))
    return [f"{len(each)} prompts were written for an older definition of their criterion: {keys}"]
