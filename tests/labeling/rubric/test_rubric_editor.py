"""The rubric editor: new rubrics from ticks, dimensions, criteria, settings; two leads at once; the log."""

from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from common.problems import FieldProblem
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.services.profiles import judges_today
from evaluation.models.prompts import CriterionArticle, PromptVersion
from evaluation.prompts.queries.versions import champions
from labeling.models.people import AuditEvent, Role, User
from labeling.models.rubric import Criterion, Dimension, Rubric
from labeling.rating.services.submission import assignment_submit
from labeling.rubric.queries.editor import default_rubric, settings_of
from labeling.rubric.services.dimensions import dimension_add, dimension_remove, dimensions_order
from tests.factories.articles import make_article
from tests.factories.labelling_job import Desk, answer_all, make_desk
from tests.factories.pages import page_text
from tests.factories.rows import make_criterion, make_rubric, make_user
from tests.factories.runs import point_at
from tests.files import criterion as file_criterion
from tests.files import rubric as file_rubric
from tests.files import run, write_json

pytestmark = pytest.mark.django_db


@pytest.fixture
def lead(lead_user: User) -> Client:
    client = Client()
    client.force_login(lead_user)
    return client


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def url(route: str, *args: object) -> str:
    return reverse(f"labeling:{route}", args=args)


def sent(client: Client, route: str, *args: object, **fields: Any) -> str:
    """The page that answers a form, after its redirect if it was accepted."""
    return page_text(client.post(url(route, *args), fields, follow=True))


def new_criterion(**changed: Any) -> dict[str, Any]:
    """The form of a new criterion."""
    start = {
        "question": "Did the bot state a wrong price?",
        "definition": "True when a price that the bot states is not the shop's.",
        "key": "",
        "dimension": "compliance",
        "tier": "simple",
        "passes_when": "False",
        "articles": "tier",
    }
    return start | changed


def edit_form(criterion: Criterion, **changed: Any) -> dict[str, Any]:
    """The form of a criterion as it is now."""
    version, settings = criterion.versions.latest("number"), settings_of(criterion)
    start = {
        "base": version.number,
        "seen": settings.digest,
        "question": version.question,
        "definition": version.definition,
        "key": criterion.key,
        "dimension": criterion.dimension.key,
        "tier": criterion.tier,
        "passes_when": str(version.passes_when),
        "articles": "all" if settings.all_articles else "listed",
        "reason": "Asked for",
    }
    return start | changed


def event(verb: str) -> dict[str, Any]:
    return dict(AuditEvent.objects.get(verb=verb).detail)


# ---------- a new rubric ----------


def test_the_first_rubric_of_an_empty_workspace_comes_from_ticks(lead: Client) -> None:
    for page in ("rubric_list", "guideline_list"):
        assert url("rubric_new") in page_text(lead.get(url(page)))
    ticked = ["stated_wrong_fact", "polite_professional"]
    page = sent(lead, "rubric_new", name="Web shop", criteria=ticked)
    assert "Web shop created with 2 criteria" in page
    rubric = Rubric.objects.get(name="Web shop")
    assert {row.key for row in rubric.criteria.all()} == set(ticked)
    assert set(Dimension.objects.values_list("key", flat=True)) == {
        row.dimension.key for row in rubric.criteria.all()
    }
    prompts = PromptVersion.objects.filter(criterion__rubric=rubric)
    assert {(row.number, row.origin) for row in prompts} == {(1, "shipped")}
    assert set(event("rubric created")["criteria"]) == set(ticked)


def test_without_a_tick_the_rubric_is_empty_and_has_the_dimensions(lead: Client) -> None:
    page = sent(lead, "rubric_new", name="Own questions")
    assert "Add its first criterion" in page
    assert not Criterion.objects.exists()
    assert Dimension.objects.count() == len(default_rubric().dimensions)


def test_what_another_rubric_has_cannot_be_ticked(lead: Client) -> None:
    make_rubric("stated_wrong_fact", name="Earlier")
    assert "already in Earlier" in page_text(lead.get(url("rubric_new")))
    sent(lead, "rubric_new", name="Later", criteria=["stated_wrong_fact"])
    assert not Rubric.objects.filter(name="Later").exists()


def test_two_rubrics_never_have_the_same_name(lead: Client) -> None:
    make_rubric("polite", name="Shop")
    page = sent(lead, "rubric_new", name="Shop", criteria=["stated_wrong_fact"])
    assert "exists already" in page
    assert 'value="stated_wrong_fact" checked' in page  # what was ticked is still ticked
    assert Rubric.objects.count() == 1


def test_a_rubric_takes_more_of_the_default_criteria(lead: Client) -> None:
    rubric = make_rubric("polite", "concise_replies", name="Shop")
    assert "Tick at least one criterion" in sent(lead, "rubric_defaults", rubric.pk)
    page = sent(lead, "rubric_defaults", rubric.pk, criteria=["stated_wrong_fact"])
    assert "1 criterion added" in page
    row = Criterion.objects.get(key="stated_wrong_fact")
    assert (row.rubric, champions(criteria=[row])[row.pk].origin) == (rubric, "shipped")
    assert event("rubric extended")["criteria"] == ["stated_wrong_fact"]
    assert Criterion.objects.count() == 3


def test_ticks_leave_a_renamed_dimension_its_name(lead: Client) -> None:
    rubric = make_rubric("polite", dimension="answer_correctness")
    Dimension.objects.update(name="Facts")
    sent(lead, "rubric_defaults", rubric.pk, criteria=["stated_wrong_fact"])
    assert Dimension.objects.get(key="answer_correctness").name == "Facts"


# ---------- criteria ----------


def test_a_new_criterion_gets_a_key_from_its_question_and_its_first_prompt(lead: Client) -> None:
    rubric = make_rubric("polite")
    page = sent(lead, "criterion_new", rubric.pk, **new_criterion(allow_na="on", critical="on"))
    row = Criterion.objects.get(key="state_wrong_price")
    assert "Its key is state_wrong_price" in page
    version = row.versions.get()
    assert (version.passes_when, version.allow_na, row.critical) == (False, True, True)
    prompt = champions(criteria=[row])[row.pk]
    assert (prompt.number, prompt.origin) == (1, "generated")
    assert "Did the bot state a wrong price?" in prompt.text
    logged = event("criterion created")
    assert (logged["criterion"], logged["passes_when"]) == ("state_wrong_price", False)


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("key", "polite", "keys are unique in the workspace"),
        ("key", "Not a key", "Lower-case letters"),
        ("question", " ", "This field is required"),
        ("definition", "", "This field is required"),
        ("dimension", "gone", "Select a valid choice"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_nothing_typed_is_lost(
    lead: Client, field: str, value: str, problem: str
) -> None:
    rubric = make_rubric("polite")
    page = sent(lead, "criterion_new", rubric.pk, **new_criterion(**{field: value}))
    assert problem in page
    assert "Did the bot state a wrong price?" in page or field == "question"
    assert Criterion.objects.count() == 1


def test_it_reads_the_articles_that_are_ticked(lead: Client) -> None:
    make_article("refunds", "# Refunds\nAfter 14 days.")
    make_article("tariffs", "# Tariffs\nNone.")
    rubric = make_rubric("polite")
    fields = new_criterion(tier="context", articles="listed", knowledge=["refunds"])
    sent(lead, "criterion_new", rubric.pk, **fields)
    row = Criterion.objects.get(key="state_wrong_price")
    assert row.articles == "listed"
    assert CriterionArticle.objects.get(criterion=row).article.key == "refunds"
    sent(lead, "criterion_edit", row.key, **edit_form(row, articles="all"))
    row.refresh_from_db()
    assert (row.articles, CriterionArticle.objects.count()) == ("all", 0)


def test_settings_change_at_once_and_are_logged_before_and_after(lead: Client) -> None:
    rubric = make_rubric("polite")
    row = rubric.criteria.get()
    page = sent(lead, "criterion_edit", "polite", **edit_form(row, tier="subjective", critical="on"))
    assert "Polite saved." in page
    logged = event("criterion changed")
    assert logged["tier"] == {"old": "simple", "new": "subjective"}
    assert logged["critical"] == {"old": False, "new": True}
    assert row.versions.count() == 1


def test_another_question_is_a_version_and_says_how_many_labels_it_retires(lead: Client) -> None:
    desk = labelled_desk()
    row = desk.criteria[0]
    page = page_text(lead.get(url("criterion_edit", row.key)))
    assert "2 labels on 2 chats" in page
    fields = edit_form(row, question="Was it polite?")
    assert "Say whether the labels go on counting" in sent(lead, "criterion_edit", row.key, **fields)
    assert row.versions.count() == 1
    page = sent(lead, "criterion_edit", row.key, **fields, meaning="new")
    assert "Earlier labels stop counting as soon as someone labels the new text" in page
    newest = row.versions.latest("number")
    assert (newest.number, newest.question) == (2, "Was it polite?")
    sent(lead, "criterion_text_undo", row.key, 2)
    assert row.versions.latest("number").question == "Is polite so?"


def labelled_desk() -> Desk:
    """Two chats, on which a rater has labelled `polite`."""
    desk = make_desk(chats=2, raters=1)
    for _ in range(2):
        assignment = desk.taken()
        answer_all(assignment)
        assignment_submit(assignment=assignment, rater=desk.rater)
    return desk


def test_the_passing_answer_and_the_key_are_fixed_once_there_are_labels(lead: Client) -> None:
    row = labelled_desk().criteria[0]
    fields = edit_form(row, passes_when="False", key="civil", critical="on")
    sent(lead, "criterion_edit", row.key, **fields)
    row.refresh_from_db()
    assert (row.key, row.critical, row.versions.get().passes_when) == ("polite", True, True)


def test_before_its_first_use_a_criterion_can_have_another_key_and_passing_answer(lead: Client) -> None:
    row = make_rubric("polite").criteria.get()
    sent(lead, "criterion_edit", "polite", **edit_form(row, passes_when="False", key="rude"))
    row.refresh_from_db()
    assert (row.key, row.versions.latest("number").passes_when) == ("rude", False)


def test_who_comes_second_sees_the_other_settings_and_overwrites_nothing(lead: Client) -> None:
    row = make_rubric("polite").criteria.get()
    mine = edit_form(row, tier="context")
    other = signed_in(make_user("lena", Role.LEAD))
    sent(other, "criterion_edit", "polite", **edit_form(row, tier="subjective"))
    page = sent(lead, "criterion_edit", "polite", **mine)
    assert "Another lead changed these settings first" in page
    assert "Tier: now subjective, yours context" in page
    row.refresh_from_db()
    assert row.tier == "subjective"
    sent(lead, "criterion_edit", "polite", **mine | {"seen": settings_of(row).digest})
    row.refresh_from_db()
    assert row.tier == "context"


def test_who_comes_second_sees_the_newer_text(lead: Client) -> None:
    row = make_rubric("polite").criteria.get()
    mine = edit_form(row, question="Mine?")
    other = signed_in(make_user("lena", Role.LEAD))
    sent(other, "criterion_edit", "polite", **edit_form(row, question="Theirs?"))
    page = sent(lead, "criterion_edit", "polite", **mine)
    assert "Version 2 was saved first" in page
    assert 'name="base" value="2"' in page
    assert "Mine?" in page
    assert row.versions.latest("number").question == "Theirs?"


# ---------- dimensions ----------


def test_dimensions_are_added_renamed_and_removed_while_empty(lead: Client) -> None:
    rubric = make_rubric("polite")
    sent(lead, "rubric_dimension_add", rubric.pk, name="Tone of voice")
    tone = Dimension.objects.get(key="tone_voice")
    sent(lead, "rubric_dimension_rename", rubric.pk, tone.pk, name="Tone", seen="Tone of voice")
    page = sent(lead, "rubric_dimension_rename", rubric.pk, tone.pk, name="Voice", seen="Tone of voice")
    assert "Somebody renamed it to" in page
    assert 'value="Voice"' in page  # what was typed is kept
    assert event("dimension renamed")["name"] == {"old": "Tone of voice", "new": "Tone"}
    sent(lead, "rubric_dimension_remove", rubric.pk, tone.pk)
    assert event("dimension removed")["key"] == "tone_voice"
    used = Dimension.objects.get()
    assert "has 1 criterion" in sent(lead, "rubric_dimension_remove", rubric.pk, used.pk)
    assert Dimension.objects.count() == 1


def test_a_moved_dimension_is_a_new_judge_and_moved_back_the_earlier_one(lead: Client, settings: Any) -> None:
    point_at(settings, "http://127.0.0.1:9/v1")
    rubric = make_rubric("polite")
    make_criterion("brief", rubric=rubric, dimension="efficiency")
    for position, row in enumerate(Dimension.objects.order_by("pk")):
        Dimension.objects.filter(pk=row.pk).update(position=position)
    first, second = Dimension.objects.order_by("position")

    def fingerprint() -> str:
        return judges_today(choice=JudgeSpec(engine="direct"))[0].fingerprint

    before = fingerprint()
    sent(lead, "rubric_dimension_up", rubric.pk, second.pk, seen=f"{first.pk},{second.pk}")
    assert list(Dimension.objects.order_by("position")) == [second, first]
    assert event("dimensions reordered")["order"]["new"] == ["efficiency", "compliance"]
    assert fingerprint() != before
    stale = sent(lead, "rubric_dimension_up", rubric.pk, second.pk, seen=f"{first.pk},{second.pk}")
    assert "Somebody changed the dimensions meanwhile" in stale
    sent(lead, "rubric_dimension_down", rubric.pk, second.pk, seen=f"{second.pk},{first.pk}")
    assert fingerprint() == before


def test_dimensions_of_other_rubrics_keep_their_place(lead_user: User) -> None:
    a, b, c = (dimension_add(name=name, by=lead_user) for name in ("A", "B", "C"))
    dimensions_order(order=[c.pk, a.pk], seen=[a.pk, c.pk], by=lead_user)
    assert list(Dimension.objects.all()) == [c, b, a]
    with pytest.raises(FieldProblem, match="same dimensions"):
        dimensions_order(order=[a.pk], seen=[c.pk, a.pk], by=lead_user)
    with pytest.raises(FieldProblem, match="exists already"):
        dimension_add(name="b", by=lead_user)
    dimension_remove(dimension=b, by=lead_user)
    assert Dimension.objects.count() == 2


# ---------- the pages ----------


def test_an_author_reads_the_rubric_and_changes_nothing(author_user: User) -> None:
    rubric = make_rubric("polite")
    author = signed_in(author_user)
    page = page_text(author.get(url("rubric_detail", rubric.pk)))
    assert "Is polite so?" in page
    assert url("criterion_text", "polite") in page
    for route in ("criterion_new", "rubric_dimension_add", "rubric_rename"):
        assert url(route, rubric.pk) not in page
    assert author.post(url("criterion_new", rubric.pk), new_criterion()).status_code == 404


def test_the_pages_ask_the_same_number_of_queries_for_any_rubric(lead: Client) -> None:
    rubric = make_rubric("polite")
    pages = (url("rubric_list"), url("rubric_detail", rubric.pk), url("criterion_edit", "polite"))

    def queries() -> list[int]:
        counts = []
        for page in pages:
            with CaptureQueriesContext(
                connection,
            ) as asked:
                assert lead.get(page).status_code == 200
            counts.append(len(asked))
        return counts

    few = queries()
    for n in range(5):
        make_criterion(f"more_{n}", rubric=rubric, dimension=f"dimension_{n}")
        make_rubric(f"other_{n}", name=f"Rubric {n}")
    assert queries() == few


# ---------- the API ----------


def api(client: Client, path: str, body: dict[str, Any]) -> Any:
    return client.post(f"/api/{path}", body, content_type="application/json")


def test_a_rubric_file_makes_the_same_rubric_by_command_and_by_api(lead: Client, tmp_path: Path) -> None:
    document = file_rubric(file_criterion(question="Polite?", passes_when=True))
    run("import_rubric", write_json(tmp_path / "rubric.json", document))
    by_command = lead.get(f"/api/rubrics/{Rubric.objects.get().pk}/").json()
    renamed = document | {
        "name": "Second",
        "criteria": [one | {"key": f"{one['key']}_2"} for one in document["criteria"]],
    }
    answer = api(lead, "rubrics/", renamed)
    assert answer.status_code == 201
    second = answer.json()
    assert [one | {"key": ""} for one in second["criteria"]] == [
        one | {"key": ""} for one in by_command["criteria"]
    ]
    assert api(lead, "rubrics/", renamed).json() == {
        "name": ["The rubric 'Second' exists already. Choose another name."]
    }


def test_the_api_adds_a_criterion_and_changes_it(lead: Client) -> None:
    rubric = make_rubric("polite")
    path = f"rubrics/{rubric.pk}/"
    fields = {"dimension": "compliance", "tier": "simple", "definition": "When it does."}
    added = api(lead, path, fields | {"question": "Does it greet?"})
    assert (added.status_code, added.json()["key"]) == (201, "greet")
    changed = api(lead, "criteria/greet/change/", {"base": 1, "reason": "Why", "question": "Greets?"})
    assert changed.json()["question"] == "Greets?"
    late = api(lead, "criteria/greet/change/", {"base": 1, "reason": "Why", "question": "Or not?"})
    assert (late.status_code, late.json()["code"]) == (409, "newer_version")
    taken = api(lead, path, fields | {"question": "So?", "key": "polite"})
    assert "unique in the workspace" in taken.json()["key"][0]
