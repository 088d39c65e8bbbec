"""The adjudication queue: what is listed, in which order, under which filters, and at which cost."""

import uuid

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from labeling.adjudication.services import adjudication_decide
from labeling.models.chats import Chat, ChatSetMember, Split
from labeling.models.labels import Assignment, Consensus, Label, LabelingJob, RaterNote
from labeling.models.people import Rater, User
from tests.factories.many_labels import Item, label, labelled_item
from tests.factories.pages import page_text
from tests.factories.rows import analyze, make_rubric, make_set

pytestmark = pytest.mark.django_db


@pytest.fixture
def lead(lead_user: User) -> Client:
    client = Client()
    client.force_login(lead_user)
    return client


def url(query: str = "") -> str:
    return reverse("labeling:adjudication_queue") + (f"?{query}" if query else "")


def listed(client: Client, query: str = "") -> list[str]:
    response = client.get(url(query))
    assert response.status_code == 200
    return [f"{item['row'].external_id} {item['row'].criterion}" for item in response.context["items"]]


def note(item: Item, kind: str, *, on_criterion: bool = True) -> RaterNote:
    return RaterNote.objects.create(
        rater=Rater.objects.get_or_create(name="Amira")[0],
        chat=item.chat,
        criterion=item.criterion if on_criterion else None,
        kind=kind,
        text="Please look.",
        client_id=uuid.uuid4(),
    )


def test_it_lists_ties_and_splits_the_most_disputed_first(lead: Client) -> None:
    labelled_item(True, True, True)
    labelled_item(True, True, True, False)
    labelled_item(True, False, True)
    labelled_item(True, False)
    labelled_item(True, True, False, False)
    labelled_item(True)
    labelled_item(True, False, None, allow_na=True, key="offers_refund")
    assert listed(lead) == [
        "chat-7 offers_refund",  # no two agree
        "chat-5 polite",  # 2:2
        "chat-4 polite",  # 1:1, fewer labels
        "chat-3 polite",  # 2:1
        "chat-2 polite",  # 3:1
    ]


def test_it_counts_each_kind_and_lists_it_alone(lead: Client, lead_user: User) -> None:
    labelled_item(True, False)
    labelled_item(True, False, True)
    decided = labelled_item(True, True, False)
    adjudication_decide(
        chat=decided.chat, criterion=decided.criterion, value=False, reason="So.", by=lead_user, seen=None
    )
    flagged = labelled_item(True, True)
    note(flagged, "unclear")
    counts = {kind["value"]: kind["count"] for kind in lead.get(url()).context["kinds"]}
    assert counts == {"disputed": 2, "unresolved": 1, "split": 1, "flagged": 1, "decided": 1}
    assert listed(lead, "kind=unresolved") == ["chat-1 polite"]
    assert listed(lead, "kind=split") == ["chat-2 polite"]
    assert listed(lead, "kind=decided") == ["chat-3 polite"]
    assert listed(lead, "kind=flagged") == ["chat-4 polite"]


def test_a_flag_on_the_chat_counts_a_comment_or_a_settled_note_does_not(lead: Client) -> None:
    whole, remark, settled = (labelled_item(True, True) for _ in range(3))
    note(whole, "flag", on_criterion=False)
    note(remark, "comment")
    RaterNote.objects.filter(pk=note(settled, "flag").pk).update(settled_at=timezone.now())
    assert listed(lead, "kind=flagged") == ["chat-1 polite"]


def test_filters_by_set_job_criterion_dimension_and_topic(lead: Client) -> None:
    first = labelled_item(True, False, topic="refund")
    second = labelled_item(True, False, key="correct", dimension="answer_correctness")
    label(second.chat, first.criterion, True, False)
    other = make_set(first.criterion.rubric, first.chat, name="other")
    job = LabelingJob.objects.create(chat_set=first.chat_set, name="October")
    job.criteria.set([first.criterion])
    Assignment.objects.create(job=job, chat=second.chat, slot=1, position=1)
    everything = ["chat-1 polite", "chat-2 polite", "chat-2 correct"]
    assert listed(lead) == everything
    assert listed(lead, f"set={other.pk}") == ["chat-1 polite"]
    assert listed(lead, f"set={first.chat_set.pk}&job=&topic=") == everything
    assert listed(lead, f"job={job.pk}") == ["chat-2 polite"]
    assert listed(lead, "criterion=correct") == ["chat-2 correct"]
    assert listed(lead, "dimension=compliance") == ["chat-1 polite", "chat-2 polite"]
    assert listed(lead, "topic=refund") == ["chat-1 polite"]
    foreign = make_set(make_rubric("kind", name="Other rubric"), first.chat, name="foreign")
    assert listed(lead, f"set={foreign.pk}") == []


@pytest.mark.parametrize("query", ["kind=nonsense", "set=999999", "criterion=none", "job=x", "topic=none"])
def test_a_filter_that_names_nothing_is_not_found(lead: Client, query: str) -> None:
    labelled_item(True, False)
    assert lead.get(url(query)).status_code == 404


def test_retired_criteria_wait_for_nobody(lead: Client) -> None:
    item = labelled_item(True, False)
    item.criterion.state = "retired"
    item.criterion.save()
    assert listed(lead) == []


@pytest.mark.parametrize("who", ["rater_user", "author_user"])
def test_for_raters_and_authors_there_is_no_queue(who: str, request: pytest.FixtureRequest) -> None:
    client = Client()
    client.force_login(request.getfixturevalue(who))
    assert client.get(url()).status_code == 404


def test_holdout_chats_need_the_right_to_see_them(lead: Client, lead_user: User) -> None:
    item = labelled_item(True, False, split="holdout")
    labelled_item(True, False)
    assert listed(lead) == ["chat-1 polite", "chat-2 polite"]
    group = lead_user.groups.get()
    group.permissions.remove(group.permissions.get(codename="see_holdout"))
    assert listed(lead) == ["chat-2 polite"]
    assert lead.get(url()).context["counts"].disputed == 1
    page = reverse("labeling:adjudicate", args=[item.chat.pk, "polite"])
    assert lead.get(page).status_code == 404


def test_with_a_criterion_chosen_the_model_is_shown_beside_the_majority(lead: Client) -> None:
    for _ in range(6):
        labelled_item(True, True, True)
        labelled_item(False, False, False)
    labelled_item(True, True, False)
    assert "Dawid–Skene over" not in lead.get(url()).content.decode()
    page = lead.get(url("criterion=polite"))
    (item,) = page.context["items"]
    assert (item["row"].state, item["likely"].state) == ("true", "true")
    assert "Dawid–Skene from 13 chats and 3 raters" in page_text(page)
    Label.objects.filter(rater__name="Cleo").delete()
    assert "no estimate, fewer than 3 raters" in lead.get(url("criterion=polite")).content.decode()


def test_an_empty_queue_says_so(lead: Client) -> None:
    assert "No items" in lead.get(url()).content.decode()


def many(item: Item, *, to: int) -> None:
    """More chats like the item's, every second one tied, in bulk; every fifth with labels of three raters."""
    start, chat = Chat.objects.count(), item.chat
    common = {"topic_id": chat.topic_id, "messages": chat.messages, "message_count": 2, "char_count": 40}
    chats = Chat.objects.bulk_create(
        Chat(external_id=f"more-{n}", content_hash=str(n), **common) for n in range(start, to)
    )
    ChatSetMember.objects.bulk_create(
        ChatSetMember(chat_set=item.chat_set, chat=chat, position=n, split=Split.DEV)
        for n, chat in enumerate(chats, start + 1)
    )
    Consensus.objects.bulk_create(
        Consensus(chat=chat, criterion=item.criterion, state="unresolved", n_true=1, n_false=1)
        if n % 2
        else Consensus(chat=chat, criterion=item.criterion, state="true", n_true=2, n_false=1)
        for n, chat in enumerate(chats)
    )
    given = {"criterion": item.criterion, "version": item.criterion.versions.get(), "state": "submitted"}
    now = timezone.now()
    Label.objects.bulk_create(
        Label(chat=chat, rater=rater, value=n % 7 != place, given_at=now, **given)
        for place, rater in enumerate(Rater.objects.all())
        for n, chat in enumerate(chats[::5])
    )
    analyze()


@pytest.mark.heavy
def test_queries_do_not_grow_from_100_to_10_000_chats(lead: Client) -> None:
    item = labelled_item(True, False, True)
    note(item, "flag")
    job = LabelingJob.objects.create(chat_set=item.chat_set, name="October")
    job.criteria.set([item.criterion])
    Assignment.objects.create(job=job, chat=item.chat, slot=1, position=1)
    pages = [
        url(),
        url("criterion=polite&dimension=compliance&topic=unknown"),
        url(f"set={item.chat_set.pk}&kind=split&page=2"),
        url("kind=flagged"),
        url(f"job={job.pk}"),
        reverse("labeling:adjudicate", args=[item.chat.pk, "polite"]),
        reverse("labeling:adjudicate_likely", args=[item.chat.pk, "polite"]),
    ]
    lead.get(pages[5])  # makes the workspace's row
    spent = []
    for size in (100, 10_000):
        many(item, to=size)
        counts = []
        for page in pages:
            with CaptureQueriesContext(
                connection,
            ) as queries:
                assert lead.get(page).status_code == 200
            counts.append(len(queries))
        spent.append(counts)
    assert spent[0] == spent[1]
    assert max(spent[1]) <= 25
