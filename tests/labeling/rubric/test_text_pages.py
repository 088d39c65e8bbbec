"""Pages and API of texts for raters: overview, versions, diffs, writing with a preview, reading."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from labeling.models.people import AuditEvent, Role, User
from labeling.models.rubric import CriterionVersion, RubricGuideline
from tests.factories.guidelines import reword, write
from tests.factories.labelling_job import Desk, make_desk, user_of
from tests.factories.pages import page_text
from tests.factories.rows import make_criterion, make_rater, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk() -> Desk:
    return make_desk(chats=2, raters=2)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def author(author_user: User) -> Client:
    return signed_in(author_user)


def page(client: Client, route: str, *args: object, **query: str) -> str:
    response = client.get(reverse(f"labeling:{route}", args=args), query)
    assert response.status_code == 200
    return page_text(response)


def texts(**changed: str) -> dict[str, str]:
    """The form of the criterion `polite`, as its first version fills it in."""
    asked = {"question": "Is polite so?", "definition": "True when polite.", "guideline": ""}
    return {**asked, "true_example": "", "false_example": "", "base": "1", "reason": "Asked for"} | changed


# ---------- writing ----------


def test_an_author_writes_a_guideline_and_raters_read_it(desk: Desk, author: Client) -> None:
    assert "No guideline yet" in page(author, "guideline_list")
    edit = reverse("labeling:guideline_edit", args=[desk.rubric.pk])
    given = {"text": "Read the **whole** chat.\r\n\r\n- Twice.", "reason": "Pilot", "base": "0"}
    answer = page_text(author.post(edit, given, follow=True))
    assert "Version 1 saved" in answer
    assert "<strong>whole</strong>" in answer
    row = RubricGuideline.objects.get()
    assert (row.text, row.created_by and row.created_by.username) == (
        "Read the **whole** chat.\n\n- Twice.",
        "otto",
    )
    told = page(signed_in(user_of(desk.rater)), "read_guideline", desk.rubric.pk)
    assert "<strong>whole</strong>" in told
    assert "Is polite so?" in told
    for inside in ("Pilot", "otto"):
        assert inside not in told


def test_the_same_text_again_says_that_nothing_changed(desk: Desk, author: Client) -> None:
    write(desk, "Read.", base=0)
    edit = reverse("labeling:guideline_edit", args=[desk.rubric.pk])
    answer = author.post(edit, {"text": "Read.", "reason": "Why", "base": "1"}, follow=True)
    assert "no new version" in page_text(answer)
    answer = author.post(reverse("labeling:criterion_text_edit", args=["polite"]), texts(), follow=True)
    assert "no new version" in page_text(answer)
    assert (RubricGuideline.objects.count(), CriterionVersion.objects.count()) == (1, 2)


@pytest.mark.parametrize("missing", ["text", "reason"])
def test_what_is_missing_is_said_at_its_field(desk: Desk, author: Client, missing: str) -> None:
    given = {"text": "Read.", "reason": "Why", "base": "0"} | {missing: " "}
    answer = author.post(reverse("labeling:guideline_edit", args=[desk.rubric.pk]), given)
    assert "Not saved" in page_text(answer)
    assert not RubricGuideline.objects.exists()


def test_who_comes_second_is_shown_the_newer_text_and_may_save_on_top_of_it(
    desk: Desk, author: Client
) -> None:
    write(desk, "Read the chat.", base=0)
    write(desk, "Read the whole chat.", base=1)
    edit = reverse("labeling:guideline_edit", args=[desk.rubric.pk])
    given = {"text": "Read the chat twice.", "reason": "Why", "base": "1"}
    refused = page_text(author.post(edit, given))
    assert "Version 2 was saved first" in refused
    assert "whole" in refused
    assert 'name="base" value="2"' in refused
    assert "Read the chat twice." in refused
    assert RubricGuideline.objects.count() == 2
    author.post(edit, given | {"base": "2"})
    assert RubricGuideline.objects.latest("number").text == "Read the chat twice."


def test_a_criterions_texts_become_a_version_of_the_same_question(desk: Desk, author: Client) -> None:
    edit = reverse("labeling:criterion_text_edit", args=["polite"])
    given = texts(guideline="Look.", true_example="“Thanks!”", false_example="“No.”")
    answer = page_text(author.post(edit, given, follow=True))
    assert "The question is the same" in answer
    assert "“Thanks!”" in answer
    answer = page_text(author.post(edit, given | {"base": "2", "definition": "Another."}, follow=True))
    assert "New runs use a new judge" in answer
    newest = desk.criteria[0].versions.latest("number")
    assert (newest.number, newest.definition, newest.guideline) == (3, "Another.", "Look.")


def test_two_who_write_the_same_criterion_do_not_overwrite_each_other(desk: Desk, author: Client) -> None:
    reword(desk.criteria[0], guideline="Theirs.")
    edit = reverse("labeling:criterion_text_edit", args=["polite"])
    refused = page_text(author.post(edit, texts(guideline="Mine.")))
    assert "Version 2 was saved first" in refused
    assert "Theirs" in refused
    assert 'name="base" value="2"' in refused
    assert desk.criteria[0].versions.count() == 2


def test_the_preview_is_what_raters_see_and_foreign_text_stays_text(desk: Desk, author: Client) -> None:
    hostile = "<script>alert(1)</script> **bold**"
    shown = page_text(author.post(reverse("labeling:guideline_preview"), {"text": hostile}))
    assert "<strong>bold</strong>" in shown
    assert "<script" not in shown
    preview = reverse("labeling:criterion_text_preview", args=["correct"])
    shown = page_text(author.post(preview, texts(question=hostile, true_example=hostile)))
    assert "&lt;script&gt;" in shown
    assert "<script" not in shown
    assert "Not applicable" in shown


# ---------- versions ----------


def test_what_changed_between_two_versions_is_shown_word_by_word(desk: Desk, author: Client) -> None:
    write(desk, "Read the chat.", base=0)
    write(desk, "Read the <b>whole</b> chat.", base=1)
    shown = page(author, "guideline_detail", desk.rubric.pk, old="1", new="2")
    assert "Changes from version 1 to 2" in shown
    assert "&lt;b&gt;whole&lt;/b&gt;" in shown
    assert "<ins>" in shown
    assert "<del>" not in shown
    reword(desk.criteria[0], definition="True when never rude.")
    shown = page(author, "criterion_text", "polite", old="1", new="2")
    assert "labels of the two versions do not count together" in shown
    assert "Changes from version" not in page(author, "criterion_text", "polite", old="1", new="9")


def test_a_rater_reads_what_is_new_since_the_version_they_worked_by(desk: Desk) -> None:
    write(desk, "Read the chat.", base=0)
    write(desk, "Read the whole chat.", base=1)
    reword(desk.criteria[0], guideline="Look.")
    rater = signed_in(user_of(desk.rater))
    shown = page(rater, "read_guideline", desk.rubric.pk, criterion="", was="1")
    assert "Changes since version 1" in shown
    assert "<ins>" in shown
    shown = page(rater, "read_guideline", desk.rubric.pk, criterion="polite", was="1")
    assert "Changes since version 1: Polite" in shown
    for query in ({"was": "x"}, {"was": "1", "criterion": "nonsense"}, {"was": "77"}):
        assert "<del>" not in page(rater, "read_guideline", desk.rubric.pk, **query)


def test_who_came_before_there_was_a_guideline_reads_all_of_it_as_new(desk: Desk) -> None:
    write(desk, "Read the chat.", base=0)
    shown = page(signed_in(user_of(desk.rater)), "read_guideline", desk.rubric.pk, was="0")
    assert "<ins>" in shown


def test_raters_read_the_guidelines_of_their_own_jobs_only(desk: Desk, author: Client) -> None:
    url = reverse("labeling:read_guideline", args=[desk.rubric.pk])
    stranger = make_user("stranger", Role.RATER)
    make_rater("stranger", user=stranger)
    assert signed_in(stranger).get(url).status_code == 404
    assert author.get(url).status_code == 404
    mine = signed_in(user_of(desk.rater))
    for route, *args in (
        ("guideline_list",),
        ("guideline_detail", desk.rubric.pk),
        ("guideline_edit", desk.rubric.pk),
        ("criterion_text", "polite"),
        ("criterion_text_edit", "polite"),
    ):
        assert mine.get(reverse(f"labeling:{route}", args=args)).status_code == 404
    for url in (reverse("labeling:guideline_preview"), reverse("labeling:guideline_edit", args=[1])):
        assert mine.post(url, {}).status_code == 404


@pytest.mark.heavy
def test_the_overview_takes_the_same_number_of_queries_with_many_criteria(desk: Desk, author: Client) -> None:
    counts = []
    for more in (0, 30):
        for n in range(more):
            make_criterion(f"more_{n}", rubric=desk.rubric)
            write(desk, f"Text {n}", base=n)
        author.get(reverse("labeling:guideline_list"))
        with CaptureQueriesContext(connection) as queries:
            page(author, "guideline_list")
        counts.append(len(queries))
    assert counts[0] == counts[1]


# ---------- API ----------


def sent(client: Client, route: str, key: object, **body: Any) -> Any:
    return client.post(reverse(route, args=[key]), json.dumps(body), content_type="application/json")


def test_the_api_writes_versions_and_refuses_what_is_outdated(desk: Desk, author: Client) -> None:
    body = {"text": "Read.", "reason": "Why", "base": 0}
    first, again = (sent(author, "api_rubric_guidelines", desk.rubric.pk, **body) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    late = sent(author, "api_rubric_guidelines", desk.rubric.pk, **body | {"text": "Else."})
    assert (late.status_code, late.json()["code"]) == (409, "newer_version")
    body = {"question": "Q?", "definition": "D.", "guideline": "G", "reason": "Why", "base": 1}
    assert sent(author, "api_criterion_versions", "polite", **body).status_code == 201
    assert sent(author, "api_criterion_versions", "polite", **body | {"reason": ""}).status_code == 400
    listed = author.get(reverse("api_criterion_versions", args=["polite"])).json()["results"]
    assert [(row["number"], row["guideline"], row["created_by"]) for row in listed] == [
        (2, "G", "otto"),
        (1, "", None),
    ]
    listed = author.get(reverse("api_rubric_guidelines", args=[desk.rubric.pk])).json()["results"]
    assert [row["text"] for row in listed] == ["Read."]


def test_the_api_returns_the_texts_for_a_rater_and_what_is_new(desk: Desk) -> None:
    assignment = desk.taken()
    write(desk, "Read.", base=0)
    rater = signed_in(user_of(desk.rater))
    told = rater.get(reverse("api_assignment_guideline", args=[assignment.pk])).json()
    assert (told["rubric"], told["number"], told["text"]) == ("Test rubric", 1, "Read.")
    assert [row["key"] for row in told["criteria"]] == ["polite", "correct"]
    (change,) = told["changes"]
    assert (change["criterion"], change["old"], change["new"]) == ("", 0, 1)
    assert "<ins>" in page_text(rater.get(change["url"]))
    other = signed_in(user_of(desk.raters[1]))
    assert other.get(reverse("api_assignment_guideline", args=[assignment.pk])).status_code == 404
    assert rater.get(reverse("api_criterion_versions", args=["polite"])).status_code == 404


def test_an_author_requires_evidence_for_the_failing_answer_and_the_log_has_it(
    desk: Desk, author: Client
) -> None:
    CriterionVersion.objects.filter(criterion__key="polite").update(passes_when=False)
    url = reverse("labeling:criterion_evidence", args=["polite"])
    before = page(author, "criterion_text", "polite")
    assert "Evidence with True, the failing answer" in before
    assert "Require it" in before
    answer = page_text(author.post(url, {"needed": "1"}, follow=True))
    assert "Failing answers now need evidence." in answer
    assert "Make it optional" in answer
    assert "True = bad</span> <span>False = good" in answer
    author.post(url, {"needed": "1"})  # changes nothing
    event = AuditEvent.objects.get(verb="criterion changed")
    assert event.detail["evidence_on_fail"] == {"old": False, "new": True}
    assert "no longer need evidence" in page_text(author.post(url, follow=True))
