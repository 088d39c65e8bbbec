"""Nobody finds what their role may not open: neither by name, nor by text, nor by count."""

from collections.abc import Callable
from copy import deepcopy

import pytest
from django.urls import reverse

from labeling.models.chats import Chat
from labeling.models.labels import Assignment
from tests.world import CANARY, World, make_world

pytestmark = pytest.mark.django_db

# Between them these match something of every kind.
QUERIES = (
    "chat",
    "order",
    "polite",
    "1",
    "run 1",
    "calibration",
    "judge",
    "other",
    "report",
    "CANARY",
    "second",
)


@pytest.fixture(scope="module")
def untouched(module_rows: Callable[[Callable[[], World]], World]) -> World:
    return module_rows(make_world)


@pytest.fixture
def world(untouched: World) -> World:
    return deepcopy(untouched)


def hits(world: World, person: str, text: str) -> list[tuple[str, str]]:
    """Kind and address of everything that this person finds on the results page."""
    answer = world.client(person).get(reverse("search"), {"q": text})
    assert answer.status_code == 200
    return [(group.kind, hit.url) for group in answer.context["groups"] for hit in group.hits]


@pytest.mark.parametrize("person", ["lead", "author", "rater", "other", "both"])
def test_whoever_finds_something_may_open_it(world: World, person: str) -> None:
    found = {hit for text in QUERIES for hit in hits(world, person, text)}
    client = world.client(person)
    closed = [(kind, url) for kind, url in found if client.get(url, follow=True).status_code != 200]
    assert not closed
    kinds = {kind for kind, _ in found}
    of_leads = {"chats", "criteria", "versions", "runs", "reports", "tests", "sets"}
    expected = {
        "lead": of_leads | {"jobs", "raters", "pages"},
        "author": of_leads | {"pages"},
        "rater": {"own_chats"},
        "other": {"own_chats"},
        "both": of_leads | {"pages"},  # works on no chat
    }
    of_all = {"pages", "help"}  # whatever the words
    assert kinds - of_all == expected[person] - of_all


def test_raters_find_their_own_chats_by_what_the_rating_screen_shows(world: World) -> None:
    own = Assignment.objects.filter(rater=world.desk.rater, state__in=("leased", "submitted"))
    places = {url for kind, url in hits(world, "rater", "order") if kind == "own_chats"}
    newest = {row.chat_id: row.pk for row in own.order_by("pk")}
    assert places == {reverse("labeling:rate", args=[pk]) for pk in newest.values()}
    # A title is no part of that screen, nor are labels, verdicts and notes.
    for person in ("rater", "other"):
        assert [hit for hit in hits(world, person, CANARY) if hit[0] != "help"] == []
        assert CANARY not in world.client(person).get(reverse("search_hits"), {"q": "chat"}).content.decode()


def test_authors_never_find_holdout_chats(world: World) -> None:
    held = Chat.objects.get(pk=world.args["holdout_chat"])
    Chat.objects.filter(pk=held.pk).update(messages=[{"n": 1, "role": "user", "content": "Unheard zebra"}])
    Chat.objects.get(pk=held.pk).save()
    place = ("chats", reverse("alignment:chat_newest", args=[held.pk]))
    for text in ("zebra", "unheard zeb", held.external_id):
        assert place not in hits(world, "author", text)
        assert place in hits(world, "lead", text)
    assert hits(world, "author", "zebra") == []


def test_who_also_labels_does_not_find_chats_still_to_label_as_an_author(world: World) -> None:
    Assignment.objects.filter(rater=world.desk.raters[2], state="skipped").delete()
    own = {url for kind, url in hits(world, "both", "order") if kind == "chats"}
    assert own < {url for kind, url in hits(world, "author", "order") if kind == "chats"}


def test_a_run_is_found_by_its_number_first(world: World) -> None:
    pk = world.args["run_id"]
    runs = [url for kind, url in hits(world, "lead", f"run {pk}") if kind == "runs"]
    assert runs[0] == reverse("evaluation:run_detail", args=[pk])


def test_the_list_says_that_there_is_more_and_one_kind_shows_it(world: World) -> None:
    for n in range(30):
        chat = world.desk.chats[0]
        world.desk.chat_set.members.create(
            chat=Chat.objects.create(
                external_id=f"many-{n}",
                topic=chat.topic,
                messages=chat.messages,
                content_hash="h",
                message_count=1,
                char_count=1,
            ),
            position=100 + n,
        )
    lead = world.client("lead")
    assert "More: chats" in lead.get(reverse("search_hits"), {"q": "many"}).content.decode()
    group = lead.get(reverse("search"), {"q": "many", "kind": "chats"}).context["groups"][0]
    assert (len(group.hits), group.more) == (30, False)


@pytest.mark.parametrize(
    "text", ["", "'\"", "<b>x</b>", "%", "\\", "a" * 3000, "🙂", "-1", "9" * 30, "v", "v2"]
)
def test_odd_text_is_no_error_and_is_shown_as_text(world: World, text: str) -> None:
    for name in ("search", "search_hits"):
        answer = world.client("lead").get(reverse(name), {"q": text})
        assert answer.status_code == 200
        assert "<b>x</b>" not in answer.content.decode()
