"""Prompts as files of a folder: `KEY.md`, and `KEY.examples.jsonl` for its examples."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from django.db import transaction

from common.jsonl import Ignored, ImportResult, read_text
from common.problems import FieldProblem, ImportProblem, InputProblem, shown
from evaluation.models.prompts import FewShotExample, PromptVersion
from evaluation.prompts.core.files import PromptFile, prompt_file_read, prompt_file_text, same_text
from evaluation.prompts.queries.versions import champions
from evaluation.prompts.services.example_files import ExampleFile, examples_read, refused_in_file
from evaluation.prompts.services.examples import ExampleChoice, PromptRefused, prompt_hash, prompt_version_add
from evaluation.prompts.services.lint import prompt_lint
from evaluation.prompts.services.versions import champions_ensure
from labeling.models.rubric import Criterion
from labeling.people.services.audit import audit_import

TEXT, EXAMPLES = ".md", ".examples.jsonl"


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The number of prompts written, and of files changed."""

    prompts: int
    changed: int


@dataclass(frozen=True, slots=True)
class _NewVersion:
    """The version created from a file."""

    path: Path
    criterion: Criterion
    version: PromptVersion
    examples: Sequence[ExampleChoice]


def prompts_export(folder: Path) -> ExportResult:
    """Write the champion of every active criterion; unchanged files are not touched.

    The examples file of a champion without examples is removed. Raises InputProblem if the folder cannot be
    written.
    """
    criteria = list(Criterion.objects.filter(state=Criterion.State.ACTIVE).order_by("key"))
    prompts = champions_ensure(criteria=criteria, by=None)
    changed = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for criterion in criteria:
            prompt = prompts[criterion.pk]
            changed += _write(folder / f"{criterion.key}{TEXT}", _content(criterion, prompt))
            changed += _write(folder / f"{criterion.key}{EXAMPLES}", _examples(prompt))
    except OSError as error:
        raise InputProblem(f"{folder} cannot be written: {error.strerror}") from None
    return ExportResult(len(criteria), changed)


def prompt_files(criteria: Sequence[Criterion]) -> Iterator[tuple[str, str]]:
    """Yield name and content of the files of these criteria's champions, without writing anything."""
    prompts = champions(criteria=criteria)
    for criterion in criteria:
        if prompt := prompts.get(criterion.pk):
            yield f"{criterion.key}{TEXT}", _content(criterion, prompt)
            if examples := _examples(prompt):
                yield f"{criterion.key}{EXAMPLES}", examples


def prompts_import(folder: Path, *, reason: str) -> ImportResult:
    """Add a version for each file whose text or examples no version has; none is promoted.

    Raises ImportProblem with the file (and line) for a file without a criterion, a wrong head, or a refused
    text or example. Then no version is written.
    """
    ignored = Ignored()
    with transaction.atomic():
        results = [_import(path, reason=reason, ignored=ignored) for path in _files(folder)]
        added = [one for one in results if one is not None]
        result = ImportResult(
            created=len(added),
            unchanged=len(results) - len(added),
            updated=0,
            ignored=dict(ignored.counts),
        )
        audit_import(what="prompts", path=folder.resolve(), result=result, reason=reason)
    # NB: after the transaction, for the lint may read every chat of dev and holdout.
    return replace(result, notes=tuple(note for one in added for note in _notes(one)))


def prompt_read(path: Path, *, criterion: Criterion) -> PromptFile:
    """Return a prompt's file; its head, if any, must name this criterion. Raises ImportProblem."""
    try:
        file = prompt_file_read(read_text(path))
        if file.criterion not in ("", criterion.key):
            raise FieldProblem("criterion", f"is {shown(file.criterion)}, not {criterion.key}")
    except FieldProblem as problem:
        raise ImportProblem(str(path), None, problem.field, problem.message) from None
    return file


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise ImportProblem(
            str(folder), None, "", "is a file, not a folder" if folder.exists() else "no such folder"
        )
    paths = sorted(path for path in folder.iterdir() if path.suffix == TEXT and path.is_file())
    if not paths:
        raise ImportProblem(str(folder), None, "", f"holds no {TEXT} file")
    return paths


def _import(path: Path, *, reason: str, ignored: Ignored) -> _NewVersion | None:
    """Return the version created from one file; None if a version has the same content."""
    criterion = Criterion.objects.filter(key=path.name.removesuffix(TEXT)).first()
    if criterion is None:
        raise ImportProblem(str(path), None, "", f"there is no criterion {shown(path.stem)}")
    file = prompt_read(path, criterion=criterion)
    beside = path.with_name(f"{criterion.key}{EXAMPLES}")
    examples = examples_read(beside, ignored=ignored) if beside.exists() else None
    champions_ensure(criteria=[criterion], by=None)
    if _known(criterion, file.text, examples):
        return None
    choices = examples.choices if examples else ()
    base = PromptVersion.objects.filter(criterion=criterion, number=file.version or 0).first()
    try:
        added = prompt_version_add(
            criterion=criterion,
            text=file.text,
            examples=choices,
            reason=reason,
            base=base,
        )
    except PromptRefused as problem:
        raise refused_in_file(problem, prompt=path, examples=examples) from None
    return _NewVersion(path, criterion, added, choices)


def _notes(added: _NewVersion) -> list[str]:
    """Return the notes on a new version, with the lint's findings."""
    findings = prompt_lint(criterion=added.criterion, text=added.version.text, examples=added.examples)
    return [_version_note(added), *(f"{added.path}: {finding.line}" for finding in findings)]


def _version_note(added: _NewVersion) -> str:
    """Return the new version's number, and a warning if it is not based on the champion."""
    base, champion = added.version.base, champions(criteria=[added.criterion])[added.criterion.pk]
    note = f"{added.path}: version {added.version.number} of {added.criterion.key}"
    if base is not None and base.pk != champion.pk:
        return f"{note}; based on version {base.number}, but the champion is version {champion.number}"
    return note


def _known(criterion: Criterion, text: str, examples: ExampleFile | None) -> bool:
    """Return whether a version has the same content; line ends at the end do not count."""
    choices = examples.choices if examples else ()
    versions = PromptVersion.objects.filter(criterion=criterion)
    return any(
        same_text(version.text, text)
        and version.content_hash == prompt_hash(text=version.text, examples=choices)
        for version in versions
    )


def _content(criterion: Criterion, prompt: PromptVersion) -> str:
    return prompt_file_text(PromptFile(prompt.text, criterion.key, prompt.number, prompt.content_hash))


def _examples(prompt: PromptVersion) -> str:
    """Return one line per example; "" without examples."""
    rows = FewShotExample.objects.filter(prompt_version=prompt).select_related("chat").order_by("position")
    lines = [
        {
            "chat_id": row.chat.external_id,
            "turns": [row.first_turn, row.last_turn],
            "value": row.value,
            "rationale": row.rationale,
        }
        for row in rows
    ]
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)


def _write(path: Path, content: str) -> bool:
    """Write a file if its content changed, or remove it without content; return whether anything changed."""
    before = path.read_bytes() if path.exists() else b""
    if before == content.encode():
        return False
    if content:
        path.write_bytes(content.encode())
    else:
        path.unlink()
    return True
