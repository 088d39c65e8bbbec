"""An author reads nothing of a holdout chat: no word of it, no label, no verdict, over any route.

Every route is walked, those of tomorrow too: with the held-out chat in the place of every chat, note and
assignment that a row of tests/routes.py names, and once more with the chat named in query and body by names
that a form might have.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.utils import timezone

from evaluation.models.prompts import FewShotExample
from evaluation.models.runs import Run, Verdict
from labeling.models.chats import Chat
from labeling.models.labels import Adjudication, Assignment, Consensus, Label, RaterNote
from tests.cases import METHODS
from tests.factories.held_out import NAME, SECRET, build_world  # noqa: F401  # for the fixture `world`
from tests.factories.route_calls import as_text, ask, calls, without_tokens
from tests.routes import ROUTES, read_whole
from tests.world import World, rolled_back

pytestmark = [pytest.mark.django_db, pytest.mark.sweep]


def about_it(world: World) -> World:
    """The same world, but every row of tests/routes.py acts on the held-out chat."""
    own = {"chat_id": world.args["holdout_chat"], "note_id": world.args["holdout_note"]}
    own |= {"unclear_note": world.args["holdout_note"]}
    assigned = Assignment.objects.filter(chat=own["chat_id"]).first()
    assert assigned is not None
    assignments = {name: assigned.pk for name in world.args if name.endswith("assignment")}
    return replace(world, args=world.args | own | assignments | {"assignment_id": assigned.pk})


def telling(
    world: World, words: tuple[str, ...], *, query: str = "", more: dict[str, Any] | None = None
) -> list[str]:
    """The calls whose answer to the author holds one of these words; `query` and `more` are sent with all.

    Those are sent where authors get in: elsewhere test_access finds that there is nothing.
    """
    found, author = [], world.client("author")
    for name, method, url, body in walked(world):
        if (query or more) and not is_for_authors(name):
            continue
        if (query and method != "GET") or (more and method == "GET"):
            continue
        asked = f"{url}{'&' if '?' in url else '?'}{query}" if query else url
        with rolled_back():
            client = world.client("author") if name == "account_logout" else author
            said = as_text(ask(client, method, asked, body | (more or {}))).lower()
        told = [word for word in words if word.lower() in said]
        found += [f"{method} {asked} ({name}): …{around(said, word.lower())}…" for word in told]
    return found


def walked(world: World) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Every address once by GET, and by the methods that the route's rows name; others are 405 for all."""
    for name, method, url, body in calls(world, *METHODS):
        if method in {"GET", *(case.method for case in ROUTES.get(name, ()))}:
            yield name, method, url, body


def is_for_authors(name: str) -> bool:
    return any(case.allows("author") for case in ROUTES.get(name, ()))


def around(text: str, word: str) -> str:
    at = text.index(word)
    return text[max(0, at - 80) : at + 80]


# ---------- every route ----------


def test_no_route_shows_an_author_a_word_of_a_holdout_chat(world: World) -> None:
    assert telling(world, (SECRET, NAME)) == []


@pytest.mark.heavy
def test_nor_when_it_is_asked_for_by_its_number(world: World) -> None:
    assert telling(about_it(world), (SECRET, NAME)) == []


def by_name(chat: Any) -> dict[str, Any]:
    """A body that names the chat as forms and programs may."""
    words = ("chat", "chat_id", "external_id", "id", "q", "item", "example")
    listed = {"chats": [chat], "chat_ids": [chat], "ids": [chat]}
    examples = [{"chat": chat, "chat_id": chat, "value": True, "rationale": "So."}]
    return dict.fromkeys(words, chat) | listed | {"examples": examples, "few_shot": examples}


@pytest.mark.heavy
@pytest.mark.parametrize("by", ["number", "name"])
def test_nor_when_query_or_body_name_it(world: World, by: str) -> None:
    chat = world.args["holdout_chat"] if by == "number" else NAME
    words = (SECRET, NAME) if by == "number" else (SECRET,)  # a name comes back to who sends it
    names = ("chat", "chat_id", "external_id", "q", "search", "example", "item")
    assert telling(world, words, query="&".join(f"{name}={chat}" for name in names)) == []
    assert telling(world, words, more=by_name(chat)) == []


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("words", "query"),
    [
        # The name of a topic comes back to who sends it.
        ((NAME,), f"topic={SECRET.lower()}&criterion=polite&cell=still_wrong&split=holdout"),
        ((SECRET, NAME), "against=rater:CANARY-other&split=holdout"),
    ],
)
def test_nor_when_a_query_narrows_figures_down_to_it(
    world: World, words: tuple[str, ...], query: str
) -> None:
    assert telling(world, words, query=query) == []


@pytest.mark.heavy
def test_the_words_are_where_they_should_be(world: World) -> None:
    """A lead reads them: the tests above would else prove nothing."""
    lead, about = world.client("lead"), about_it(world)
    reading = set()
    for name, _, url, _ in calls(about, "GET"):
        if SECRET in as_text(ask(lead, "GET", url)):
            reading.add(name)
    named = {"alignment:chat", "alignment:regression_chat", "labeling:note_detail", "api_labels"}
    named |= {"evaluation:run_detail", "api_run"}
    assert named - reading == set()


# ---------- what is derived from it ----------


def heard(world: World) -> dict[str, str]:
    """What each address tells the author; reports are stored beforehand, so that their time stays."""
    found, author = {}, world.client("author")
    urls = {
        url: None
        for one in (world, about_it(world))
        for name, _, url, _ in calls(one, "GET")
        if is_for_authors(name) and name != "account_logout"
    }
    for url in urls:
        read_whole(ask(author, "GET", url))
    for url in urls:
        with rolled_back():
            found[url] = without_times(without_tokens(as_text(ask(author, "GET", url))))
    return found


def without_times(text: str) -> str:
    """Without the moment at which a report was made, and the marks of a form that is reopened.

    A recomputed report has a number and a pin of its own, and the one before says that something has changed.
    The pin, beside the time in a CSV file, counts changes of labels and hashes none.
    """
    moments = r"\d{4}-\d\d-\d\dT[\d:.+Z]+(?:,[0-9a-f]{64})?|\d{1,2} \w{3} \d{4}, \d\d:\d\d"
    numbers = r'"id": ?\d+, ?"run"|/reports/\d+/|<p class="since">.*?</p>\n'
    return re.sub(rf'{moments}|{numbers}|name="form_token" value="\w+"', "", text)


def differing(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return [url for url in before if before[url] != after[url]]


@pytest.mark.heavy
def test_no_hash_order_or_header_depends_on_its_words(world: World) -> None:
    """Their length does, in what a run over all chats would cost: that is an author's to know."""
    chat = Chat.objects.get(pk=world.args["holdout_chat"])
    FewShotExample.objects.all().delete()  # what a prompt holds makes its fingerprint, for good
    before = heard(world)
    chat.messages = [{**message, "content": "x" * len(message["content"])} for message in chat.messages]
    chat.content_hash = "e" * 64
    chat.save()
    Label.objects.filter(chat=chat).update(rationale="", evidence=[])
    RaterNote.objects.filter(chat=chat).update(text="Other words.")
    Adjudication.objects.filter(chat=chat).update(reason="Other words.")
    Verdict.objects.filter(chat=chat).update(rationale="Other words.", explanation="")
    assert differing(before, heard(world)) == []


@pytest.mark.heavy
def test_where_few_are_held_out_no_figure_depends_on_what_is_said_of_them(world: World) -> None:
    """One chat is: whatever an author saw change with its labels or verdicts would tell them."""
    _as_after_labels(world)
    before = heard(world)
    chat = world.args["holdout_chat"]
    for row in Consensus.objects.filter(chat=chat):
        turned = "false" if row.state == "true" else "true"
        Consensus.objects.filter(pk=row.pk).update(state=turned, n_true=row.n_false, n_false=row.n_true)
    for label in Label.objects.filter(chat=chat):
        Label.objects.filter(pk=label.pk).update(value=not label.value)
    for verdict in Verdict.objects.filter(chat=chat):
        Verdict.objects.filter(pk=verdict.pk).update(value=not verdict.value)
    Adjudication.objects.filter(chat=chat).update(value=True)
    _as_after_labels(world)
    assert differing(before, heard(world)) == []


def _as_after_labels(world: World) -> None:
    """Reports are recomputed when labels change, those of runs also when the run ends again."""
    for criterion in world.desk.criteria:
        criterion.refresh_from_db()
        criterion.labels_seq += 1
        criterion.save()
    Run.objects.filter(finished_at__isnull=False).update(finished_at=timezone.now())
