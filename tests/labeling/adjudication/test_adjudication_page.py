"""One item of the queue: labels without names, decide, replace, withdraw, and the walk to the next."""

import re
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evaluation.models.judges import Judge
from evaluation.models.runs import Run, RunChat, Verdict
from labeling.adjudication.queries.item import adjudication_item
from labeling.adjudication.services import adjudication_decide
from labeling.models.chats import Chat
from labeling.models.labels import Adjudication, Assignment, Consensus, Label, LabelingJob, RaterNote
from labeling.models.people import AuditEvent, Rater, Role, User
from labeling.models.rubric import CriterionVersion
from tests.factories.many_labels import NAMES, Item, label, labelled_item
from tests.factories.pages import page_text
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def lead(lead_user: User) -> Client:
    client = Client()
    client.force_login(lead_user)
    return client


@pytest.fixture
def item() -> Item:
    return labelled_item(True, True, False)


def url(item: Item, route: str = "adjudicate", query: str = "") -> str:
    return reverse(f"labeling:{route}", args=[item.chat.pk, item.criterion.key]) + query


def post(client: Client, item: Item, value: str = "false", *, seen: Any = "", **more: Any) -> Any:
    given = {"value": value, "reason": "The bot did not answer.", "seen": seen, **more}
    query = given.pop("query", "")
    return client.post(url(item, query=query), given)


def text(response: Any) -> str:
    return str(page_text(response))


def letters(item: Item) -> dict[str, str]:
    return {
        row.letter: row.rater for row in adjudication_item(chat=item.chat, criterion=item.criterion).labels
    }


# ---------- what is shown ----------


def test_labels_are_side_by_side_with_letters_and_without_names(lead: Client, item: Item) -> None:
    page = text(lead.get(url(item)))
    assert [f"Rater {letter}" in page for letter in "ABCD"] == [True, True, True, False]
    assert not [name for name in NAMES if name in page]
    assert page.count("Because ") == 3


def test_the_letters_are_stable_on_an_item_and_do_not_follow_a_rater_through_the_queue(item: Item) -> None:
    assert letters(item) == letters(item)
    others = [labelled_item(True, False, True) for _ in range(12)]
    assert len({letters(other)["A"] for other in others}) > 1


def test_the_order_of_the_labels_is_that_of_the_letters(lead: Client, item: Item) -> None:
    assert re.findall(r"Rater ([A-Z])<", text(lead.get(url(item)))) == ["A", "B", "C"]


def test_names_come_on_demand_and_that_is_on_record(lead: Client, lead_user: User, item: Item) -> None:
    response = lead.post(
        url(item, "adjudicate_named"), {"value": "false", "reason": "Half a rea", "seen": ""}
    )
    page = text(response)
    assert all(name in page for name in NAMES[:3])
    assert "Half a rea</textarea>" in page
    assert re.search(r'value="false" checked', page)
    event = AuditEvent.objects.get()
    assert (event.actor, event.verb, event.detail) == (
        lead_user,
        "raters named",
        {"chat": "chat-1", "criterion": "polite"},
    )
    assert "Amira" not in text(lead.get(url(item)))


def test_names_are_not_to_be_had_by_a_link(lead: Client, item: Item) -> None:
    assert lead.get(url(item, "adjudicate_named")).status_code == 405
    assert "Amira" not in text(lead.get(url(item, query="?named=1&names=1")))


def test_a_label_shows_its_evidence_its_time_and_an_older_version(lead: Client) -> None:
    item = labelled_item()
    evidence = [{"n": 2}, {"n": 2, "start": 0, "end": 6, "quote": "On its"}]
    label(item.chat, item.criterion, True, False, evidence=evidence)
    assert "older than" not in text(lead.get(url(item)))
    CriterionVersion.objects.create(
        criterion=item.criterion, number=2, question="Is it polite now?", definition="", content_hash="2"
    )
    page = text(lead.get(url(item)))
    assert page.count("older than 2") == 2
    assert "Is it polite now?" in page
    assert 'data-turn="2" data-start="0" data-end="6"' in page
    assert re.search(r'class="turn bot picked" id="m2"', page)


def test_names_in_what_the_page_says_show_their_hidden_characters(lead: Client) -> None:
    item = labelled_item()
    Chat.objects.filter(pk=item.chat.pk).update(external_id="a\u202eb<i>")
    answer = lead.post(url(item), {"value": "true", "reason": "r", "seen": ""}, follow=True)
    shown = text(answer)
    assert "RIGHT-TO-LEFT OVERRIDE" in shown
    assert "\u202e" not in shown
    assert "<i>" not in shown


def test_drafts_and_labels_given_after_the_verdict_was_shown_are_left_out(lead: Client, item: Item) -> None:
    Label.objects.filter(rater__name="Amira").update(post_reveal=True, rationale="CANARY")
    Label.objects.filter(rater__name="Basil").update(state="draft", rationale="CANARY")
    page = text(lead.get(url(item)))
    assert "CANARY" not in page
    assert "1 label excluded: changed after the rater saw the judge’s view" in page


def test_a_label_that_does_not_count_says_so(
    lead: Client, item: Item, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a rater answered an earlier question than the others did."""
    assert "not counted" not in text(lead.get(url(item)))
    counted = Label.objects.exclude(rater__name="Amira")
    monkeypatch.setattr("labeling.models.labels.LabelQuerySet.counted", lambda rows: counted)
    assert text(lead.get(url(item))).count("not counted: earlier question") == 1


def test_notes_of_raters_are_shown_under_their_letters(lead: Client, item: Item) -> None:
    def note(name: str, words: str, **more: Any) -> RaterNote:
        rater = Rater.objects.get_or_create(name=name)[0]
        return RaterNote.objects.create(
            rater=rater, chat=item.chat, kind="flag", text=words, client_id=uuid.uuid4(), **more
        )

    note("Amira", "Look at turn 2.", criterion=item.criterion)
    note("Eve", "A hard chat.")
    revealed = note("Cleo", "The judge says CANARY.")
    job = LabelingJob.objects.create(chat_set=item.chat_set, name="October")
    Assignment.objects.create(
        job=job,
        chat=item.chat,
        slot=1,
        position=1,
        rater=revealed.rater,
        state="submitted",
        revealed_at=timezone.now() - timedelta(hours=1),
    )
    page = text(lead.get(url(item)))
    letter = next(letter for letter, name in letters(item).items() if name == "Amira")
    assert re.search(rf"Rater {letter}</b> <span class=\"tag\">For the lead</span>\s*Look at turn 2", page)
    assert re.search(r"A rater</b> <span class=\"tag\">For the lead</span>\s*A hard chat", page)
    assert "CANARY" not in page
    assert "Eve" not in page


def test_nothing_of_the_judge_is_on_the_page(lead: Client, lead_user: User, item: Item) -> None:
    judge = Judge.objects.create(fingerprint="f" * 64, kind="imported", name="CANARY-judge", config={})
    run = Run.objects.create(judge=judge, chat_set=item.chat_set, state="done")
    RunChat.objects.create(run=run, chat=item.chat)
    Verdict.objects.create(
        run=run,
        chat=item.chat,
        criterion=item.criterion,
        state="read",
        value=False,
        rationale="CANARY-rationale",
        stored_at=timezone.now(),
    )
    pages = [url(item), url(item, "adjudicate_likely"), reverse("labeling:adjudication_queue")]
    for page in pages:
        response = lead.get(page)
        assert response.status_code == 200
        assert "CANARY" not in text(response)
    assert "Show the judge’s verdict" not in text(lead.get(url(item)))
    post(lead, item)
    link = reverse("alignment:chat_newest", args=[item.chat.pk]) + "?criterion=polite"
    assert link in text(lead.get(url(item)))
    shown = lead.get(link, follow=True)
    assert shown.redirect_chain == [
        (reverse("alignment:chat", args=[run.pk, item.chat.pk]) + "?criterion=polite", 302)
    ]
    assert "CANARY-judge" in text(shown)


def test_without_a_finished_run_the_way_to_the_judge_says_so(lead: Client, item: Item) -> None:
    page = lead.get(reverse("alignment:chat_newest", args=[item.chat.pk]), follow=True)
    assert "No finished run has judged this chat yet." in text(page)


def test_hostile_labels_names_and_reasons_are_text(lead: Client, lead_user: User, item: Item) -> None:
    evil = "<script>alert(1)</script>"
    Label.objects.update(rationale=evil, evidence=[{"n": 2, "start": 0, "end": 3, "quote": f'"{evil}'}])
    Rater.objects.filter(name="Amira").update(name=evil)
    RaterNote.objects.create(
        rater=Rater.objects.get(name="Basil"), chat=item.chat, kind="flag", text=evil, client_id=uuid.uuid4()
    )
    post(lead, item, reason=evil)
    for response in (lead.get(url(item)), lead.post(url(item, "adjudicate_named"))):
        assert evil not in text(response)
        assert "&lt;script&gt;" in text(response)


# ---------- the model beside the majority ----------


def test_the_model_is_distinguished_from_the_majority_and_stored_nowhere(lead: Client, item: Item) -> None:
    for _ in range(5):
        labelled_item(True, True, True)
        labelled_item(False, False, False)
    before = list(Consensus.objects.order_by("pk").values())
    part = text(lead.get(url(item, "adjudicate_likely", f"?set={item.chat_set.pk}")))
    assert re.search(r"<b>Dawid–Skene</b> True <span class=\"num\">[01]\.\d\d</span>", part)
    assert "from 11 chats of calibration and 3 raters" in part
    assert "2:1" in text(lead.get(url(item)))
    assert list(Consensus.objects.order_by("pk").values()) == before


def test_without_enough_raters_the_model_says_why_it_has_no_estimate(lead: Client) -> None:
    item = labelled_item(True, False)
    assert "no estimate, fewer than 3 raters" in text(lead.get(url(item, "adjudicate_likely")))
    bare = labelled_item(key="brief")
    assert "no estimate, no labels" in text(lead.get(url(bare, "adjudicate_likely")))


# ---------- deciding ----------


def test_a_decision_leads_to_the_next_item_under_the_same_filters(lead: Client, item: Item) -> None:
    following = labelled_item(True, True, False)
    labelled_item(True, False)  # not split: under the filter it is not part of the walk
    response = post(lead, item, query="?kind=split")
    assert response.status_code == 302
    assert response.headers["Location"] == url(following, query="?kind=split")
    assert Consensus.objects.get(chat=item.chat).state == "false"
    page = text(lead.get(url(following, query="?kind=split")))
    assert "Decided False: Polite, chat chat-1." in page
    assert "0 more in the queue" in page
    assert f'href="{url(item, query="?kind=split")}" data-undo' in page


def test_after_the_last_item_comes_the_queue(lead: Client, item: Item) -> None:
    response = post(lead, item)
    assert response.headers["Location"] == reverse("labeling:adjudication_queue")


def test_next_and_previous_walk_round_the_queue(lead: Client) -> None:
    items = [labelled_item(True, False) for _ in range(3)]
    for at, here in enumerate(items):
        page = lead.get(url(here))
        assert page.context["next_url"] == url(items[(at + 1) % 3])
        assert page.context["prev_url"] == url(items[at - 1])


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"value": ""}, "Choose an answer."),
        ({"value": "maybe"}, "Select a valid choice"),
        ({"reason": "  "}, "Give a reason"),
        ({"value": "null"}, "is not allowed for polite"),
    ],
)
def test_an_answer_and_a_reason_are_required_and_what_was_typed_is_kept(
    lead: Client, item: Item, given: dict[str, str], why: str
) -> None:
    response = post(lead, item, **{"reason": "Half a reason", **given})
    assert response.status_code == 400
    assert why in text(response)
    assert not Adjudication.objects.exists()
    if "reason" not in given:
        assert "Half a reason</textarea>" in text(response)


def test_the_second_of_two_leads_sees_the_firsts_decision_and_confirms(lead: Client, item: Item) -> None:
    other = make_user("otto", Role.LEAD)
    first = adjudication_decide(
        chat=item.chat, criterion=item.criterion, value=True, reason="Polite enough.", by=other, seen=None
    )
    response = post(lead, item, reason="Not at all.")
    page = text(response)
    assert response.status_code == 409
    assert "While you were reading, otto has decided." in page
    assert "Polite enough." in page
    assert "Not at all.</textarea>" in page
    assert Adjudication.objects.get() == first
    (seen,) = set(re.findall(r'name="seen" value="(\d*)"', page))
    assert post(lead, item, reason="Not at all.", seen=seen).status_code == 302
    assert Adjudication.objects.get(replaced_at=None).reason == "Not at all."


def test_the_decisions_and_their_history_are_on_the_page(lead: Client, item: Item) -> None:
    post(lead, item, reason="First thought.")
    first = Adjudication.objects.get()
    post(lead, item, "true", reason="Second thought.", seen=first.pk)
    page = text(lead.get(url(item)))
    assert "Earlier decisions (1)" in page
    assert page.index("Second thought.") < page.index("First thought.")
    assert "Replace and next" in page


def test_withdrawing_returns_to_the_majority_and_says_so(lead: Client, item: Item) -> None:
    post(lead, item)
    first = Adjudication.objects.get()
    page = lead.post(url(item, "adjudicate_withdraw", "?kind=decided"), {"seen": first.pk}, follow=True)
    assert page.redirect_chain == [(url(item, query="?kind=decided"), 302)]
    assert "The majority counts again." in text(page)
    assert Consensus.objects.get().by == "majority"


def test_withdrawing_what_another_lead_has_replaced_is_refused(lead: Client, item: Item) -> None:
    post(lead, item)
    first = Adjudication.objects.get()
    adjudication_decide(
        chat=item.chat,
        criterion=item.criterion,
        value=True,
        reason="Polite.",
        by=make_user("otto", Role.LEAD),
        seen=first.pk,
    )
    response = lead.post(url(item, "adjudicate_withdraw"), {"seen": first.pk})
    assert response.status_code == 409
    assert "otto has decided" in text(response)
    assert Consensus.objects.get().state == "true"
    assert lead.post(url(item, "adjudicate_withdraw"), {"seen": "x"}).status_code == 404


# ---------- who may ----------


@pytest.mark.parametrize("who", ["rater_user", "author_user"])
@pytest.mark.parametrize(
    "route", ["adjudicate", "adjudicate_named", "adjudicate_withdraw", "adjudicate_likely"]
)
def test_for_raters_and_authors_there_is_no_page(
    who: str, route: str, item: Item, request: pytest.FixtureRequest
) -> None:
    client = Client()
    client.force_login(request.getfixturevalue(who))
    assert client.get(url(item, route)).status_code == 404
    assert client.post(url(item, route), {"value": "true", "reason": "x"}).status_code == 404
    assert not Adjudication.objects.exists()


def test_what_is_not_there_is_not_found(lead: Client, item: Item) -> None:
    assert lead.get(reverse("labeling:adjudicate", args=[999999, "polite"])).status_code == 404
    assert lead.get(reverse("labeling:adjudicate", args=[item.chat.pk, "kind"])).status_code == 404
    assert lead.get(url(item, query="?kind=nonsense")).status_code == 404
