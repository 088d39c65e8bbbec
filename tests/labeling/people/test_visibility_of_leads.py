"""Who labels and may see the judge or others' labels reads neither on a chat that they are still to label."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from evaluation.models.runs import Run, Verdict
from labeling.jobs.services import job_close
from labeling.models.labels import Adjudication, Assignment, Consensus, Label, LabelRevision, RaterNote
from labeling.models.people import ApiToken, Role, User
from labeling.people.queries.visibility import chats_shown, sees_every_chat
from labeling.people.services.tokens import token_create
from labeling.rating.services.leases import assignment_skip
from labeling.rating.services.submission import assignment_submit
from tests.factories.api_calls import label_url, put, signed_in
from tests.factories.judged_job import judge_desk
from tests.factories.labelling_job import Desk, answer_all, make_desk, user_of
from tests.factories.route_calls import as_text, ask, by_reading_then_writing, calls
from tests.factories.rows import make_rater, make_user
from tests.world import World, make_world, rolled_back

pytestmark = pytest.mark.django_db

HELD = "HELD-CHAT-SECRET"


def also(user: User, role: Role) -> User:
    """The account with one role more, as it is loaded for a new request."""
    user.groups.add(Group.objects.get(name=role))
    return User.objects.get(pk=user.pk)


# ---------- every route ----------


def build_world() -> World:
    """Mara is a lead, too; what others said of the chat she holds bears a word of its own."""
    world = make_world()
    also(world.users["rater"], Role.LEAD)
    held = {"chat": world.args["chat_id"]}
    Verdict.objects.filter(**held).update(rationale=HELD)
    others = Label.objects.filter(**held).exclude(rater=world.desk.rater)
    LabelRevision.objects.filter(label__in=others).update(rationale=HELD)
    others.update(rationale=HELD)
    RaterNote.objects.filter(**held).update(text=HELD)
    Adjudication.objects.filter(**held).update(reason=HELD)
    return world


def telling(world: World, person: str, among: Collection[str] = (), *, by: Sequence[str]) -> set[str]:
    """The routes, of all or among these, whose answer to that person holds the word."""
    client, found = world.client(person), set()
    for name, method, url, body in calls(world, *by):
        if among and name not in among:
            continue
        with rolled_back():
            caller = world.client(person) if name == "account_logout" else client
            if HELD in as_text(ask(caller, method, url, body)):
                found.add(name)
    return found


@pytest.mark.sweep
@by_reading_then_writing
def test_no_route_shows_a_lead_the_labels_of_others_on_a_chat_they_hold(
    world: World, by: Sequence[str]
) -> None:
    assert telling(world, "rater", by=by) == set()


@pytest.mark.sweep
def test_the_word_is_where_it_should_be(world: World) -> None:
    """Another lead reads it: the test above would else prove nothing."""
    named = {"alignment:chat", "labeling:adjudicate", "api_adjudicate", "api_labels", "api_export"}
    assert telling(world, "lead", named, by=["GET"]) == named


def test_every_page_asks_one_place_which_chats_are_shown() -> None:
    root = Path(__file__).parents[3]
    files = [path for app in ("labeling", "evaluation", "alignment") for path in (root / app).rglob("*.py")]
    asking = [str(path.relative_to(root)) for path in files if ".visible_to(" in path.read_text()]
    # The second takes ids of chats for a new set, and shows none.
    assert sorted(asking) == ["labeling/people/queries/visibility.py", "labeling/transfer/api.py"]


# ---------- one chat ----------


@pytest.fixture
def desk() -> Desk:
    desk = make_desk(chats=3, raters=2, overlap=2)
    judge_desk(desk)
    also(user_of(desk.rater), Role.LEAD)
    answer_all(theirs := desk.taken(desk.raters[1]))
    assignment_submit(assignment=theirs, rater=desk.raters[1])
    return desk


@pytest.fixture
def mara(desk: Desk) -> Client:
    return signed_in(user_of(desk.rater))


def looks(client: Client, desk: Desk, number: int = 0) -> dict[str, int]:
    """What the pages and routes of a chat answer."""
    chat, run = desk.chats[number].pk, Run.objects.get().pk
    urls = {
        "judged": reverse("alignment:chat_newest", args=[chat]),
        "chat": reverse("alignment:chat", args=[run, chat]),
        "item": reverse("labeling:adjudicate", args=[chat, "polite"]),
        "api": reverse("api_adjudicate", args=[chat, "polite"]),
    }
    return {name: client.get(url, follow=True).status_code for name, url in urls.items()}


ALL, NONE = {200}, {404}


def shown(desk: Desk, user: User | None = None) -> set[str]:
    """The chats that are shown to mara."""
    account = user or User.objects.get(pk=user_of(desk.rater).pk)
    return set(chats_shown(user=account).values_list("external_id", flat=True))


def test_a_chat_in_hand_does_not_exist_elsewhere_until_it_is_submitted(desk: Desk, mara: Client) -> None:
    answer_all(assignment := desk.taken())
    assert assignment.chat == desk.chats[0]
    assert set(looks(mara, desk).values()) == NONE
    assignment_submit(assignment=assignment, rater=desk.rater)
    assert set(looks(mara, desk).values()) == ALL


def test_nor_does_one_that_may_still_come_to_them(desk: Desk, mara: Client) -> None:
    assert set(looks(mara, desk, 1).values()) == NONE
    assert shown(desk) == set()


def test_a_chat_that_wants_no_more_labels_is_shown_and_so_is_one_given_back(desk: Desk) -> None:
    third = make_rater("third", user=make_user("third", Role.RATER))
    desk.job.raters.add(third)
    answer_all(theirs := desk.taken(third))
    assignment_submit(assignment=theirs, rater=third)
    assert shown(desk) == {"chat-1"}
    assignment_skip(assignment=desk.taken(), rater=desk.rater, reason="too_long")
    assert shown(desk) == {"chat-1", "chat-2"}


def test_when_the_job_is_closed_everything_is_shown(desk: Desk, lead_user: User) -> None:
    desk.taken()
    job_close(job=desk.job, by=lead_user)
    assert shown(desk) == {"chat-1", "chat-2", "chat-3"}


def test_a_job_for_a_group_counts_before_its_member_ever_opened_the_queue(desk: Desk) -> None:
    new = also(make_user("nora", Role.RATER), Role.LEAD)
    assert shown(desk, new) == {"chat-1", "chat-2", "chat-3"}
    desk.opened(raters=[], group=Group.objects.get(name=Role.RATER))
    assert shown(desk, new) == set()


def test_who_does_not_label_sees_all_and_is_asked_nothing(desk: Desk, lead_user: User) -> None:
    desk.taken()
    assert shown(desk, lead_user) == {"chat-1", "chat-2", "chat-3"}
    assert sees_every_chat(user=lead_user)
    assert not sees_every_chat(user=User.objects.get(pk=user_of(desk.rater).pk))


def test_a_token_that_is_not_good_for_labelling_opens_nothing_more(desk: Desk) -> None:
    desk.taken()
    user = User.objects.get(pk=user_of(desk.rater).pk)
    made = token_create(user=user, name="script", scopes=["manage_labeling", "see_holdout"], days=None)
    assert ApiToken.objects.count() == 1
    client = Client(headers={"authorization": f"Token {made.secret}"})
    chat = desk.chats[0].pk
    assert client.get(reverse("api_adjudicate", args=[chat, "polite"])).status_code == 404
    assert client.get(reverse("api_labels")).json()["results"] == []


def test_lists_and_files_leave_such_chats_out(desk: Desk, mara: Client) -> None:
    answer_all(first := desk.taken())  # otherwise than the judge, and on one criterion than the other rater
    put(mara, label_url(first, "correct"), value=False)
    pages = {
        "labels": reverse("api_labels"),
        "export": reverse("api_export", args=[desk.chat_set.pk, "labels", "jsonl"]),
        "set": reverse("labeling:set_detail", args=[desk.chat_set.pk]),
        "disagreements": reverse("alignment:disagreements", args=[Run.objects.get().pk]),
        "queue": reverse("api_adjudication_queue"),
    }
    names = re.compile(rf"chat-1\b|/chats/{desk.chats[0].pk}/")
    named = {name: bool(names.search(as_text(mara.get(url)))) for name, url in pages.items()}
    assert not any(named.values()), named
    assignment_submit(assignment=first, rater=desk.rater)
    named = {name: bool(names.search(as_text(mara.get(url)))) for name, url in pages.items()}
    assert all(named.values()), named


# ---------- afterwards ----------


def corrected(desk: Desk, mara: Client) -> Any:
    """Mara's chat submitted with True, and then False on the first criterion."""
    answer_all(assignment := desk.taken())
    assignment_submit(assignment=assignment, rater=desk.rater)
    answer = put(mara, label_url(assignment), value=False, active_ms=900)
    assert answer.status_code == 200
    return answer.json()


def test_what_they_change_once_they_may_look_is_kept_and_not_counted(desk: Desk, mara: Client) -> None:
    assert corrected(desk, mara)["post_reveal"] is True
    label = Label.objects.get(rater=desk.rater, criterion=desk.criteria[0])
    assert (label.value, label.post_reveal) == (True, False)
    assert Consensus.objects.get(criterion=desk.criteria[0]).n_true == 2


def test_the_screen_says_so(desk: Desk, mara: Client) -> None:
    answer_all(assignment := desk.taken())
    page = reverse("labeling:rate", args=[assignment.pk])
    told = re.compile(r'"revealed": (true|false)')
    assert told.findall(mara.get(page).content.decode()) == ["false"]
    assignment_submit(assignment=assignment, rater=desk.rater)
    assert told.findall(mara.get(page).content.decode()) == ["true"]


def test_nor_does_what_they_answer_in_a_later_job(desk: Desk) -> None:
    answer_all(assignment := desk.taken())
    assignment_submit(assignment=assignment, rater=desk.rater)
    before = list(Consensus.objects.order_by("pk").values())
    again = desk.opened(raters=[desk.rater])
    slot = Assignment.objects.filter(job=again, chat=assignment.chat)
    Assignment.objects.filter(job=again).exclude(pk__in=slot.values("pk")).delete()
    taken = replace(desk, job=again).taken()
    answer_all(taken, value=False)
    assignment_submit(assignment=taken, rater=desk.rater)
    assert list(Consensus.objects.order_by("pk").values()) == before


def test_a_correction_by_a_rater_who_is_nothing_else_still_counts(desk: Desk) -> None:
    other = desk.raters[1]
    done = Assignment.objects.get(rater=other, state="submitted")
    answer = put(signed_in(user_of(other)), label_url(done), value=False)
    assert answer.json()["post_reveal"] is False
    assert Label.objects.get(rater=other, criterion=desk.criteria[0]).value is False
