"""The docs at /help/: linked from each other and from the pages of the product, and found by the search."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.template import Context, Template
from django.test import Client

from common.search.registry import Query
from labeling.models.people import Role
from labeling.people.services.tokens import token_create
from lace_site.manual.core import Chapter, chapters, page_html, read_index
from lace_site.manual.queries import help_hits, sections
from tests.factories.doc_pages import headings
from tests.factories.rows import make_user

DOCS: Path = settings.BASE_DIR / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *settings.BASE_DIR.glob("*.md")])
TAG = re.compile(r"""\{%\s*learn_more\s+['"]([^'"]+)['"](?:\s+['"]([^'"]+)['"])?""")


def html_of(folder: Path, text: str, place: str = "page.md") -> str:
    path = folder / Path(place).name
    path.write_text(text, encoding="utf-8")
    return page_html(path, place, 0)[1]


# ---------- pages ----------


def test_links_between_pages_lead_to_pages_and_those_out_of_the_docs_are_text(tmp_path: Path) -> None:
    text = "# Title\n\nSee [files](files.md#labels), [all](../README.md) and [how](../../CONTRIBUTING.md).\n"
    html = html_of(tmp_path, text, "reference/page.md")
    assert '<h1 id="title">Title</h1>' in html
    assert 'See <a href="files#labels">files</a>, <a href="../README">all</a> and how.' in html


def test_a_changed_page_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    for changed, title in enumerate(("Old", "New")):
        path.write_text(f"# {title}\n", encoding="utf-8")
        assert page_html(path, "page.md", changed)[0] == title


def test_comments_of_the_source_are_not_shown(tmp_path: Path) -> None:
    assert html_of(tmp_path, "# Title\n\n<!-- made by: options -->\nText.\n").endswith("<p>Text.</p>\n")


def test_a_table_scrolls_where_the_keyboard_reaches_it_and_an_empty_head_is_none(tmp_path: Path) -> None:
    html = html_of(tmp_path, '# Title\n\n## `Keys` & "files"\n\n| | b |\n| --- | --- |\n| c | d |\n\nText.\n')
    group = (
        '<div class="scroll" tabindex="0" role="group" aria-label="Keys &amp; &quot;files&quot;">\n<table>'
    )
    assert group in html and "</table>\n</div>\n<p>Text.</p>" in html
    assert "<td></td>\n<th>b</th>" in html


@pytest.mark.django_db
def test_help_is_for_people_who_signed_in() -> None:
    client = Client()
    assert client.get("/help/label").headers["Location"] == "/accounts/login/?next=/help/label"
    client.force_login(make_user("rater", Role.RATER))
    assert '<h1 id="label-chats">Label chats</h1>' in client.get("/help/label").content.decode()
    assert client.get("/help/images/rate.png").headers["Content-Type"] == "image/png"
    assert {client.get(f"/help/{name}").status_code for name in ("../manage", "images/x.png", "x.md")} == {
        404
    }


@pytest.mark.django_db
def test_earlier_addresses_lead_to_help() -> None:
    client = Client()
    client.force_login(make_user("rater", Role.RATER))
    moved = client.get("/static/0123456789ab/docs/understand/gate.html")
    assert (moved.status_code, moved.headers["Location"]) == (301, "/help/understand/gate")
    assert client.get("/static/0123456789ab/docs/nothing.html").status_code == 404


@pytest.mark.django_db
def test_an_agent_reads_index_and_pages_as_text_with_a_token() -> None:
    author = make_user("ann", Role.AUTHOR)
    secret = token_create(user=author, name="agent", scopes=["edit_prompts"], days=1).secret
    agent = Client(headers={"Authorization": f"Token {secret}"})
    index = agent.get("/help/llms.txt")
    assert (index.status_code, index.headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    name = re.findall(r"\]\((write-prompts\.md)\)", index.content.decode())[0]
    assert agent.get(f"/help/{name}").content == (DOCS / name).read_bytes()
    assert Client().get("/help/llms.txt").status_code == 403


# ---------- index and search ----------


def test_every_page_is_listed_once_in_the_index() -> None:
    listed = [page.path for one in read_index((DOCS / "README.md").read_text("utf-8")) for page in one.pages]
    files = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    decisions = {path for path in files if path.startswith("adr/0")}
    outside = {f"../{path.name}" for path in settings.BASE_DIR.glob("*.md")}
    assert sorted(listed) == sorted((files | outside) - decisions - {"README.md"})


def test_a_workbench_lists_the_pages_that_it_has() -> None:
    assert all((DOCS / page.path).exists() and page.is_inside for one in sections() for page in one.pages)


def test_a_chapter_is_plain_text_and_a_comment_in_a_command_is_no_heading(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    text = "# Title\n\nFirst [word](x.md).\n\n## `Part`\n\n```sh\n# a comment\nls\n```\n"
    path.write_text(text, encoding="utf-8")
    first, second = chapters(path, "page", 0)
    assert first == Chapter("page", "Title", "Title", "", "First word.")
    assert (second.heading, second.anchor, second.text) == ("Part", "part", "sh a comment ls")


def test_the_search_finds_chapters_those_with_the_words_in_their_heading_first() -> None:
    hits = help_hits(Query.of("second factor"), AnonymousUser(), 10)  # type: ignore[arg-type]
    assert (hits[0].label, hits[0].url) == ("Accounts: Second factor", "/help/accounts#second-factor")
    assert len(hits) > 1
    assert help_hits(Query.of("no-such-word"), AnonymousUser(), 10) == []  # type: ignore[arg-type]


# ---------- links ----------


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
    assert html == '<a href="/help/understand/statistics#pass-rates">Learn more</a>'
