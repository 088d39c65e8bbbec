"""The docs as pages: rendered once, linked from each other and from the pages of the product."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.template import Context, Template
from pytest_django import Settings

from lace_site.docs import DocsFinder, render_docs
from tests.factories.doc_pages import headings

DOCS: Path = settings.BASE_DIR / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *settings.BASE_DIR.glob("*.md")])
TAG = re.compile(r"""\{%\s*learn_more\s+['"]([^'"]+)['"](?:\s+['"]([^'"]+)['"])?""")


def test_a_page_is_rendered_once_and_again_when_it_changes(tmp_path: Path) -> None:
    page, html = tmp_path / "docs" / "page.md", tmp_path / "html" / "page.html"
    page.parent.mkdir()
    text = "# Title\n\nSee [files](reference/files.md#labels) and [how to contribute](../CONTRIBUTING.md).\n"
    page.write_text(text, encoding="utf-8")
    assert render_docs(page.parent, html.parent) == [html]
    assert render_docs(page.parent, html.parent) == []
    assert '<h1 id="title">Title</h1>' in html.read_text()
    assert '<a href="reference/files.html#labels">files</a> and how to contribute.' in html.read_text()
    page.write_text("# Other\n", encoding="utf-8")
    assert render_docs(page.parent, html.parent) == [html]


def test_whoever_lists_the_pages_meanwhile_finds_whole_ones_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages, served, seen = tmp_path / "docs", tmp_path / "served" / "html", []
    pages.mkdir()

    def rendered(text: str, *, depth: int) -> str:
        seen.append([path.name for path in served.rglob("*")])
        return text

    monkeypatch.setattr("lace_site.docs.docs_page", rendered)
    for name in ("a", "b"):
        (pages / f"{name}.md").write_text(name, encoding="utf-8")
    render_docs(pages, served)
    assert seen == [[], ["a.html"]]


def test_pages_are_rendered_when_static_files_are_looked_up(tmp_path: Path, settings: Settings) -> None:
    settings.DOCS_DIR = tmp_path
    settings.STATICFILES_DIRS = [("docs", tmp_path)]
    finder = DocsFinder()
    assert list(tmp_path.iterdir()) == []
    assert finder.find("docs/review-alignment.html")
    assert "review-alignment.html" in {path for path, _ in finder.list([])}


def test_the_docs_are_served_without_sign_in() -> None:
    assert finders.find("docs/review-alignment.html")


@pytest.mark.parametrize("doc", PAGES, ids=lambda path: path.stem)
def test_every_link_between_pages_has_its_target(doc: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", doc.read_text(encoding="utf-8")):
        path, _, heading = target.partition("#")
        if "://" in target or path.startswith("/"):
            continue
        other = (doc.parent / path).resolve() if path else doc
        assert other.exists(), f"{doc.name}: {target}"
        assert not heading or heading in headings(other), f"{doc.name}: {target}"


def test_every_learn_more_leads_to_a_heading() -> None:
    for template in (settings.BASE_DIR / "templates").rglob("*.html"):
        for page, heading in TAG.findall(template.read_text(encoding="utf-8")):
            target = DOCS / f"{page}.md"
            assert target.exists(), f"{template.name}: {page}"
            assert not heading or heading in headings(target), f"{template.name}: {page}#{heading}"


def test_learn_more_is_a_link_to_the_chapter() -> None:
    source = "{% load display %}{% learn_more 'understand/statistics' 'pass-rates' %}"
    html = Template(source).render(Context())
    assert re.fullmatch(
        r'<a href="/static/\w+/docs/understand/statistics.html#pass-rates">Learn more</a>', html
    )
