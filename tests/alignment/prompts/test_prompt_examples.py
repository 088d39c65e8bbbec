"""Worked examples in the prompt editor: train chats with a consensus, added and removed."""

import re
import uuid
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evaluation.models.prompts import PromptDraft, PromptVersion
from evaluation.models.runs import Run, Verdict
from labeling.jobs.services import job_open
from labeling.models.chats import Chat, ChatSetMember
from labeling.models.labels import RaterNote
from labeling.models.people import Role, User
from labeling.models.rubric import Criterion
from labeling.people.services.roles import rater_for
from tests.factories.compared_runs import text_of
from tests.factories.page_text import words_of
from tests.factories.prompt_pages import champion_of, decided, label, line, make_prompted
from tests.factories.prompt_versions import run_of
from tests.factories.rows import make_chat, make_rater, make_set, make_user

pytestmark = pytest.mark.django_db

EDIT = reverse("alignment:prompt_edit", args=["polite"])


@pytest.fixture
def criterion() -> Criterion:
    return make_prompted()


def part(client: Client, name: str, *args: Any, **query: str) -> Any:
    return client.get(reverse(f"alignment:{name}", args=["polite", *args]), query)


def test_the_list_has_training_chats_with_a_consensus(criterion: Criterion, author: Client) -> None:
    for name, value in (("t0", True), ("t1", False), ("t2", None)):
        decided(criterion, name, value=value)
    unlabelled = make_chat("t3")
    make_set(criterion.rubric, unlabelled, name="unlabelled", split="train")
    decided(criterion, "d0", split="dev")
    shown = words_of(part(author, "prompt_examples"))
    assert [name for name in ("t0", "t1", "t2", "t3", "d0") if f" {name} " in shown] == ["t0", "t1", "t2"]
    assert "3 train chats with a consensus" in shown


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"label": "false"}, ["t1"]),
        ({"label": "na"}, ["t2"]),
        ({"topic": "tips"}, ["t1"]),
        ({"q": "T2"}, ["t2"]),
        ({"q": "größer"}, ["t0"]),
        ({"q": "t1 is told"}, ["t1"]),
        ({"label": "true", "topic": "tips"}, []),
    ],
)
def test_the_list_is_narrowed_by_answer_topic_and_words(
    criterion: Criterion, author: Client, query: dict[str, str], found: list[str]
) -> None:
    decided(criterion, "t0", messages=[("user", "Gibt es das größer?"), ("assistant", "Nein.")])
    decided(criterion, "t1", value=False, topic="tips")
    decided(criterion, "t2", value=None)
    shown = words_of(part(author, "prompt_examples", **query))
    assert [name for name in ("t0", "t1", "t2") if f" {name} " in shown] == found


def test_a_chat_comes_with_the_consensus_and_what_raters_wrote(criterion: Criterion, author: Client) -> None:
    chat = decided(criterion, "t0", value=False)
    answer = part(author, "prompt_example", chat.pk)
    assert re.search(r'value="false"[^>]*checked', text_of(answer))
    assert "rater-" in text_of(answer).split("</textarea>")[0].rsplit(">", 1)[1]
    assert "Rater 1" in words_of(answer)


def pick(client: Client, chat: Chat, **given: Any) -> Any:
    body = {"base": 1, "revision": 0, "first": 1, "last": 2, "value": "true", "rationale": "It thanks."}
    return client.post(reverse("alignment:prompt_example", args=["polite", chat.pk]), body | given)


def test_a_picked_chat_is_an_example_of_the_draft(criterion: Criterion, author: Client) -> None:
    chat = decided(criterion, "t0")
    answer = pick(author, chat)
    assert answer["HX-Retarget"] == "#chosen"
    assert answer["HX-Trigger"] == '{"draft-stored": {"revision": 1}}'
    draft = PromptDraft.objects.get()
    assert draft.examples == [line(chat)]
    assert draft.text == champion_of(criterion).text


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"last": 9}, "must be the first and the last of turns 1 to 4"),
        ({"rationale": ""}, "must not be blank: an example says why"),
        ({"value": ""}, "This field is required."),
    ],
)
def test_what_is_wrong_with_an_example_is_said_at_its_place(
    criterion: Criterion, author: Client, given: dict[str, Any], why: str
) -> None:
    answer = pick(author, decided(criterion, "t0"), **given)
    assert why in words_of(answer)
    assert not PromptDraft.objects.exists()


def test_an_example_of_the_draft_can_be_edited(
    criterion: Criterion, author: Client, author_user: User
) -> None:
    chat = decided(criterion, "t0")
    pick(author, chat)
    edit = reverse("alignment:prompt_example_edit", args=["polite", 0])
    shown = author.get(edit, {"base": 1})
    assert "It thanks." in text_of(shown) and "Rater 1" in words_of(shown)
    body = {"base": 1, "revision": 1, "first": 2, "last": 3, "value": "false", "rationale": "It does not."}
    assert "must be the first and the last" in words_of(author.post(edit, body | {"last": 9}))
    answer = author.post(edit, body)
    assert answer["HX-Retarget"] == "#chosen"
    assert PromptDraft.objects.get().examples == [
        line(chat, turns=[2, 3], value=False, rationale="It does not.")
    ]
    older = author.post(edit, body | {"rationale": "Again."})  # the page shows an older draft
    assert older.status_code == 409
    assert author.get(f"{EDIT}examples/1/edit/", {"base": 1}).status_code == 404


def test_chats_that_the_judge_got_wrong_are_marked(criterion: Criterion, author: Client) -> None:
    chats = [decided(criterion, name, value=value) for name, value in (("t0", True), ("t1", False))]
    run = judged_wrong(criterion, chats[0])
    Verdict.objects.create(
        run=run, chat=chats[1], criterion=criterion, state="read", value=False, stored_at=timezone.now()
    )
    shown = words_of(part(author, "prompt_examples"))
    assert shown.count("Judge wrong") == 2  # the filter, and t0
    assert "t0 Judge wrong" in shown
    narrowed = words_of(part(author, "prompt_examples", wrong="1"))
    assert "1 train chat" in narrowed and " t1 " not in narrowed
    assert "Judge wrong" in words_of(part(author, "prompt_example", chats[0].pk))
    assert "Judge wrong" not in words_of(part(author, "prompt_example", chats[1].pk))
    assert "Judge wrong" in words_of(pick(author, chats[0]))


def judged_wrong(criterion: Criterion, chat: Chat) -> Run:
    """A finished run of the champion that says False."""
    run = run_of(champion_of(criterion), chat.memberships.get().chat_set)
    Verdict.objects.filter(run=run).update(value=False)
    return run


def test_a_raters_note_is_offered_as_a_reason(criterion: Criterion, author: Client) -> None:
    chat = decided(criterion, "t0")
    RaterNote.objects.create(
        rater=make_rater(),
        chat=chat,
        criterion=criterion,
        version=criterion.versions.latest("number"),
        kind="unclear",
        text="Is thanks enough?",
        client_id=uuid.uuid4(),
    )
    shown = words_of(part(author, "prompt_example", chat.pk))
    assert "Is thanks enough?" in shown and "A rater’s note" in shown


def test_a_chat_that_can_be_no_example_says_why(criterion: Criterion, author: Client) -> None:
    chat = decided(criterion, "t0", messages=[("user", "The same"), ("assistant", "words")])
    pick(author, chat)
    assert "This chat is already an example." in words_of(part(author, "prompt_example", chat.pk))
    near = decided(criterion, "t1", messages=[("user", "Of two"), ("assistant", "kinds")])
    held = make_chat("secret", messages=[("user", "Of two"), ("assistant", "sorts")])
    make_set(criterion.rubric, held, name="held", split="holdout")
    Chat.objects.filter(pk__in=(near.pk, held.pk)).update(near_hash=1)
    answer = part(author, "prompt_example", near.pk)
    assert "This chat is nearly the same as a dev or holdout chat." in words_of(answer)
    assert "secret" not in text_of(answer)


@pytest.mark.parametrize("split", ["dev", "holdout"])
def test_a_chat_with_the_messages_of_a_measured_one_is_not_offered(
    criterion: Criterion, author: Client, split: str
) -> None:
    decided(criterion, "t0")
    twin = decided(criterion, "t1", messages=[("user", "Of two"), ("assistant", "kinds")])
    measured = make_chat("secret", messages=[("user", "Of two"), ("assistant", "kinds")])
    make_set(criterion.rubric, measured, name="measured", split=split)
    assert "1 train chat with a consensus" in words_of(part(author, "prompt_examples"))
    assert part(author, "prompt_example", twin.pk).status_code == 404


def test_examples_are_removed_and_not_moved_because_judges_shuffle_them(
    criterion: Criterion, author: Client
) -> None:
    for revision, name in enumerate(("t0", "t1", "t2")):
        pick(author, decided(criterion, name), revision=revision)

    assert "Move example" not in text_of(author.get(EDIT))
    url = f"{EDIT}examples/1/{{}}/"
    assert author.post(url.format("up"), {"base": 1, "revision": 3}).status_code == 404
    answer = author.post(url.format("remove"), {"base": 1, "revision": 3})
    assert [one["chat"] for one in PromptDraft.objects.get().examples] == ["t0", "t2"]
    assert "Move example" not in text_of(answer)


def test_a_change_over_another_tabs_is_refused(criterion: Criterion, author: Client) -> None:
    chat = decided(criterion, "t0")
    pick(author, chat)
    assert pick(author, decided(criterion, "t1")).status_code == 409
    url = reverse("alignment:prompt_example_remove", args=["polite", 0])
    assert author.post(url, {"base": 1, "revision": 7}).status_code == 409
    assert PromptDraft.objects.get().examples == [line(chat)]


def test_labels_that_disagree_are_not_offered(criterion: Criterion, author: Client) -> None:
    chat = decided(criterion, "t0", value=True)
    label(criterion, chat, False)
    assert "0 train chats" in words_of(part(author, "prompt_examples"))


# ---------- held-out chats ----------


def test_no_fragment_shows_an_author_a_holdout_chat_its_label_or_its_words(
    criterion: Criterion, author: Client, lead: Client
) -> None:
    said = "my parcel never came and nobody at your shop told me why"
    chat = decided(criterion, "CANARY-chat", messages=[("user", f"CANARY {said}"), ("assistant", "CANARY")])
    pick(author, chat, rationale="CANARY-why")
    ChatSetMember.objects.filter(chat=chat).update(split="holdout")
    draft = PromptDraft.objects.get()
    PromptDraft.objects.update(text=f"{draft.text}\nLike “{said}”.")
    pages = {
        "editor": author.get(EDIT),
        "whole": author.get(EDIT, {"as": "markdown"}),
        "findings": part(author, "prompt_findings"),
        "list": part(author, "prompt_examples"),
        "search": part(author, "prompt_examples", q="parcel"),
        "saved": author.post(EDIT, {"reason": "So", "revision": 1}),
    }
    for name, answer in pages.items():
        left = text_of(answer).replace("&#x27;CANARY-chat&#x27; for you", "")  # the draft's own word for it
        assert "CANARY" not in left, name
    assert "occurs word for word in a dev or holdout chat" in words_of(pages["findings"])
    assert part(author, "prompt_example", chat.pk).status_code == 404
    assert part(lead, "prompt_example", chat.pk).status_code == 404  # no example for anybody
    assert not PromptVersion.objects.filter(number=2).exists()


def test_a_chat_that_the_author_is_still_to_label_is_not_shown_either(
    criterion: Criterion, author: Client
) -> None:
    chat = decided(criterion, "t0")
    both = make_user("both", Role.AUTHOR, Role.RATER)
    job_open(
        chat_set=chat.memberships.get().chat_set,
        name="October",
        criteria=[criterion],
        raters=[rater_for(user=both)],
        overlap=1,
        by=None,
    )
    client = Client()
    client.force_login(both)
    assert " t0 " not in words_of(part(client, "prompt_examples"))
    assert " t0 " in words_of(part(author, "prompt_examples"))
    assert part(client, "prompt_example", chat.pk).status_code == 404
