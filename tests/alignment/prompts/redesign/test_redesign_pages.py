"""Redesigning a criterion over the page and the API: steps, refusals, what it does and leaves alone."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from alignment.comparison.queries.scope import Scope
from evaluation.models.prompts import ArticleVersion, CriterionArticle, KnowledgeArticle
from evaluation.runs.services.runs import chosen_criteria
from labeling.consensus.services.consensus import consensus_refresh
from labeling.models.chats import ChatSet
from labeling.models.labels import Label, LabelingJob
from labeling.models.people import AuditEvent, User
from labeling.models.rubric import Criterion, CriterionLineage
from tests.factories.compared_runs import Compared, add_chats, text_of
from tests.factories.decided_tests import make_test
from tests.factories.page_text import words_of
from tests.factories.rater_quality import polite

pytestmark = pytest.mark.django_db

PAGE = "/criteria/polite/redesign/"
API = "/api/criteria/polite/redesign/"


def asked(n: int, name: str, **fields: Any) -> dict[str, Any]:
    """One new question of the page's form, its key that name."""
    plain = {"key": name, "question": f"Is {name} so?", "definition": f"True when {name}."}
    plain |= {"dimension": "compliance", "tier": "simple", "passes_when": "True"}
    return {f"into-{n}-{field}": value for field, value in (plain | fields).items()}


def form(step: str, *questions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    size = {"into-TOTAL_FORMS": len(questions), "into-INITIAL_FORMS": len(questions)}
    return {name: value for one in questions for name, value in one.items()} | size | fields | {"step": step}


SPLIT = (asked(0, "greets", carries=["polite"]), asked(1, "thanks"))


def active() -> list[str]:
    return list(Criterion.objects.filter(state="active").values_list("key", flat=True))


# ---------- the page ----------


def test_the_page_offers_what_can_be_done(lead: Client, compared: Compared) -> None:
    page = text_of(lead.get(PAGE))
    for kind in ("split", "merge", "replace", "retire"):
        assert f'href="?kind={kind}"' in page


def test_a_split_is_filled_in_looked_at_and_carried_out(
    lead: Client, lead_user: User, compared: Compared
) -> None:
    page = text_of(lead.get(PAGE, {"kind": "split"}))
    assert page.count('<fieldset class="question">') == 2
    seen = words_of(lead.post(PAGE + "?kind=split", form("preview", *SPLIT)))
    assert "120 labels and 0 adjudications carry over." in seen
    assert "No labels carry over. Raters label it again." in seen
    assert "The first run makes version 1 of the prompt" in seen
    assert set(active()) == {"polite", "wrong_fact", "welcome"}
    word = {"reason": "Two in one", "same_answers": "on"}
    done = lead.post(PAGE + "?kind=split", form("confirm", *SPLIT, **word), follow=True)
    assert "Polite is split into Greets and Thanks. 120 labels carried over." in words_of(done)
    assert active() == ["greets", "thanks", "wrong_fact", "welcome"]
    assert Label.objects.filter(criterion__key="greets", source="carried").count() == 120
    assert AuditEvent.objects.get(verb="criterion split").actor == lead_user


def test_without_a_reason_and_the_leads_word_nothing_is_done(lead: Client, compared: Compared) -> None:
    page = words_of(lead.post(PAGE + "?kind=split", form("confirm", *SPLIT, reason=" ")))
    assert "This field is required." in page
    assert "Confirm this, or carry no labels over." in page
    assert not CriterionLineage.objects.exists()


def test_where_no_labels_carry_over_the_word_is_not_asked_for(lead: Client, compared: Compared) -> None:
    plain = (asked(0, "greets"), asked(1, "thanks"))
    assert "I compared" not in words_of(lead.post(PAGE + "?kind=split", form("preview", *plain)))
    lead.post(PAGE + "?kind=split", form("confirm", *plain, reason="Two in one"))
    assert not Label.objects.filter(criterion__key__in=("greets", "thanks")).exists()
    assert "greets" in active()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"key": "Greets!"}, "Lower-case letters, digits and _ only, letter first."),
        ({"key": "welcome"}, "&#x27;welcome&#x27; is already in use"),
        ({"key": "thanks"}, "&#x27;thanks&#x27; appears twice"),
        ({"question": "  "}, "This field is required."),
        ({"definition": "x" * 10_001}, "at most 10000 characters"),
        ({"dimension": "none_such"}, "Select a valid choice."),
        ({"carries": ["welcome"]}, "Select a valid choice."),
    ],
)
def test_what_is_wrong_is_said_at_its_field(
    lead: Client, compared: Compared, changed: dict[str, Any], message: str
) -> None:
    questions = (asked(0, "greets", **changed), asked(1, "thanks"))
    page = text_of(lead.post(PAGE + "?kind=split", form("preview", *questions)))
    assert message in page
    assert "1 field below needs a change." in page
    assert "What happens to" not in page


def test_answers_not_applicable_are_said_at_their_field(lead: Client, compared: Compared) -> None:
    Label.objects.filter(criterion__key="polite", rater__name="cleo").update(value=None)
    page = text_of(lead.post(PAGE + "?kind=split", form("preview", *SPLIT)))
    assert "40 of the answers to carry over are “not applicable”" in page


def test_questions_are_added_and_taken_away_and_keep_what_was_typed(lead: Client, compared: Compared) -> None:
    more = text_of(lead.post(PAGE + "?kind=split", form("add", *SPLIT)))
    assert more.count('<fieldset class="question">') == 3
    assert 'value="greets"' in more
    assert "This field is required." not in more
    three = (*SPLIT, asked(2, "bye"))
    less = text_of(lead.post(PAGE + "?kind=split", form("less", *three)))
    assert (less.count('<fieldset class="question">'), 'value="bye"' in less) == (2, False)
    many = tuple(asked(n, f"part_{n}") for n in range(10))
    assert text_of(lead.post(PAGE + "?kind=split", form("add", *many))).count('class="question"') == 10


def test_from_the_preview_one_may_go_back_to_the_questions(lead: Client, compared: Compared) -> None:
    page = text_of(lead.post(PAGE + "?kind=split", form("edit", *SPLIT)))
    assert 'value="greets"' in page
    assert page.count("checked") == 1


def test_a_merge_first_asks_with_which_others(lead: Client, compared: Compared) -> None:
    chooser = text_of(lead.get(PAGE, {"kind": "merge"}))
    assert 'name="others" value="welcome"' in chooser
    merged = "?kind=merge&others=welcome&others=none_such"
    page = text_of(lead.get(PAGE + merged))
    assert "Merge Polite and Welcome" in page
    question = asked(0, "kind", carries=["polite", "welcome"])
    seen = words_of(lead.post(PAGE + merged, form("preview", question)))
    assert "60 labels and 0 adjudications carry over." in seen
    assert "20 chats carry over with the labels of all raters." in seen
    assert (
        "20 of 40 chats with several answers (50%), 60 labels do not carry over: the answers to the old "
        "questions differ. Do the questions ask the same?"
    ) in seen
    word = {"reason": "The same", "same_answers": "on"}
    done = lead.post(PAGE + merged, form("confirm", question, **word), follow=True)
    said = (
        "Polite and Welcome are merged into Kind. 60 labels carried over. 20 chats with different answers did"
    )
    assert said in words_of(done)
    assert active() == ["kind", "wrong_fact"]


def test_the_preview_of_a_merge_counts_labels_that_need_a_look(lead: Client, compared: Compared) -> None:
    Label.objects.filter(criterion__key="welcome", chat=compared.chat(1)).delete()
    Label.objects.filter(criterion__key="welcome", chat=compared.chat(5), rater__name="anna").update(
        value=False
    )
    for n in (1, 5):
        consensus_refresh(criterion_ids=[row.pk for row in compared.criteria], chat_ids=[compared.chat(n).pk])
    seen = words_of(
        lead.post(
            PAGE + "?kind=merge&others=welcome",
            form("preview", asked(0, "kind", carries=["polite", "welcome"])),
        )
    )
    assert "1 label is of raters who answered the old questions differently: the first question’s" in seen
    assert "1 chat has answers to one old question only and carries over." in seen


def test_a_replacement_starts_from_the_old_text_and_warns_of_another_good_answer(
    lead: Client, compared: Compared
) -> None:
    assert "Is polite so?</textarea>" in text_of(lead.get(PAGE, {"kind": "replace"}))
    question = asked(0, "rude", passes_when="False", carries=["polite"])
    page = words_of(lead.post(PAGE + "?kind=replace", form("preview", question)))
    assert "Labels keep their True and False." in page


def test_retiring_says_at_once_what_it_does_and_is_undone_on_the_same_page(
    lead: Client, compared: Compared
) -> None:
    job = LabelingJob.objects.create(chat_set=compared.chat_set, name="October")
    job.criteria.add(polite())
    page = words_of(lead.get(PAGE, {"kind": "retire"}))
    assert "120 labels and 0 adjudications stay" in page
    assert "October has no questions left. Close it." in page
    lead.post(PAGE + "?kind=retire", {"step": "confirm", "reason": "Unused"})
    assert polite().state == "retired"
    back = words_of(lead.get(PAGE))
    assert "Bring back Polite" in back
    assert "Retired on" in back
    assert "“Unused”" in back
    assert "This field is required." in words_of(lead.post(PAGE, {"reason": ""}))
    lead.post(PAGE, {"reason": "Used after all"})
    assert polite().state == "active"


def test_while_a_regression_test_is_open_nothing_can_be_carried_out(lead: Client, compared: Compared) -> None:
    test = make_test(compared)
    assert test.candidate is not None
    compared.run.judge.prompts.create(
        criterion=polite(),
        criterion_version=polite().versions.get(),
        prompt_version=test.candidate,
        group=0,
    )
    page = text_of(lead.get(PAGE, {"kind": "retire"}))
    assert reverse("alignment:regression_detail", args=[test.pk]) in page
    assert 'value="confirm"' not in page
    refused = lead.post(PAGE + "?kind=retire", {"step": "confirm", "reason": "Unused"})
    assert refused.status_code == 200
    answer = call(lead, kind="retire", reason="Unused")
    assert answer.json() == {"kind": [f"regression test {test.pk} is open: wait for it or cancel it first"]}
    assert polite().state == "active"


def test_hostile_texts_come_back_as_text(lead: Client, compared: Compared) -> None:
    bad = "<script>alert(1)</script>"
    question = asked(0, "kind", question=bad, definition=bad)
    for step in ("preview", "edit", "confirm"):
        page = text_of(lead.post(PAGE + "?kind=replace", form(step, question, reason="")))
        assert bad not in page
        assert "&lt;script&gt;" in page


def test_a_form_tampered_with_is_refused_and_breaks_nothing(lead: Client, compared: Compared) -> None:
    for size in ("", "x", "-1", "1", "999999"):
        given = form("confirm", *SPLIT, reason="Why") | {"into-TOTAL_FORMS": size}
        for step in ("preview", "confirm", "add", "edit"):
            assert lead.post(PAGE + "?kind=split", given | {"step": step}).status_code == 200
    assert not CriterionLineage.objects.exists()
    assert lead.get(PAGE, {"kind": "none_such"}).status_code == 200


@pytest.mark.heavy
def test_the_preview_takes_the_same_queries_at_40_and_400_chats(lead: Client, compared: Compared) -> None:
    spent = []
    for chats in (40, 400):
        add_chats(compared, to=chats)
        with CaptureQueriesContext(connection) as queries:
            lead.post(PAGE + "?kind=split", form("preview", *SPLIT))
        spent.append(len(queries))
    assert spent[0] == spent[1]


# ---------- what it leaves alone, and what it changes ----------


def report(lead: Client, compared: Compared) -> dict[str, Any]:
    body: dict[str, Any] = lead.get(reverse("api_run_report", args=[compared.run.pk])).json()
    return body


def test_the_report_of_an_old_run_still_shows_what_was_retired_with_its_labels(
    lead: Client, compared: Compared
) -> None:
    before = report(lead, compared)
    word = {"reason": "Two in one", "same_answers": "on"}
    lead.post(PAGE + "?kind=split", form("confirm", *SPLIT, **word))
    after = report(lead, compared)
    assert after["criteria"] == before["criteria"]
    assert [row["key"] for row in after["criteria"]] == ["polite", "wrong_fact", "welcome"]
    page = text_of(lead.get(reverse("alignment:report_run", args=[compared.run.pk])))
    assert "Polite" in page
    cell = reverse("alignment:cell", args=[compared.run.pk, "polite", "fn"])
    assert lead.get(cell).status_code == 200


def test_new_runs_and_the_sets_own_report_ask_the_new_questions_only(
    lead: Client, compared: Compared
) -> None:
    lead.post(PAGE + "?kind=split", form("confirm", *SPLIT, reason="Two", same_answers="on"))
    chat_set = ChatSet.objects.get(pk=compared.chat_set.pk)
    keys = [row.key for row in chosen_criteria(chat_set, ())]
    assert sorted(keys) == ["greets", "thanks", "welcome", "wrong_fact"]
    assert keys.index("thanks") == keys.index("greets") + 1
    assert {row.key for row in Scope(chat_set).criteria} == set(keys)


@pytest.mark.parametrize(("tier", "articles"), [("simple", ["returns"]), ("context", ["returns"])])
def test_the_new_ones_read_the_articles_that_the_old_one_lists(
    lead: Client, compared: Compared, tier: str, articles: list[str]
) -> None:
    article = KnowledgeArticle.objects.create(key="returns")
    ArticleVersion.objects.create(article=article, number=1, title="R", text="R", content_hash="r")
    CriterionArticle.objects.create(criterion=polite(), article=article)
    lead.post(PAGE + "?kind=replace", form("confirm", asked(0, "kind", tier=tier), reason="Why"))
    new = Criterion.objects.get(key="kind")
    links = CriterionArticle.objects.filter(criterion=new).values_list("article__key", flat=True)
    assert (new.articles, list(links)) == ("listed", articles)


# ---------- the API ----------


def call(client: Client, **body: Any) -> Any:
    return client.post(API, json.dumps(body), content_type="application/json")


QUESTION = {"key": "kind", "question": "Kind?", "definition": "True when kind.", "tier": "simple"} | {
    "dimension": "compliance"
}


def test_a_dry_run_says_what_the_call_then_does(lead: Client, compared: Compared) -> None:
    body = {"kind": "replace", "into": [QUESTION | {"carries": ["polite"]}], "same_answers": True}
    dry = call(lead, **body, dry_run=True)
    assert (dry.status_code, dry.json()["labels"], dry.json()["dry_run"]) == (200, 120, True)
    assert active() == ["polite", "wrong_fact", "welcome"]
    done = call(lead, **body, reason="Another key")
    assert (done.status_code, done.json()["new"]) == (201, ["kind"])
    assert done.json()["carrying"] == dry.json()["carrying"]
    assert dry.json()["carrying"][0]["labels"] == {"carried": 120, "conflicts": 0}
    chats = {"carried": 40, "excluded": 0, "one_only": 0, "unresolved": 0}
    assert (dry.json()["carrying"][0]["chats"], dry.json()["carrying"][0]["differing"]) == (chats, 0)
    assert dry.json()["carrying"][0]["adjudications"] == {"carried": 0, "conflicts": 0}
    assert dry.json()["adjudications"] == 0


def test_the_api_names_the_field_of_a_refusal(lead: Client, compared: Compared) -> None:
    twice = [QUESTION, QUESTION]
    assert call(lead, kind="split", into=twice, reason="x").json() == {
        "into[1].key": ["'kind' appears twice"]
    }
    carrying = QUESTION | {"carries": ["polite"]}
    assert "same_answers" in call(lead, kind="replace", into=[carrying], reason="x").json()
    assert call(lead, kind="retire").json() == {"reason": ["is missing"]}
    assert call(lead, kind="merge", others=["nobody"], into=[QUESTION], reason="x").json() == {
        "others": ["no criterion 'nobody'"]
    }


def test_over_the_api_it_is_brought_back_too(lead: Client, compared: Compared) -> None:
    assert call(lead, kind="bring_back", reason="x").json() == {"kind": ["polite is not retired"]}
    call(lead, kind="retire", reason="Unused")
    assert call(lead, kind="bring_back", reason="x", dry_run=True).status_code == 200
    assert polite().state == "retired"
    assert call(lead, kind="bring_back", reason="After all").status_code == 201
    assert polite().state == "active"


def test_authors_read_where_a_criterion_comes_from(lead: Client, author: Client, compared: Compared) -> None:
    call(lead, kind="merge", others=["welcome"], into=[QUESTION], reason="The same")
    old = author.get("/api/criteria/polite/lineage/").json()
    new = author.get("/api/criteria/kind/lineage/").json()
    assert (old["state"], old["made_of"], old["retired"]["by"]) == ("retired", None, "ines")
    assert old["became"] == [new["made_of"]]
    assert new["made_of"]["olds"] == [
        {"key": "polite", "labels_carried": False},
        {"key": "welcome", "labels_carried": False},
    ]
    assert (new["made_of"]["new"], new["made_of"]["reason"]) == (["kind"], "The same")


def test_lineage_is_shown_on_the_criterions_pages_and_in_the_list(lead: Client, compared: Compared) -> None:
    into = [QUESTION | {"carries": ["polite"]}]
    call(lead, kind="merge", others=["welcome"], into=into, reason="Same", same_answers=True)
    old = words_of(lead.get("/criteria/polite/"))
    assert "by ines with Welcome into Kind (“Same”)." in old
    assert "Bring back" in old
    assert "“Same”. Labels of Polite carried over." in words_of(lead.get("/criteria/kind/"))
    assert "Polite Test rubric Is polite so? Replaced by Kind" in words_of(lead.get("/criteria/"))


def test_retiring_and_bringing_back_stand_in_the_history_of_the_page_and_the_api(
    lead: Client, author: Client, compared: Compared
) -> None:
    assert "History" not in words_of(lead.get("/criteria/polite/"))
    call(lead, kind="retire", reason="Unused")
    call(lead, kind="bring_back", reason="After all")
    page = words_of(author.get("/criteria/polite/"))
    history = page[page.index("History") :]
    assert history.index("Brought back") < history.index("After all") < history.index("Unused")
    assert history.count(", ines") == 2
    assert "Retired on" not in page
    rows = author.get("/api/criteria/polite/lineage/").json()["history"]
    assert [(row["kind"], row["reason"], row["by"]) for row in rows] == [
        ("bring_back", "After all", "ines"),
        ("retire", "Unused", "ines"),
    ]
    call(lead, kind="merge", others=["welcome"], into=[QUESTION], reason="Same")
    newest = author.get("/api/criteria/polite/lineage/").json()["history"][0]
    assert (newest["kind"], newest["others"], newest["new"]) == ("merge", ["welcome"], ["kind"])
    assert "Merged with Welcome into Kind" in words_of(author.get("/criteria/polite/"))
    assert "Made from Polite and Welcome" in words_of(author.get("/criteria/kind/"))


def test_three_names_are_listed_with_a_comma_and_an_and(lead: Client, compared: Compared) -> None:
    three = PAGE + "?kind=merge&others=welcome&others=wrong_fact"
    question = asked(0, "kind")
    names = "Polite, Wrong fact and Welcome"
    seen = words_of(lead.post(three, form("preview", question)))
    assert f"Merge {names}" in seen
    assert f"What happens to {names}" in seen
    word = {"reason": "The same", "same_answers": "on"}
    done = lead.post(three, form("confirm", question, **word), follow=True)
    assert f"{names} are merged into Kind" in words_of(done)
    assert "with Polite and Welcome into Kind" in words_of(lead.get("/criteria/wrong_fact/"))
    assert "Made from Polite , Wrong fact and Welcome on" in words_of(lead.get("/criteria/kind/"))
