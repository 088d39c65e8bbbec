"""The pages of the docs that this workbench has, and the chapters that match a search."""

from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.urls import reverse

from common.search.registry import Hit, Query, excerpt
from lace_site.manual.core import Chapter, Section, chapters, page_html, read_index

DOCS: Path = settings.BASE_DIR / "docs"
INDEX = "README.md"


def sections() -> tuple[Section, ...]:
    """Return the index: the pages below `docs/` by section."""
    found = read_index((DOCS / INDEX).read_text(encoding="utf-8"))
    inside = (Section(one.title, tuple(page for page in one.pages if page.is_inside)) for one in found)
    return tuple(one for one in inside if one.pages)


def file_of(name: str, *, ending: str = ".md") -> Path | None:
    """Return the file of a page or picture by its name without ending, as in `reference/files`; or None."""
    # NB: looked up among the files that there are, so that no name leads out of the folder.
    return {_name(path): path for path in DOCS.rglob(f"*{ending}")}.get(name)


def page(name: str) -> tuple[str, str] | None:
    """Return title and HTML of a page; None where there is none of this name."""
    path = file_of(name)
    return page_html(path, f"{name}.md", path.stat().st_mtime_ns) if path else None


def help_hits(query: Query, user: AbstractUser, limit: int) -> list[Hit]:
    """Return the chapters in which every word occurs, those with all of them in their heading first."""
    in_heading, in_text = [], []
    for chapter in _all_chapters():
        if query.fits(f"{chapter.title} {chapter.heading}"):
            in_heading.append(chapter)
        elif query.fits(f"{chapter.title} {chapter.heading} {chapter.text}"):
            in_text.append(chapter)
    return [_hit(chapter, query) for chapter in (*in_heading, *in_text)[:limit]]


def _all_chapters() -> Iterator[Chapter]:
    for path in sorted(DOCS.rglob("*.md")):
        if path.name != INDEX:
            yield from chapters(path, _name(path), path.stat().st_mtime_ns)


def _hit(chapter: Chapter, query: Query) -> Hit:
    label = chapter.title if chapter.heading == chapter.title else f"{chapter.title}: {chapter.heading}"
    url = reverse("help_page", args=[chapter.page]) + (f"#{chapter.anchor}" if chapter.anchor else "")
    return Hit(label, url, excerpt([chapter.text], query))


def _name(path: Path) -> str:
    return path.relative_to(DOCS).with_suffix("").as_posix()
