"""The Markdown docs as HTML: their index, a page, and the sections that a search finds."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from itertools import pairwise
from pathlib import Path
from posixpath import dirname, join, normpath

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROW = re.compile(r"^\| \[(?P<title>[^\]]+)\]\((?P<path>[^)#]+)\) \| (?P<covers>.+?) \|$")
FENCE = re.compile(r"(?ms)^ *```.*?^ *```$")
COMMENT = re.compile(r"(?s)<!--.*?-->\n?")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the docs: its title, its file as seen from `docs/`, and what it covers."""

    title: str
    path: str
    covers: str

    @property
    def name(self) -> str:
        """Return the path without ending, as addresses have it."""
        return self.path.removesuffix(".md")

    @property
    def is_inside(self) -> bool:
        """Return whether the file is below `docs/`, and so served by the workbench."""
        return not self.path.startswith("../")


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of the index with its pages."""

    title: str
    pages: tuple[Page, ...]


@dataclass(frozen=True, slots=True)
class Chapter:
    """A heading of a page, and the plain text below it."""

    page: str
    title: str
    heading: str
    anchor: str
    text: str


def read_index(text: str) -> tuple[Section, ...]:
    """Read the tables of `docs/README.md`, which every other list of pages follows.

    A row that leads into a page, to one of its headings, is a shortcut and no page.

    >>> read_index("## Start\\n\\n| [Tutorial](tutorial.md) | all of it |\\n")[0].pages[0].name
    'tutorial'
    """
    sections: list[tuple[str, list[Page]]] = []
    for line in text.splitlines():
        if line.startswith("## "):
            sections.append((line.removeprefix("## "), []))
        elif (row := ROW.match(line)) and sections:
            sections[-1][1].append(Page(**row.groupdict()))
    return tuple(Section(title, tuple(pages)) for title, pages in sections)


def anchor(heading: str) -> str:
    """Return the id of a heading, as code hosts make it.

    >>> anchor("Choices & `split`")
    'choices--split'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@lru_cache(maxsize=200)
def page_html(path: Path, place: str, changed: int) -> tuple[str, str]:
    """Return title and HTML of a file.

    place : the file as seen from `docs/`, such as `reference/files.md`
    changed : its time of change, so that an edited page is read again
    """
    text = COMMENT.sub("", path.read_text(encoding="utf-8"))
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    title = path.stem
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", anchor(inline.content))
            title = inline.content if token.tag == "h1" else title
    for token in tokens:
        _link_pages(token, dirname(place))
    return title, str(markdown.renderer.render(list(_tables_set(tokens)), markdown.options, {}))


def _tables_set(tokens: Sequence[Token]) -> Iterator[Token]:
    """Tables scroll in a group of their own that the keyboard reaches; a head without text is no head."""
    heading, is_empty = "", False
    for token, following in pairwise((*tokens, Token("end", "", 0))):
        if token.type == "heading_open":
            heading = following.content.replace("`", "")
        elif token.type == "table_open":
            yield _html(f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(heading)}">')
        elif token.type == "th_open":
            is_empty = not following.content
        if token.type in {"th_open", "th_close"} and is_empty:
            token.tag = "td"
        yield token
        if token.type == "table_close":
            yield _html("</div>")


def _html(text: str) -> Token:
    return Token("html_block", "", 0, content=f"{text}\n")


def _link_pages(token: Token, folder: str) -> None:
    """Links between pages lose their ending, so they lead to pages; those out of the docs show as text."""
    leaves = False
    for child in token.children or ():
        if child.type == "link_open":
            href = str(child.attrs.get("href", ""))
            leaves = "://" not in href and normpath(join(folder, href)).startswith("..")
            if "://" not in href:
                child.attrSet("href", re.sub(r"\.md(?=#|$)", "", href))
        if child.type in {"link_open", "link_close"}:
            child.hidden = leaves


@lru_cache(maxsize=200)
def chapters(path: Path, name: str, changed: int) -> tuple[Chapter, ...]:
    """Return the chapters of a file, whose page has this name; see `page_html` on `changed`."""
    text = COMMENT.sub("", path.read_text(encoding="utf-8"))
    title, found = path.stem, []
    # NB: a comment in a command begins like a heading.
    fenced = FENCE.sub(lambda match: re.sub(r"(?m)^#", " #", match[0]), text)
    for part in re.split(r"(?m)^(?=#+ )", fenced):
        first, _, rest = part.partition("\n")
        heading = first.lstrip("#").strip()
        if first.startswith("# "):
            title = heading
        if heading:
            plain = " ".join(re.sub(r"[`*|#]|^ *-+ *\|", " ", LINK.sub(r"\1", rest)).split())
            own = "" if first.startswith("# ") else anchor(heading)
            found.append(Chapter(name, title, heading.replace("`", ""), own, plain))
    return tuple(found)
