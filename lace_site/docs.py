"""The Markdown docs as static pages, so that every page can link to the chapter that explains it."""

import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import FileSystemFinder
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.token import Token


class DocsFinder(FileSystemFinder):
    """Finds the docs among the static files. Pages that changed are rendered when static files are looked up.

    So only what serves or collects static files renders docs, no worker and no other command.
    """

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterable[Any]:
        """List the files of STATICFILES_DIRS."""
        _render()
        return super().list(ignore_patterns)

    def find_location(self, root: str, path: str, prefix: str | None = None) -> str | None:
        """Return the path of a file below `root`, None without one."""
        if prefix and path.startswith(prefix):
            _render()
        return super().find_location(root, path, prefix)


def _render() -> None:
    render_docs(settings.BASE_DIR / "docs", settings.DOCS_DIR)


def render_docs(source: Path, target: Path) -> list[Path]:
    """Write every Markdown page below `source` as HTML below `target`, unless it is up to date.

    Returns the pages written. Safe where several processes start at once: each page is moved in whole.
    """
    written = []
    for page in sorted(source.rglob("*.md")):
        html = target / page.relative_to(source).with_suffix(".html")
        if html.exists() and html.stat().st_mtime >= page.stat().st_mtime:
            continue
        html.parent.mkdir(parents=True, exist_ok=True)
        # Not below `target`: another process may be listing the files it serves.
        with NamedTemporaryFile(
            "w", dir=target.parent, suffix=".part", encoding="utf-8", delete=False
        ) as file:
            file.write(docs_page(page.read_text(encoding="utf-8"), depth=len(page.relative_to(source).parts)))
        Path(file.name).replace(html)
        written.append(html)
    return written


def docs_page(text: str, *, depth: int) -> str:
    """One page; `depth` is 1 for a page at the top of the docs, 2 in a folder."""
    markdown = MarkdownIt("commonmark").enable("table")
    tokens = markdown.parse(text)
    title = "Docs"
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", anchor(inline.content))
            title = inline.content if token.tag == "h1" else title
        _link_pages(token, depth=depth)
    body = SafeString(markdown.renderer.render(tokens, markdown.options, {}))
    return render_to_string("docs.html", {"title": title, "body": body, "top": "../" * depth})


def _link_pages(token: Token, *, depth: int) -> None:
    """Links between pages lead to their HTML; those to files outside the docs show as text."""
    leaves = False
    for child in token.children or ():
        href = str(child.attrs.get("href", ""))
        if child.type == "link_open":
            leaves = href.startswith("../" * depth)
            if "://" not in href:
                child.attrSet("href", re.sub(r"\.md(?=#|$)", ".html", href))
        if child.type in {"link_open", "link_close"}:
            child.hidden = leaves


def anchor(heading: str) -> str:
    """The id of a heading, as code hosts make it.

    >>> anchor("Choices & `split`")
    'choices--split'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
