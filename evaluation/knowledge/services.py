"""Imports knowledge articles from a folder of Markdown files, and sets the articles of a criterion."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from django.db import transaction
from markdown_it import MarkdownIt

from common.import_watch import import_watch
from common.imports import ImportKind, Options, Target
from common.jsonl import KEY_LIMIT, Fields, ImportResult, read_jsonl, read_text
from common.problems import FieldProblem, ImportProblem, shown
from evaluation.core.hashing import text_hash
from evaluation.models.prompts import ArticleVersion, CriterionArticle, KnowledgeArticle
from labeling.models.rubric import Criterion
from labeling.people.services.audit import audit_import

ENDING = ".md"


@transaction.atomic
def knowledge_import(*, folder: Path) -> ImportResult:
    """Create or update an article for each Markdown file in a folder; a changed text is a new version.

    Subfolders are included. The key is the path in the folder without its extension, the title the first
    heading, else the file's name. Articles missing in the folder stay.

    Raises ImportProblem and writes nothing.
    """
    files, others = _files(folder)
    counts = Counter(_store_file(folder, path) for path in files)
    result = ImportResult(
        created=counts["created"],
        unchanged=counts["unchanged"],
        updated=counts["updated"],
        ignored={},
        notes=(f"ignored {others:,} {'file that is' if others == 1 else 'files that are'} not {ENDING}",)
        if others
        else (),
    )
    audit_import(what="knowledge", path=folder.resolve(), result=result)
    return result


def criterion_articles_set(criterion: Criterion, keys: Sequence[str]) -> bool:
    """Set a criterion's articles to exactly these; return whether anything changed.

    Raises FieldProblem("knowledge[n]", …) for the first article that does not exist.
    """
    known = dict(KnowledgeArticle.objects.filter(key__in=keys).values_list("key", "pk"))
    for n, key in enumerate(keys):
        if key not in known:
            raise FieldProblem(f"knowledge[{n}]", f"no article {shown(key)}: run import_knowledge first")
    rows = CriterionArticle.objects.filter(criterion=criterion)
    before, after = set(rows.values_list("article_id", flat=True)), set(known.values())
    rows.filter(article_id__in=before - after).delete()
    new = CriterionArticle.objects.bulk_create(
        CriterionArticle(criterion=criterion, article_id=pk) for pk in sorted(after - before)
    )
    import_watch().created(new)
    return before != after


def title_of(text: str) -> str:
    """Return the first heading of a Markdown text as plain text, "" without one."""
    tokens = iter(MarkdownIt().parse(text))
    for token in tokens:
        if token.type == "heading_open":
            parts = next(tokens).children or []
            title = "".join(part.content for part in parts if part.type in ("text", "code_inline"))
            if title.strip():
                return title.strip()
    return ""


def _files(folder: Path) -> tuple[list[Path], int]:
    """Return the Markdown files in order and the number of other files, links out of the folder included."""
    if not folder.is_dir():
        raise ImportProblem(
            str(folder), None, "", "is a file, not a folder" if folder.exists() else "no such folder"
        )
    files: list[Path] = []
    others = 0
    for place, _, names in os.walk(folder, onerror=_unreadable):
        for name in names:
            path = Path(place, name)
            if path.suffix == ENDING and path.resolve().is_relative_to(folder.resolve()):
                files.append(path)
            else:
                others += 1
    if not files:
        raise ImportProblem(str(folder), None, "", f"holds no {ENDING} file")
    return sorted(files), others


def _unreadable(error: OSError) -> None:
    raise ImportProblem(str(error.filename), None, "", f"cannot be read: {error.strerror}")


def _store_file(folder: Path, path: Path) -> str:
    """Store the article of one file and return what happened."""
    key = path.relative_to(folder).with_suffix("").as_posix()
    text = read_text(path)
    try:
        return _store(key, title_of(text) or path.stem, text)
    except FieldProblem as problem:
        raise ImportProblem(str(path), None, problem.field, problem.message) from None


def _store(key: str, title: str, text: str) -> str:
    """Store one article and return what happened."""
    for name, value in {"key": key, "title": title}.items():
        if len(value) > KEY_LIMIT:
            raise FieldProblem(name, f"is longer than {KEY_LIMIT} characters ({len(value):,})")
    if not text.strip():
        raise FieldProblem("", "is empty")
    article, created = KnowledgeArticle.objects.get_or_create(key=key)
    newest = article.versions.order_by("number").last()
    if newest is not None and newest.text == text:
        return "unchanged"
    version = ArticleVersion.objects.create(
        article=article,
        number=newest.number + 1 if newest else 1,
        title=title,
        text=text,
        content_hash=text_hash(text),
    )
    watch = import_watch()
    watch.created([article] * created)
    watch.created([version])
    return "created" if created else "updated"


@transaction.atomic
def articles_import(path: Path, options: Options) -> ImportResult:
    """Create or update the articles of a JSON Lines file: key, text and, if wanted, title.

    Raises ImportProblem and writes nothing.
    """
    watch = import_watch()
    counts: Counter[str] = Counter()
    lines: dict[str, int] = {}
    for number, data in read_jsonl(path):
        try:
            fields = Fields(data)
            key = fields.text("key", blank=False).strip().removesuffix(ENDING)
            if lines.setdefault(key, number) != number:
                raise FieldProblem("key", f"{shown(key)} appears twice")
            text = fields.text("text")
            title = fields.text("title", default="").strip() or title_of(text) or key.rsplit("/", 1)[-1]
            counts[_store(key, title, text)] += 1
        except FieldProblem as problem:
            watch.refuse(ImportProblem(str(path), number, problem.field, problem.message))
        watch.advance(1)
    result = ImportResult(counts["created"], counts["unchanged"], counts["updated"], ignored={})
    audit_import(what="knowledge", path=path, result=result)
    return result


KNOWLEDGE = ImportKind(
    key="knowledge",
    label="Knowledge",
    unit="articles",
    about="Articles that the judge reads: a ZIP of Markdown files, or a table with a row for each article.",
    targets=(
        Target("key", "Article key", also=("id", "slug", "path", "name", "file"), required=True),
        Target("title", "Title", also=("heading", "subject")),
        Target("text", "Text", also=("content", "body", "markdown", "article"), required=True),
    ),
    store=articles_import,
    examples=(
        {
            "key": "returns",
            "title": "Returns",
            "text": "# Returns\n\nCustomers may return an item within 30 days.",
        },
    ),
)
