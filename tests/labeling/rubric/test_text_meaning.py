"""What a change of a text does to the labels: wording only, new meaning, a lead's decision, undo."""

from dataclasses import replace

import pytest
from django.test import Client
from django.urls import reverse

from common.models import InboxItem
from labeling.models.labels import Consensus, Label
from labeling.models.people import AuditEvent, Role, User
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.rating.services.submission import assignment_submit
from labeling.rubric.core.meaning import Change
from labeling.rubric.queries.label_counts import LabelCount, labels_of_text
from labeling.rubric.services.guidelines import criterion_write, guideline_write
from labeling.rubric.services.wording import (
    NotPossible,
    criterion_undo,
    criterion_wording_decide,
    guideline_undo,
    guideline_wording_decide,
)
from tests.factories.guidelines import words
from tests.factories.labelling_job import Desk, answer_all, make_desk
from tests.factories.page_text import words_of
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk() -> Desk:
    """Two chats with one rater's labels each, and a third chat to label."""
    desk = make_desk(chats=3, raters=2)
    for _ in range(2):
        label(desk)
    return desk


@pytest.fixture
def otto() -> User:
    return make_user("otto", Role.AUTHOR)


def label(desk: Desk) -> None:
    assignment = desk.taken()
    answer_all(assignment)
    assignment_submit(assignment=assignment, rater=desk.rater)


def rewrite(criterion: Criterion, by: User | None, meaning: Change = "", **texts: str) -> CriterionVersion:
    newest = criterion.versions.latest("number")
    return criterion_write(
        criterion=criterion,
        words=replace(words(criterion), **texts),
        reason="Clearer",
        base=newest.number,
        by=by,
        meaning=meaning,
    )


def counting(criterion: Criterion) -> int:
    """Labels that count, and they alone make the consensus."""
    labels = Label.objects.counted().filter(criterion=criterion)
    made = Consensus.objects.filter(criterion=criterion, n_true__gt=0)
    assert made.count() == labels.count()
    return labels.count()


# ---------- what a change does ----------


def test_a_lead_who_changes_the_wording_only_keeps_the_labels(desk: Desk, lead_user: User) -> None:
    row = rewrite(desk.criteria[0], lead_user, "wording", question="Is it polite, so?")
    assert (row.wording, row.wording_by) == ("confirmed", lead_user)
    label(desk)
    assert counting(desk.criteria[0]) == 3
    event = AuditEvent.objects.get(verb="criterion written")
    assert (event.detail["wording"], event.detail["reason"]) == ("confirmed", "Clearer")
    assert event.detail["asks_anew"] is False


def test_the_judge_is_asked_the_new_words_either_way(desk: Desk, lead_user: User) -> None:
    first = desk.criteria[0].versions.get()
    row = rewrite(desk.criteria[0], lead_user, "wording", question="Is it polite, so?")
    assert row.content_hash != first.content_hash
    assert row.asks_as(first)


def test_a_new_meaning_retires_the_labels_with_the_first_new_one(desk: Desk, lead_user: User) -> None:
    rewrite(desk.criteria[0], lead_user, "new", guideline="Thanks do not count.")
    assert counting(desk.criteria[0]) == 2
    label(desk)
    assert counting(desk.criteria[0]) == 1
    assert counting(desk.criteria[1]) == 3


def test_other_words_for_raters_keep_the_labels_if_nobody_says_otherwise(desk: Desk) -> None:
    rewrite(desk.criteria[0], None, guideline="Look twice.")
    label(desk)
    assert counting(desk.criteria[0]) == 3


def test_the_labels_at_stake_are_those_to_the_current_text(desk: Desk, lead_user: User) -> None:
    both = desk.criteria[:2]
    assert labels_of_text(both) == LabelCount(labels=4, chats=2)
    rewrite(desk.criteria[0], lead_user, "wording", question="Is it polite, so?")
    assert labels_of_text(both) == LabelCount(labels=4, chats=2)
    rewrite(desk.criteria[0], lead_user, "new", question="Is it rude?")
    assert labels_of_text(both) == LabelCount(labels=2, chats=2)


# ---------- a lead decides ----------


def test_what_an_author_calls_wording_is_a_new_question_until_a_lead_confirms_it(
    desk: Desk, lead_user: User, otto: User
) -> None:
    row = rewrite(desk.criteria[0], otto, "wording", question="Is it polite, so?")
    assert row.wording == "asked"
    label(desk)
    assert counting(desk.criteria[0]) == 1
    criterion_wording_decide(version=row, only_wording=True, by=lead_user)
    assert counting(desk.criteria[0]) == 3
    event = AuditEvent.objects.get(verb="wording only confirmed")
    assert (event.actor, event.detail["number"], event.detail["reason"]) == (lead_user, 2, "Clearer")


def test_a_refused_wording_leaves_a_later_version_alone_that_restores_the_text(
    desk: Desk, lead_user: User, otto: User
) -> None:
    first = desk.criteria[0].versions.get()
    row = rewrite(desk.criteria[0], otto, "wording", guideline="Look twice.")
    restored = rewrite(desk.criteria[0], otto, guideline=first.guideline)
    later = rewrite(desk.criteria[0], otto, guideline="Look thrice.")
    criterion_wording_decide(version=row, only_wording=False, by=lead_user)
    meanings = dict(desk.criteria[0].versions.values_list("number", "meaning"))
    assert meanings[restored.number] == meanings[later.number] == meanings[first.number]
    assert meanings[row.number] != meanings[first.number]


def test_the_leads_find_the_question_in_their_inbox_and_the_author_the_answer(
    desk: Desk, client: Client, lead_user: User, otto: User
) -> None:
    row = rewrite(desk.criteria[0], otto, "wording", question="Is it polite, so?")
    guideline = guideline_write(
        rubric=desk.rubric, text="Read twice.", reason="Clearer", base=0, by=otto, meaning="wording"
    )
    client.force_login(lead_user)
    inbox = words_of(client.get(reverse("inbox")))
    assert f"texts for raters of {desk.criteria[0].name}, version 2" in inbox
    assert f"texts for raters of {desk.rubric.name}, version 1" in inbox
    criterion_wording_decide(version=row, only_wording=False, by=lead_user)
    guideline_wording_decide(version=guideline, only_wording=True, by=lead_user)
    answered = InboxItem.objects.filter(user=otto, kind="answered").values_list("subject", flat=True)
    assert set(answered) == {f"text:{row.pk}", f"guideline:{guideline.pk}"}


def test_a_confirmed_wording_takes_later_versions_along(desk: Desk, lead_user: User, otto: User) -> None:
    row = rewrite(desk.criteria[0], otto, "wording", question="Is it polite, so?")
    rewrite(desk.criteria[0], otto, guideline="Look twice.")
    label(desk)
    criterion_wording_decide(version=row, only_wording=True, by=lead_user)
    assert counting(desk.criteria[0]) == 3


def test_a_lead_may_find_a_new_meaning_in_other_words_for_raters(
    desk: Desk, lead_user: User, otto: User
) -> None:
    row = rewrite(desk.criteria[0], otto, "wording", guideline="Thanks do not count.")
    label(desk)
    assert counting(desk.criteria[0]) == 3
    criterion_wording_decide(version=row, only_wording=False, by=lead_user)
    assert counting(desk.criteria[0]) == 1
    with pytest.raises(NotPossible):
        criterion_wording_decide(version=row, only_wording=True, by=lead_user)


def test_a_guideline_with_a_new_meaning_asks_all_its_criteria_anew(desk: Desk, lead_user: User) -> None:
    guideline_write(rubric=desk.rubric, text="Read all.", reason="Pilot", base=0, by=lead_user, meaning="new")
    assert [criterion.versions.count() for criterion in desk.criteria] == [2] * len(desk.criteria)
    label(desk)
    assert [counting(criterion) for criterion in desk.criteria] == [1] * len(desk.criteria)


def test_an_authors_guideline_waits_for_the_leads_word(desk: Desk, lead_user: User, otto: User) -> None:
    row = guideline_write(
        rubric=desk.rubric, text="Read all.", reason="Pilot", base=0, by=otto, meaning="wording"
    )
    guideline_wording_decide(version=row, only_wording=False, by=lead_user)
    row.refresh_from_db()
    assert (row.wording, row.wording_by) == ("refused", lead_user)
    assert AuditEvent.objects.get(verb="wording only refused").actor == lead_user
    assert all(criterion.versions.count() == 2 for criterion in desk.criteria)


# ---------- undo ----------


def test_a_change_is_undone_until_its_first_label(desk: Desk, lead_user: User) -> None:
    changed = rewrite(desk.criteria[0], lead_user, "new", question="Is it rude?")
    row = criterion_undo(version=changed, by=lead_user)
    assert (row.number, row.question, row.reason) == (3, "Is polite so?", "Undo of version 2")
    label(desk)
    assert counting(desk.criteria[0]) == 3
    again = rewrite(desk.criteria[0], lead_user, "new", question="Is it rude?")
    label_newest_text(desk)
    with pytest.raises(NotPossible, match="has labels by now"):
        criterion_undo(version=again, by=lead_user)


def label_newest_text(desk: Desk) -> None:
    """As an import gives it."""
    some = Label.objects.filter(criterion=desk.criteria[0]).latest("pk")
    Label.objects.filter(pk=some.pk).update(version=desk.criteria[0].versions.latest("number"))


def test_an_older_change_is_not_undone(desk: Desk, lead_user: User) -> None:
    older = rewrite(desk.criteria[0], lead_user, "new", question="Is it rude?")
    rewrite(desk.criteria[0], lead_user, "new", question="Is it kind?")
    with pytest.raises(NotPossible, match="not the newest"):
        criterion_undo(version=older, by=lead_user)


def test_the_undo_of_a_guideline_takes_its_criteria_back(desk: Desk, lead_user: User) -> None:
    for base, text in enumerate(("Read all.", "Read all of it twice.")):
        row = guideline_write(
            rubric=desk.rubric, text=text, reason="Pilot", base=base, by=lead_user, meaning="new"
        )
        if not base:
            label(desk)
    undone = guideline_undo(version=row, by=lead_user)
    assert (undone.number, undone.text) == (3, "Read all.")
    assert AuditEvent.objects.get(verb="guideline undone").object_id == undone.pk
    meanings = list(desk.criteria[0].versions.values_list("meaning", flat=True))
    assert meanings[1] == meanings[3] != meanings[2]
    assert counting(desk.criteria[0]) == 1


# ---------- the pages ----------


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def posted(desk: Desk, client: Client, **fields: str) -> str:
    newest = desk.criteria[0].versions.latest("number")
    texts = {"question": "Is it so?", "definition": newest.definition, "reason": "Clearer"}
    given = texts | {"guideline": "", "true_example": "", "false_example": "", "base": str(newest.number)}
    url = reverse("labeling:criterion_text_edit", args=["polite"])
    return words_of(client.post(url, given | fields, follow=True))


def test_the_page_says_what_is_at_stake_and_wants_an_answer(desk: Desk, otto: User) -> None:
    otto_page = signed_in(otto)
    page = words_of(otto_page.get(reverse("labeling:criterion_text_edit", args=["polite"])))
    assert "2 labels on 2 chats go on counting. A lead has to confirm it" in page
    assert "2 labels on 2 chats stop counting as soon as someone labels by the new text" in page
    assert "Say whether the labels go on counting." in posted(desk, otto_page)
    assert desk.criteria[0].versions.count() == 1


def test_without_labels_nothing_is_asked(otto: User) -> None:
    desk = make_desk(chats=1, raters=1)
    assert "saving retires none" in words_of(
        signed_in(otto).get(reverse("labeling:criterion_text_edit", args=["polite"]))
    )
    assert "Version 2 saved." in posted(desk, signed_in(otto))


def test_an_author_asks_and_a_lead_confirms_on_the_page(desk: Desk, otto: User, lead_user: User) -> None:
    page = posted(desk, signed_in(otto), meaning="wording")
    assert "A lead is asked whether only the wording changed." in page
    assert "2 labels on 2 chats. A lead has to confirm it." in page
    assert "wording only?" in words_of(signed_in(lead_user).get(reverse("labeling:guideline_list")))
    decide = reverse("labeling:criterion_text_decide", args=["polite", 2])
    page = words_of(signed_in(lead_user).post(decide, {"meaning": "wording"}, follow=True))
    assert "Version 2: wording only. Labels go on counting." in page
    assert "Wording only, says ines" in page
    assert counting(desk.criteria[0]) == 2


def test_undo_stands_on_the_page_until_the_first_label(desk: Desk, otto: User) -> None:
    client = signed_in(otto)
    assert "Undo version 2" in posted(desk, client, meaning="new")
    undo = reverse("labeling:criterion_text_undo", args=["polite", 2])
    page = words_of(client.post(undo, follow=True))
    assert "Version 2 is undone. Version 3 has the earlier text." in page
    label(desk)
    page = words_of(client.get(reverse("labeling:criterion_text", args=["polite"])))
    assert "Undo version" not in page


# ---------- the API ----------


def test_a_program_undoes_and_decides_too(desk: Desk, otto: User, lead_user: User) -> None:
    url = reverse("api_criterion_versions", args=["polite"])
    texts = {"question": "Is it so?", "definition": "D.", "reason": "Why", "base": 1, "meaning": "wording"}
    written = signed_in(otto).post(url, texts, content_type="application/json").json()
    assert (written["number"], written["wording"]) == (2, "asked")
    lead = signed_in(lead_user)
    decide = reverse("api_criterion_version_decide", args=["polite", 2])
    decided = lead.post(decide, {"meaning": "wording"}, content_type="application/json").json()
    assert decided["wording"] == "confirmed"
    assert decided["meaning"] == desk.criteria[0].versions.get(number=1).meaning
    again = lead.post(decide, {"meaning": "new"}, content_type="application/json")
    assert (again.status_code, again.json()["code"]) == (409, "not_possible")
    undone = lead.post(reverse("api_criterion_version_undo", args=["polite", 2]))
    assert (undone.status_code, undone.json()["question"]) == (201, "Is polite so?")
