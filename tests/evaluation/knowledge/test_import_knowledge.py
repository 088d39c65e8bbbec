"""import_knowledge: one article a Markdown file, a new version where the text changed."""

from pathlib import Path

import pytest

from common.problems import FieldProblem
from evaluation.knowledge.services import criterion_articles_set, title_of
from evaluation.models.prompts import ArticleVersion, CriterionArticle, KnowledgeArticle
from tests.factories.rows import make_rubric
from tests.files import refused, run

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop" / "cards").mkdir(parents=True)
    (tmp_path / "shop" / "refunds.md").write_text(
        "Intro\n\n# *Refunds* and `codes`\n\nWithin 14 days.\n", encoding="utf-8"
    )
    (tmp_path / "shop" / "cards" / "company.md").write_bytes(
        b"\xef\xbb\xbfShoppers pay\r\nwith company cards."
    )
    return tmp_path / "shop"


def counts(folder: Path) -> tuple[int, int, int]:
    document = run("import_knowledge", folder).document
    return document["created"], document["unchanged"], document["updated"]


def test_the_key_is_the_path_and_the_title_the_first_heading(folder: Path) -> None:
    assert counts(folder) == (2, 0, 0)
    found = ArticleVersion.objects.order_by("article__key").values_list(
        "article__key", "number", "title", "text"
    )
    assert list(found) == [
        ("cards/company", 1, "company", "Shoppers pay\nwith company cards."),
        ("refunds", 1, "Refunds and codes", "Intro\n\n# *Refunds* and `codes`\n\nWithin 14 days.\n"),
    ]


def test_only_a_changed_text_is_a_new_version(folder: Path) -> None:
    counts(folder)
    assert counts(folder) == (0, 2, 0)
    (folder / "refunds.md").write_text("# Refunds\n\nWithin 30 days.\n", encoding="utf-8")
    assert counts(folder) == (0, 1, 1)
    versions = KnowledgeArticle.objects.get(key="refunds").versions.order_by("number")
    assert [(row.number, row.title) for row in versions] == [(1, "Refunds and codes"), (2, "Refunds")]


def test_an_article_that_the_folder_lost_stays(folder: Path) -> None:
    counts(folder)
    (folder / "refunds.md").unlink()
    assert counts(folder) == (0, 1, 0)
    assert KnowledgeArticle.objects.count() == 2


def test_other_files_are_counted_on_stderr(folder: Path) -> None:
    (folder / "notes.txt").write_text("no article", encoding="utf-8")
    assert "ignored 1 file that is not .md" in run("import_knowledge", folder).notes


def test_a_link_out_of_the_folder_is_not_followed(folder: Path) -> None:
    (folder.parent / "secret.md").write_text("# Secret", encoding="utf-8")
    (folder / "link.md").symlink_to(folder.parent / "secret.md")
    assert counts(folder) == (2, 0, 0)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"caf\xe9", "not UTF-8"),
        (b"a\x00b", "NUL"),
        (b" \n", "is empty"),
        (b"# " + b"x" * 201, "title: is longer"),
    ],
)
def test_a_file_that_is_no_article_leaves_nothing(folder: Path, content: bytes, words: str) -> None:
    (folder / "zz.md").write_bytes(content)
    message = refused("import_knowledge", folder)
    assert str(folder / "zz.md") in message
    assert words in message
    assert KnowledgeArticle.objects.count() == 0


def test_what_is_no_folder_of_articles_is_called_so(folder: Path) -> None:
    assert "is a file, not a folder" in refused("import_knowledge", folder / "refunds.md")
    assert "no such folder" in refused("import_knowledge", folder / "absent")
    (folder / "empty").mkdir()
    assert "holds no .md file" in refused("import_knowledge", folder / "empty")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# One\n# Two", "One"),
        ("```\n# code\n```\n## Real #", "Real"),
        ("Set\n===\n", "Set"),
        ("# \n\n## Two", "Two"),
        ("No heading", ""),
        ("# A **b** [c](http://d)", "A b c"),
    ],
)
def test_the_first_heading_with_words_is_the_title(text: str, title: str) -> None:
    assert title_of(text) == title


def test_a_criterion_lists_exactly_the_articles_that_were_set(folder: Path) -> None:
    counts(folder)
    criterion = make_rubric("polite").criteria.get()

    def listed() -> set[str]:
        return set(
            CriterionArticle.objects.filter(criterion=criterion).values_list("article__key", flat=True)
        )

    assert criterion_articles_set(criterion=criterion, keys=["refunds"])
    assert not criterion_articles_set(criterion=criterion, keys=["refunds"])
    assert criterion_articles_set(criterion=criterion, keys=["cards/company"])
    assert listed() == {"cards/company"}
    with pytest.raises(
        FieldProblem, match=r"knowledge\[1\]: no article 'absent': run import_knowledge first"
    ):
        criterion_articles_set(criterion=criterion, keys=["refunds", "absent"])
    assert listed() == {"cards/company"}
    assert criterion_articles_set(criterion=criterion, keys=[])
    assert listed() == set()
