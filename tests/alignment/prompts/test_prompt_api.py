"""API of drafts, lint and versions: own drafts only, refusals by field, conflicts."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from drf_spectacular.generators import SchemaGenerator

from alignment.api_urls import urlpatterns
from evaluation.models.prompts import PromptDraft, PromptVersion
from labeling.models.chats import ChatSetMember
from labeling.models.people import Role, User
from labeling.models.rubric import Criterion
from tests.factories.prompt_pages import (
    SECTIONS,
    TEXT,
    champion_of,
    decided,
    draft_of_text,
    line,
    make_prompted,
    saved,
)
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db

DRAFT, LINT, VERSIONS = (
    reverse(f"api_{name}", args=["polite"]) for name in ("prompt_draft", "prompt_lint", "prompts")
)
EMPTY = {"audience": "", "response": ""}


@pytest.fixture
def criterion() -> Criterion:
    return make_prompted()


def put(client: Client, **body: Any) -> Any:
    return client.put(DRAFT, {"base": 1, "revision": 0, **body}, content_type="application/json")


def post(client: Client, url: str, **body: Any) -> Any:
    return client.post(url, body, content_type="application/json")


# ---------- the draft ----------


def test_a_draft_comes_back_with_its_sections(criterion: Criterion, author: Client) -> None:
    assert author.get(DRAFT).status_code == 404
    answer = put(author, text=TEXT)
    assert answer.status_code == 200, answer.json()
    body = author.get(DRAFT).json()
    assert body == answer.json()
    assert body["sections"] == SECTIONS | EMPTY
    assert {name: body[name] for name in ("base", "revision", "text", "examples", "hidden", "origin")} == {
        "base": 1,
        "revision": 1,
        "text": TEXT,
        "examples": [],
        "hidden": 0,
        "origin": "author",
    }


def test_a_section_changes_only_its_own_text(criterion: Criterion, author: Client) -> None:
    text = TEXT.replace("# Style\n", "## style:\n\n\n")
    put(author, text=text)
    answer = put(author, revision=1, sections=SECTIONS | {"tone": "Very calm."})
    assert answer.json()["text"] == text.replace("Calm.", "Very calm.")


def test_a_text_with_more_than_the_sections_is_not_split(criterion: Criterion, author: Client) -> None:
    assert put(author, text=f"Hello.\n{TEXT}").json()["sections"] is None
    answer = put(author, revision=1, sections=SECTIONS)
    assert (answer.status_code, list(answer.json())) == (400, ["sections"])
    assert PromptDraft.objects.get().text == f"Hello.\n{TEXT}"


def test_a_section_with_an_open_code_block_is_refused_by_field(criterion: Criterion, author: Client) -> None:
    put(author, text=TEXT)
    answer = put(author, revision=1, sections=SECTIONS | {"context": "```\nA shop."})
    assert answer.status_code == 400
    assert answer.json() == {"sections.context": ["a code block is not closed (```)"]}


def test_saving_examples_keeps_the_text_and_saving_the_text_keeps_the_examples(
    criterion: Criterion, author: Client
) -> None:
    decided(criterion, "t0")
    put(author, text=TEXT)
    put(author, revision=1, examples=[line("t0")])
    body = put(author, revision=2, text="# Tone\nNew.").json()
    assert (body["text"], body["examples"]) == ("# Tone\nNew.", [line("t0")])


@pytest.mark.parametrize("text", [TEXT, f"Hello.\n{TEXT}"])
def test_sections_do_not_overwrite_what_another_tab_stored(
    criterion: Criterion, author: Client, text: str
) -> None:
    put(author, text=text)
    answer = put(author, sections=SECTIONS | {"tone": "Very calm."})
    assert (answer.status_code, answer.json()["code"]) == (409, "stale")
    assert PromptDraft.objects.get().text == text


def test_sections_sent_again_after_a_lost_answer_are_saved_once(criterion: Criterion, author: Client) -> None:
    for _ in range(2):
        assert put(author, sections=SECTIONS).json()["revision"] == 1


def test_a_conflict_with_another_tab_returns_the_stored_draft(criterion: Criterion, author: Client) -> None:
    put(author, text=TEXT)
    answer = put(author, text="# Tone\nFrom another tab.")
    assert answer.status_code == 409
    assert (answer.json()["code"], answer.json()["draft"]["text"]) == ("stale", TEXT)
    author.delete(DRAFT)
    gone = put(author, revision=1, text=TEXT)
    assert (gone.status_code, gone.json()["draft"]) == (409, None)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"base": 9}, "base"),
        ({"text": "x" * 100_001}, "text"),
        ({"text": TEXT, "sections": SECTIONS}, "sections"),
        ({"examples": [line("nobody")]}, "examples"),
        ({"examples": [line("t0", turns=[3, 2])]}, "examples"),
        ({"examples": [line("t0", rationale=" ")]}, "examples"),
        ({"examples": [line("t0")] * 5}, "examples"),
        ({"examples": [line("t0"), line("t0")]}, "examples"),
        ({"examples": [line("d0")]}, "examples"),
    ],
)
def test_an_invalid_draft_is_refused_by_field(
    criterion: Criterion, author: Client, body: dict[str, Any], field: str
) -> None:
    decided(criterion, "t0")
    decided(criterion, "d0", split="dev")
    answer = put(author, **body)
    assert (answer.status_code, list(answer.json())) == (400, [field])
    assert not PromptDraft.objects.exists()


def test_a_draft_is_visible_only_to_its_author(
    criterion: Criterion, author: Client, author_user: User
) -> None:
    put(author, text=TEXT)
    other = Client()
    other.force_login(make_user("ada", Role.AUTHOR))
    assert other.get(DRAFT).status_code == 404
    assert other.delete(DRAFT).status_code == 204
    assert author.get(DRAFT).status_code == 200


# ---------- holdout chats ----------


def test_a_holdout_chat_is_answered_like_an_unknown_chat(criterion: Criterion, author: Client) -> None:
    decided(criterion, "secret", split="holdout")
    answers = {
        name: [
            put(author, examples=[line(name)]).json(),
            post(author, LINT, text=TEXT, examples=[line(name)]).json(),
            post(author, VERSIONS, text=TEXT, reason="So", examples=[line(name)]).json(),
        ]
        for name in ("secret", "nobody")
    }
    assert str(answers["secret"]).replace("secret", "nobody") == str(answers["nobody"])


def test_an_example_whose_chat_became_holdout_is_only_counted(
    criterion: Criterion, author: Client, lead: Client
) -> None:
    chat = decided(criterion, "t0")
    put(author, examples=[line(chat, rationale="CANARY")])
    ChatSetMember.objects.filter(chat=chat).update(split="holdout")
    answer = author.get(DRAFT)
    assert "CANARY" not in answer.content.decode()
    assert (answer.json()["examples"], answer.json()["hidden"]) == ([], 1)


def test_the_lint_reports_leaked_words_without_the_chat(criterion: Criterion, author: Client) -> None:
    leak = "my parcel never came and nobody at your shop answers me why"
    decided(criterion, "secret", split="holdout", messages=[("user", f"CANARY {leak} CANARY")])
    answer = post(author, LINT, text=f"{TEXT}Like “{leak}”.")
    assert [row["section"] for row in answer.json()["findings"] if leak in row["message"]] == ["tone"]
    assert not any(word in answer.content.decode() for word in ("secret", "CANARY"))


# ---------- lint ----------


def test_the_lint_separates_errors_from_warnings(criterion: Criterion, author: Client) -> None:
    clean = post(author, LINT, text=TEXT).json()
    assert (clean["blocked"], {row["level"] for row in clean["findings"]}) == (False, {"warning"})
    for number, value in enumerate((True, True)):
        decided(criterion, f"t{number}", value=value)
    body = post(author, LINT, text=TEXT, examples=[line("t0"), line("t1")]).json()
    assert body["blocked"]
    assert body["findings"][0] == {
        "level": "error",
        "section": "examples",
        "message": "are 2 True and 0 False: half of each, or one more of one",
    }
    assert "all are on one topic" in str(body["findings"])
    assert not PromptDraft.objects.exists()


# ---------- versions ----------


def test_saving_the_same_version_again_returns_the_first(
    criterion: Criterion, author: Client, author_user: User
) -> None:
    decided(criterion, "t0")
    draft_of_text(criterion, author_user, examples=[line("t0")])
    fields = {"text": TEXT, "examples": [line("t0")], "reason": "Clearer", "base": 1}
    answer = post(author, VERSIONS, **fields)
    assert answer.status_code == 201, answer.json()
    body = answer.json()
    assert {name: body[name] for name in ("criterion", "number", "base", "author", "origin", "examples")} == {
        "criterion": "polite",
        "number": 2,
        "base": 1,
        "author": "otto",
        "origin": "author",
        "examples": [line("t0")],
    }
    assert not PromptDraft.objects.exists()
    again = post(author, VERSIONS, **fields)
    assert (again.status_code, again.json()["number"]) == (200, 2)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"reason": ""}, "reason"),
        ({"text": "# Tone\nCalm."}, "text"),
        ({"text": "  "}, "text"),
        ({"base": 7}, "base"),
        ({"examples": [line("t0"), line("t1")]}, "text"),  # two True: an error of the lint
        ({"examples": [{"chat": "t0"}]}, "examples"),
    ],
)
def test_a_version_is_refused_by_field(
    criterion: Criterion, author: Client, body: dict[str, Any], field: str
) -> None:
    for name in ("t0", "t1"):
        decided(criterion, name)
    answer = post(author, VERSIONS, **{"text": TEXT, "reason": "Clearer", **body})
    assert (answer.status_code, list(answer.json())) == (400, [field])
    assert PromptVersion.objects.filter(criterion=criterion).count() == 1


def test_a_newer_version_is_a_conflict_until_it_is_confirmed(
    criterion: Criterion, author: Client, lead_user: User
) -> None:
    saved(criterion, f"{TEXT}Hers.", author=lead_user, reason="Hers")
    fields = {"text": TEXT, "reason": "Mine", "base": 1}
    answer = post(author, VERSIONS, **fields)
    assert (answer.status_code, answer.json()["code"]) == (409, "newer_version")
    (newer,) = answer.json()["versions"]
    assert (newer["number"], newer["author"], newer["reason"]) == (2, "ines", "Hers")
    assert post(author, VERSIONS, **fields, confirmed=2).json()["number"] == 3
    assert champion_of(criterion).number == 1


def test_the_schema_describes_the_routes_without_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    own = [
        route for route in urlpatterns if route.name in ("api_prompt_draft", "api_prompt_lint", "api_prompts")
    ]
    paths = SchemaGenerator(patterns=own).get_schema(public=True)["paths"]
    assert {(path, method) for path, methods in paths.items() for method in methods} == {
        *(("/criteria/{key}/draft/", method) for method in ("get", "put", "delete")),
        ("/criteria/{key}/lint/", "post"),
        *(("/criteria/{key}/prompts/", method) for method in ("get", "post")),
    }
    assert capsys.readouterr().err == ""
