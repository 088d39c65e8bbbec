"""The inbox: who is told of what, who never is, and the threads of comments."""

from datetime import timedelta
from smtplib import SMTPServerDisconnected
from typing import Any

import pytest
from django.core import mail
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from alignment.misalignments.services import Triage, misalignment_triage, misalignment_undo
from alignment.models.misalignments import Misalignment
from common.inbox.services import READ_KEPT, Kind, inbox_add, inbox_by_mail, inbox_sweep
from common.models import Comment, InboxItem
from common.problems import FieldProblem, InputProblem
from evaluation.models.runs import Run
from evaluation.runs.worker.execute import tell_paused
from labeling.models.labels import LabelingJob, RaterNote
from labeling.models.people import Role, User
from tests.factories.rows import make_user
from tests.world import World, make_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    """Without what the world itself has told anybody."""
    made = make_world()
    InboxItem.objects.all().delete()
    Comment.objects.all().delete()
    return made


@pytest.fixture
def lead(world: World) -> User:
    return world.users["lead"]


@pytest.fixture
def author(world: World) -> User:
    return world.users["author"]


def told(user: User) -> list[tuple[str, str]]:
    """Kind and subject of the user's items, oldest first."""
    return list(InboxItem.objects.filter(user=user).order_by("at").values_list("kind", "subject"))


def disagreement(world: World, *, holdout: bool = False) -> str:
    return f"disagreement:{world.args['held_misalignment' if holdout else 'misalignment_id']}"


def comment(world: World, person: str, subject: str, text: str) -> Any:
    return world.client(person).post(reverse("comments", args=[subject]), {"text": text})


def triage(world: World, by: User, *, holdout: bool = False, **change: str) -> None:
    pk = world.args["held_misalignment" if holdout else "misalignment_id"]
    seen = Misalignment.objects.get(pk=pk).revision
    misalignment_triage(misalignment_id=pk, change=Triage(**change), seen=seen, by=by)


# ---------- who is told ----------


def test_the_new_owner_of_a_disagreement_is_told_and_not_who_assigned_it(
    world: World, lead: User, author: User
) -> None:
    triage(world, lead, owner="otto")
    triage(world, lead, cause="other")
    assert told(author) == [("assigned", disagreement(world))]
    triage(world, author, owner="ines")
    triage(world, lead, owner="")
    assert told(lead) == [("assigned", disagreement(world))]


def test_nobody_is_assigned_a_chat_that_they_cannot_open(world: World, lead: User, author: User) -> None:
    with pytest.raises(InputProblem, match="otto cannot open this chat"):
        triage(world, lead, holdout=True, owner="otto")
    assert not InboxItem.objects.exists()


def test_who_is_mentioned_in_a_note_is_told_once(world: World, lead: User, author: User) -> None:
    triage(world, lead, note="See @otto.")
    triage(world, lead, note="See @otto, please (@nobody-here, ines@otto.example).")
    assert told(author) == [("mentioned", disagreement(world))]
    with pytest.raises(FieldProblem, match="otto cannot open this"):
        triage(world, lead, holdout=True, note="@otto?")


def test_a_note_comes_back_by_undo_even_if_somebody_in_it_may_not_read_it_any_more(
    world: World, lead: User, author: User
) -> None:
    triage(world, lead, note="See @otto.")
    triage(world, lead, note="")
    author.groups.clear()
    undone = misalignment_undo(among=Misalignment.objects.all(), by=lead)
    assert undone.note == "See @otto."


def test_a_text_mentions_only_so_many(world: World, lead: User) -> None:
    with pytest.raises(FieldProblem, match="at most 20 people"):
        triage(world, lead, note=" ".join(f"@person{n}" for n in range(21)))


def test_the_owner_of_a_criterion_is_told(world: World, lead: User, author: User) -> None:
    url = reverse("alignment:criterion_assign", args=["polite"])
    world.client("lead").post(url, {"owner": "otto"})
    assert told(author) == [("assigned", f"criterion:{world.args['criterion_id']}")]
    world.client("lead").post(url, {"owner": "mara"})  # a rater
    assert InboxItem.objects.count() == 1


def test_a_rater_reads_the_answer_to_their_note_once_the_chat_is_not_to_label_any_more(world: World) -> None:
    note = RaterNote.objects.get(pk=world.args["note_id"])
    subject, rater = f"note:{note.pk}", note.rater.user
    assert rater is not None
    assert comment(world, "lead", subject, "Good point.").status_code == 302
    assert told(rater) == [("answered", subject)]
    inbox, thread = reverse("inbox"), reverse("comments", args=[subject])
    other = world.client("other")
    assert other.get(thread).status_code == 404
    assert "the note on chat" not in other.get(inbox).content.decode()
    LabelingJob.objects.update(state="closed")  # nothing is left to label
    assert "the note on chat" in other.get(inbox).content.decode()
    assert "Good point." in other.get(thread).content.decode()
    assert world.client("rater").get(reverse("comments", args=[subject])).status_code == 404


def test_a_comment_tells_the_owner_earlier_writers_and_who_is_mentioned_each_once(
    world: World, lead: User, author: User
) -> None:
    third = make_user("olga", Role.LEAD)
    subject = disagreement(world)  # the lead owns it
    comment(world, "author", subject, "Is this a promise, @olga?")
    assert told(lead) == [("answered", subject)]
    assert told(third) == [("mentioned", subject)]
    comment(world, "lead", subject, "It is. @otto")
    assert told(author) == [("mentioned", subject)]


def test_a_run_that_pauses_by_itself_tells_who_started_it(world: World, lead: User) -> None:
    run = Run.objects.get(pk=world.args["paused_run"])
    run.started_by = lead
    tell_paused([run])
    assert told(lead) == [("paused", f"run:{run.pk}")]


# ---------- what may be read ----------


def test_what_one_may_open_no_longer_is_not_in_the_inbox(world: World, author: User) -> None:
    inbox_add(users=[author], kind=Kind.ASSIGNED, subject=disagreement(world))
    client = world.client("author")
    assert "Assigned you" in client.get("/inbox/").content.decode()
    author.groups.clear()
    assert "Assigned you" not in client.get("/inbox/").content.decode()
    item = InboxItem.objects.get()
    assert client.post(reverse("inbox_open", args=[item.pk])).status_code == 404


@pytest.mark.parametrize("subject", ["disagreement:0", "disagreement:x", "thing:1", "disagreement", "run:1:"])
def test_a_thread_of_nothing_does_not_exist(world: World, subject: str) -> None:
    assert world.client("lead").get(reverse("comments", args=[subject])).status_code == 404


def test_authors_see_no_thread_on_a_holdout_chat(world: World) -> None:
    url = reverse("comments", args=[disagreement(world, holdout=True)])
    assert world.client("author").get(url).status_code == 404
    assert world.client("lead").get(url).status_code == 200


@pytest.mark.parametrize("text", ["", "  \n", "x" * 4_001])
def test_a_comment_needs_a_text_of_reasonable_length(world: World, text: str) -> None:
    answer = comment(world, "lead", disagreement(world), text)
    assert answer.status_code == 200
    assert 'role="alert"' in answer.content.decode()
    assert not Comment.objects.exists()


def test_a_comment_that_mentions_somebody_who_cannot_read_it_is_refused_and_kept_in_the_form(
    world: World,
) -> None:
    answer = comment(world, "lead", disagreement(world, holdout=True), "@otto, look")
    assert "otto cannot open this" in answer.content.decode()
    assert "@otto, look</textarea>" in answer.content.decode()
    assert not Comment.objects.exists()


# ---------- the list ----------


def test_opening_an_item_marks_it_as_read_and_leads_to_its_subject(world: World, author: User) -> None:
    inbox_add(users=[author], kind=Kind.ASSIGNED, subject=disagreement(world))
    client = world.client("author")
    counts = reverse("inbox_counts")
    assert "unread" in client.get(counts).content.decode()
    answer = client.post(reverse("inbox_open", args=[InboxItem.objects.get().pk]))
    assert answer["Location"].startswith("/runs/")
    assert client.get(answer["Location"]).status_code == 200
    assert "unread" not in client.get(counts).content.decode()


def test_what_happens_again_is_unread_again(world: World, author: User) -> None:
    for _ in range(2):
        inbox_add(users=[author], kind=Kind.ANSWERED, subject=disagreement(world))
        assert InboxItem.objects.get().read_at is None
        world.client("author").post(reverse("inbox_read_all"))
    assert InboxItem.objects.get().read_at is not None


def test_the_number_of_queries_does_not_grow_with_the_items(world: World, lead: User) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            client.get("/inbox/")
        return len(queries)

    client = world.client("lead")
    for kind in (Kind.ASSIGNED, Kind.ANSWERED):
        inbox_add(users=[lead], kind=kind, subject=disagreement(world))
    few = asked()
    for kind in Kind:
        inbox_add(users=[lead], kind=kind, subject=disagreement(world, holdout=True))
    assert asked() == few


def test_own_open_disagreements_are_counted_in_the_top_bar(world: World) -> None:
    Misalignment.objects.update(state="triaged")
    page = world.client("lead").get(reverse("inbox_counts")).content.decode()
    assert "Mine" in page
    assert ">2<" in page


def test_items_read_long_ago_are_forgotten(world: World, author: User) -> None:
    inbox_add(users=[author], kind=Kind.ASSIGNED, subject=disagreement(world))
    InboxItem.objects.update(read_at=timezone.now() - READ_KEPT + timedelta(minutes=1))
    inbox_sweep()
    assert InboxItem.objects.count() == 1
    InboxItem.objects.update(read_at=timezone.now() - READ_KEPT - timedelta(minutes=1))
    inbox_sweep()
    assert not InboxItem.objects.exists()


# ---------- e-mail ----------


def test_who_wants_it_gets_unread_items_by_mail_once_and_without_their_texts(
    world: World, author: User, settings: Settings
) -> None:
    settings.INBOX_MAIL = True
    author.email = "otto@example.com"
    author.save()
    comment(world, "lead", disagreement(world), "A secret thought for @otto")
    inbox_by_mail(user=author, on=True)
    inbox_sweep()
    assert mail.outbox == []  # it may still be read on the site
    InboxItem.objects.update(at=timezone.now() - timedelta(minutes=3))
    inbox_sweep()
    inbox_sweep()
    (message,) = mail.outbox
    assert message.to == ["otto@example.com"]
    assert "Mentioned: chat-2, Polite" in message.body
    assert "secret" not in message.body
    assert "/inbox/" in message.body


def test_what_a_mail_server_refused_is_sent_by_a_later_sweep(
    world: World, author: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.INBOX_MAIL = True
    author.email = "otto@example.com"
    author.save()
    inbox_by_mail(user=author, on=True)
    inbox_add(users=[author], kind=Kind.ASSIGNED, subject=disagreement(world))
    InboxItem.objects.update(at=timezone.now() - timedelta(hours=1))

    def refused(*args: Any) -> None:
        raise SMTPServerDisconnected

    with monkeypatch.context() as patch:
        patch.setattr("common.inbox.services.send_mail", refused)
        inbox_sweep()
    assert mail.outbox == []
    inbox_sweep()
    assert len(mail.outbox) == 1


def test_nothing_is_mailed_without_a_mail_server_or_a_wish(
    world: World, author: User, settings: Settings
) -> None:
    author.email = "otto@example.com"
    author.save()
    inbox_add(users=[author], kind=Kind.ASSIGNED, subject=disagreement(world))
    InboxItem.objects.update(at=timezone.now() - timedelta(hours=1))
    for server, wish in ((True, False), (False, True)):
        settings.INBOX_MAIL = server
        inbox_by_mail(user=author, on=wish)
        inbox_sweep()
    assert mail.outbox == []


def test_a_visitor_without_account_has_no_inbox() -> None:
    assert Client().get("/inbox/").status_code == 302
