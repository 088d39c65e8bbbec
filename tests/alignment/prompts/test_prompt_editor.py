"""The prompt editor's page and its parts, without a browser: what they show, to whom, in how many queries."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluation.models.prompts import PromptDraft, PromptVersion
from evaluation.prompts.services.versions import prompt_promote
from labeling.models.people import User
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import text_of
from tests.factories.page_text import words_of
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
from tests.factories.rows import make_criterion, make_rubric

pytestmark = pytest.mark.django_db

EDIT = reverse("alignment:prompt_edit", args=["polite"])
SHOWN = re.compile(r'<textarea\s+id="text-(\w+)"[^>]*>\n(.*?)</textarea>', re.DOTALL)


@pytest.fixture
def criterion() -> Criterion:
    return make_prompted()


def panes(answer: Any) -> dict[str, str]:
    return dict(SHOWN.findall(answer.content.decode()))


def part(client: Client, name: str, *args: Any, **query: str) -> Any:
    return client.get(reverse(f"alignment:{name}", args=["polite", *args]), query)


# ---------- the page ----------


def test_it_shows_the_champion_section_by_section_while_there_is_no_draft(
    criterion: Criterion, author: Client
) -> None:
    answer = author.get(EDIT)
    shown = panes(answer)
    assert list(shown) == ["context", "objective", "style", "tone", "audience", "response"]
    assert shown["objective"].startswith("Is polite so?")
    assert "Editing from version 1, released" in words_of(answer)
    assert not PromptDraft.objects.exists()


def test_it_shows_the_draft_and_the_whole_text_where_that_is_asked_for(
    criterion: Criterion, author: Client, author_user: User
) -> None:
    draft_of_text(criterion, author_user)
    assert panes(author.get(EDIT)) == SECTIONS | {"audience": "", "response": ""}
    assert panes(author.get(EDIT, {"as": "markdown"})) == {"text": TEXT}


def test_a_text_that_panes_would_not_hold_is_shown_whole(
    criterion: Criterion, author: Client, author_user: User
) -> None:
    draft_of_text(criterion, author_user, f"Before.\n{TEXT}")
    answer = author.get(EDIT)
    assert panes(answer) == {"text": f"Before.\n{TEXT}"}
    assert "you edit it as a whole" in words_of(answer)


def test_it_starts_from_another_version_and_keeps_a_draft_on_an_older_one(
    criterion: Criterion, author: Client, author_user: User
) -> None:
    saved(criterion)
    assert panes(author.get(EDIT, {"base": "2"}))["tone"] == "Calm."
    draft_of_text(criterion, author_user, TEXT.replace("Calm", "Draft"))
    answer = author.get(EDIT, {"base": "2"})
    assert panes(answer)["tone"] == "Draft."
    assert "Discard it and start from version 2" in words_of(answer)
    gone = author.post(reverse("alignment:prompt_discard", args=["polite"]), {"base": "2"}, follow=True)
    assert panes(gone)["tone"] == "Calm."
    assert not PromptDraft.objects.exists()


def test_it_starts_from_the_newest_draft_until_a_newer_version_is_released(
    criterion: Criterion, author: Client
) -> None:
    saved(criterion)
    answer = author.get(EDIT)
    assert panes(answer)["tone"] == "Calm."
    assert '<option value="2" selected>' in text_of(answer)
    prompt_promote(version=saved(criterion, f"{TEXT}More."), reason="Better")
    assert panes(author.get(EDIT))["tone"] == "Calm.\nMore."


def test_a_restored_version_can_be_edited_at_once(criterion: Criterion, author: Client) -> None:
    prompt_promote(version=saved(criterion), reason="Better")
    restore = reverse("alignment:prompt_restore", args=["polite", 1])
    page = author.post(restore, {"reason": "It was better"}, follow=True)
    assert f"{EDIT}?base=3" in text_of(page)
    assert "Edit from version 3" in words_of(page)
    assert "Impartial" in panes(author.get(EDIT))["tone"]


def test_every_version_leads_to_the_editor(criterion: Criterion, author: Client) -> None:
    prompt_promote(version=saved(criterion), reason="Better")
    shown = text_of(author.get(reverse("alignment:criterion_detail", args=["polite"])))
    for number in (1, 2):
        page = text_of(author.get(reverse("alignment:prompt_version", args=["polite", number])))
        assert f"{EDIT}?base={number}" in page
        assert f"{EDIT}?base={number}" in shown
    Criterion.objects.update(state="retired")
    assert "?base=" not in text_of(author.get(reverse("alignment:prompt_version", args=["polite", 1])))


@pytest.mark.parametrize("base", ["9", "x", "99999999999999"])
def test_a_version_that_there_is_not_is_not_found(criterion: Criterion, author: Client, base: str) -> None:
    assert author.get(EDIT, {"base": base}).status_code == 404


def test_it_says_that_the_champion_is_another_one_by_now(
    criterion: Criterion, author: Client, author_user: User
) -> None:
    draft_of_text(criterion, author_user)
    assert "is released." not in words_of(author.get(EDIT))
    prompt_promote(version=saved(criterion, f"{TEXT}More."), reason="Better")
    answer = author.get(EDIT)
    assert "This draft started from version 1. Version 2 is released." in words_of(answer)
    assert f"{reverse('alignment:prompt_version', args=['polite', 2])}?against=1" in text_of(answer)


def test_a_criterion_without_a_prompt_gets_its_first_one_on_demand(author: Client) -> None:
    make_criterion("polite", rubric=make_rubric())
    assert "Make version 1" in words_of(author.get(EDIT))
    assert not PromptVersion.objects.exists()
    answer = author.post(reverse("alignment:prompt_start", args=["polite"]), follow=True)
    assert panes(answer)["objective"].startswith("Is polite so?")


# ---------- saving a version ----------


def publish(client: Client, **given: Any) -> Any:
    return client.post(EDIT, {"reason": "Clearer", "revision": 1, **given})


def test_a_saved_version_leads_to_its_page_and_names_the_test_as_the_next_step(
    criterion: Criterion, author: Client, author_user: User
) -> None:
    decided(criterion, "t0")
    draft_of_text(criterion, author_user, examples=[line("t0")], origin="suggested")
    answer = publish(author)
    assert answer["Location"] == reverse("alignment:prompt_version", args=["polite", 2])
    version = PromptVersion.objects.get(criterion=criterion, number=2)
    assert (version.text, version.reason, version.author) == (TEXT, "Clearer", author_user)
    assert (version.origin, version.base) == ("suggested", champion_of(criterion))
    assert version.examples.get().chat.external_id == "t0"
    assert not PromptDraft.objects.exists()
    page = text_of(author.get(EDIT))  # whichever page comes first says it
    assert f"{reverse('alignment:regression_new')}?criterion=polite&amp;version=2" in page or (
        f"{reverse('alignment:regression_new')}?criterion=polite&version=2" in page
    )


def test_what_says_the_same_as_a_version_makes_none(criterion: Criterion, author: Client) -> None:
    answer = publish(author, revision=0)
    assert answer["Location"] == reverse("alignment:prompt_version", args=["polite", 1])
    assert "version 1 has the same text" in words_of(author.get(EDIT))
    assert PromptVersion.objects.count() == 1


def test_errors_are_named_and_nothing_is_saved(
    criterion: Criterion, author: Client, author_user: User
) -> None:
    draft_of_text(criterion, author_user, "# Tone\nCalm.")
    answer = publish(author)
    assert "Not saved. Correct these errors: error: # Objective: is missing or empty" in words_of(answer)
    assert "data-failed" in text_of(answer)
    assert "This field is required." in words_of(publish(author, reason=""))
    assert PromptVersion.objects.count() == PromptDraft.objects.count() == 1


def test_a_page_that_shows_an_older_draft_saves_nothing(
    criterion: Criterion, author: Client, author_user: User
) -> None:
    draft_of_text(criterion, author_user)
    draft_of_text(criterion, author_user, f"{TEXT}More.", revision=1)
    assert "This draft was changed in another tab" in words_of(publish(author))
    assert PromptVersion.objects.count() == 1


def test_who_saved_meanwhile_is_named_and_has_to_be_confirmed(
    criterion: Criterion, author: Client, author_user: User, lead_user: User
) -> None:
    draft_of_text(criterion, author_user)
    saved(criterion, f"{TEXT}Hers.", author=lead_user, reason="Hers")
    answer = publish(author)
    assert re.search(
        r"Not saved yet\. Versions saved since you started from version 1.*Version 2 by ines",
        words_of(answer),
    )
    assert 'name="confirmed" value="2"' in text_of(answer)
    assert publish(author, confirmed=2).status_code == 302


def test_the_page_names_newer_versions_before_anybody_saves(
    criterion: Criterion, author: Client, author_user: User
) -> None:
    draft_of_text(criterion, author_user)
    saved(criterion, f"{TEXT}Mine, too.", author=author_user)
    answer = author.get(EDIT)
    assert "Version 2 by you" in words_of(answer)
    assert 'name="confirmed" value="2"' in text_of(answer)


# ---------- lint, preview, conflict ----------


def test_findings_lead_to_their_section(criterion: Criterion, author: Client, author_user: User) -> None:
    draft_of_text(criterion, author_user, f"{TEXT}Be strict.")
    answer = part(author, "prompt_findings")
    assert "No errors. You can save." in words_of(answer)
    assert '<a href="#text-tone" data-goto>Tone</a>' in text_of(answer)
    assert '<a href="#text-text" data-goto>Tone</a>' in text_of(part(author, "prompt_findings", whole="1"))


def test_a_pane_is_shown_as_it_reads(criterion: Criterion, author: Client) -> None:
    url = reverse("alignment:prompt_markdown", args=["polite"])
    answer = author.post(f"{url}?of=tone", {"tone": "**So**<script>", "style": "Else"})
    assert "<strong>So</strong>" in text_of(answer)
    assert "<script>" not in text_of(answer)
    assert "Else" not in text_of(answer)


def test_a_conflict_shows_what_this_page_would_change_of_the_stored_draft(
    criterion: Criterion, author: Client, author_user: User
) -> None:
    url = reverse("alignment:prompt_changes", args=["polite"])
    assert "discarded or saved as a version" in words_of(author.post(url, SECTIONS))
    draft_of_text(criterion, author_user)
    answer = author.post(url, SECTIONS | {"tone": "Very calm."})
    assert "Tone" in words_of(answer)
    assert re.search(r"<ins>.*Very calm.*</ins>|<ins>.*Very.*</ins>", text_of(answer))
    assert "Style" not in words_of(answer)


def test_what_the_stored_draft_changes_of_its_version_can_be_read(
    criterion: Criterion, author: Client, author_user: User
) -> None:
    assert "The texts are identical." in words_of(part(author, "prompt_since"))
    decided(criterion, "t0")
    text = champion_of(criterion).text
    draft_of_text(criterion, author_user, text, examples=[line("t0")])
    words = words_of(part(author, "prompt_since"))
    assert "The worked examples differ." in words
    assert "identical" not in words


# ---------- queries ----------


@pytest.mark.parametrize("name", ["prompt_edit", "prompt_findings", "prompt_since", "prompt_examples"])
def test_the_number_of_queries_does_not_grow(
    criterion: Criterion, author: Client, author_user: User, name: str
) -> None:
    counts = []
    for chats in ((0, 1), (2, 15)):
        for number in range(*chats):
            decided(criterion, f"t{number}", value=number % 2 == 0, topic=f"topic-{number}")
            saved(criterion, f"{TEXT}{number}")
        lines = [line(f"t{n}") for n in range(chats[0], min(chats[1], chats[0] + 4))]
        PromptDraft.objects.all().delete()
        draft_of_text(criterion, author_user, examples=lines)
        part(author, name)
        with CaptureQueriesContext(connection) as queries:
            assert part(author, name).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("part", ["prompt_markdown", "prompt_changes"])
def test_a_fragment_of_the_page_accepts_no_text_longer_than_a_prompt(
    criterion: Criterion, author: Client, author_user: User, part: str
) -> None:
    draft_of_text(criterion, author_user)
    url = reverse(f"alignment:{part}", args=["polite"])
    assert author.post(url, {"text": "a" * 100_000}).status_code == 200
    assert author.post(url, {"text": "a" * 100_001}).status_code == 413
