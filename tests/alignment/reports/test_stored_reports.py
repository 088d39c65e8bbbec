"""A stored report: the same link shows the same results to users who may see them."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db.models import F
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from alignment.models.reports import Report
from evaluation.models.judges import Judge, JudgePrompt
from evaluation.models.runs import Run
from labeling.consensus.services.consensus import consensus_refresh
from labeling.jobs.services import job_open
from labeling.models.chats import Chat, ChatSet, ChatSetMember, Topic
from labeling.models.labels import Consensus, Label
from labeling.models.people import Rater, Role, User
from labeling.models.rubric import Criterion, CriterionVersion, Dimension
from labeling.people.services.roles import rater_for
from tests.factories.compared_runs import SPLITS, Compared, add_chats, text_of, urls
from tests.factories.prompt_versions import a_version, promote, run_of
from tests.factories.rater_quality import polite
from tests.factories.rows import make_set, make_user
from tests.factories.stored_reports import page_of, status, stored

pytestmark = pytest.mark.django_db

CHANGED = "have changed since"


def document(client: Client, number: int) -> dict[str, Any]:
    found: dict[str, Any] = client.get(reverse("api_stored_report", args=[number])).json()
    return found


def words_without_notice(client: Client, number: int) -> str:
    """Return the main part of the page without the notice of later changes."""
    text = text_of(client.get(page_of(number))).split("<main", 1)[1].split("</main>")[0]
    return " ".join(re.sub(r'<p class="since">.*?</p>', "", text, flags=re.S).split())


# ---------- what is pinned ----------


def test_the_live_page_leads_to_its_numbers_and_the_api_names_them(compared: Compared, lead: Client) -> None:
    number = stored(lead, compared)
    assert page_of(number) in text_of(lead.get(urls(compared)["report"]))
    table = reverse("alignment:report_table_run", args=[compared.run.pk])
    assert table in text_of(lead.get(urls(compared)["report"]))
    live, kept = lead.get(urls(compared)["api_run"]).json(), document(lead, number)
    assert kept.pop("pin") == Report.objects.get(pk=number).pin
    assert kept == live


def test_a_run_that_goes_on_has_no_such_link(compared: Compared, lead: Client) -> None:
    Run.objects.update(finished_at=None)
    assert lead.get(urls(compared)["api_run"]).json()["id"] is None
    page = text_of(lead.get(urls(compared)["report"]))
    assert "Shared report to link" not in page and "/share/" not in page


def test_it_names_texts_prompts_judge_models_and_settings(compared: Compared, lead: Client) -> None:
    version = a_version(polite())
    run = run_of(version, compared.chat_set, config={"formatter": "small-model"})
    body = lead.post(reverse("api_run_report", args=[run.pk])).json()
    pinned = body["pinned"]
    (criterion,) = pinned["criteria"]
    text = polite().versions.get()
    assert criterion == {
        "key": "polite",
        "name": "Polite",
        "dimension": "Compliance",
        "critical": False,
        "texts": [{"version": 1, "question": "Is polite so?", "hash": text.content_hash}],
        "prompt": {"version": version.number, "hash": version.content_hash},
    }
    assert (pinned["judge"]["reasoning_model"], pinned["judge"]["formatter_model"]) == (
        "judge-model",
        "small-model",
    )
    assert {"term": "Samples", "value": "1", "detail": ""} in pinned["judge"]["settings"]
    shown = text_of(lead.get(page_of(body["id"])))
    for said in (version.content_hash[:12], run.judge.fingerprint, "small-model", pinned["answers"]):
        assert said in shown


def test_of_an_imported_judge_it_says_that_prompts_are_not_known(compared: Compared, lead: Client) -> None:
    assert "Unknown: the verdicts were imported" in text_of(lead.get(page_of(stored(lead, compared))))


def test_it_names_the_software_and_opens_where_an_older_one_does_not(
    compared: Compared, lead: Client, settings: Settings
) -> None:
    number, said = stored(lead, compared), "{name} {version}".format(**settings.SOFTWARE)
    assert document(lead, number)["pinned"]["software"] == settings.SOFTWARE
    assert said in text_of(lead.get(page_of(number)))
    row = Report.objects.get(pk=number)
    row.body["pinned"].pop("software")
    row.body["pinned"]["form"] = 7
    row.save()
    assert status(lead, number) == 200
    assert said not in text_of(lead.get(page_of(number)))


def test_every_question_that_judge_or_labels_answer_is_named_once(compared: Compared, lead: Client) -> None:
    newer = {"question": "Was it kind?", "definition": "D.", "content_hash": "n"}
    second = CriterionVersion.objects.create(criterion=polite(), number=2, **newer)
    CriterionVersion.objects.create(criterion=polite(), number=3, **newer)
    version = a_version(polite())
    JudgePrompt.objects.create(
        judge=compared.run.judge,
        criterion=polite(),
        criterion_version=second,
        prompt_version=version,
        group=0,
    )
    body = lead.post(urls(compared)["api_run"]).json()
    named = next(row["texts"] for row in body["pinned"]["criteria"] if row["key"] == "polite")
    assert [text["version"] for text in named] == [2, 1]
    shown = text_of(lead.get(page_of(body["id"])))
    assert "Was it kind?" in shown and "Is polite so?" in shown


def test_the_answers_hash_moves_with_an_answer_and_with_nothing_else(
    compared: Compared, lead: Client
) -> None:
    def answers() -> str:
        hashed: str = document(lead, stored(lead, compared))["pinned"]["answers"]
        return hashed

    before = answers()
    Run.objects.update(finished_at=timezone.now())
    ChatSet.objects.update(name="renamed")
    assert answers() == before
    turn(compared, "chat-1")
    assert answers() != before


# ---------- it stays ----------


def turn(compared: Compared, chat: str) -> None:
    """Turn the human answer on `polite` round on this chat."""
    for label in Label.objects.filter(chat__external_id=chat, criterion=polite()):
        Label.objects.filter(pk=label.pk).update(value=not label.value)
    consensus_refresh(criterion_ids=[polite().pk], chat_ids=[Chat.objects.get(external_id=chat).pk])


def a_new_label(compared: Compared) -> None:
    turn(compared, "chat-1")


def a_new_text(compared: Compared) -> None:
    CriterionVersion.objects.create(
        criterion=polite(), number=2, question="Something else?", definition="D.", content_hash="other"
    )


def a_new_name_of_the_set(compared: Compared) -> None:
    ChatSet.objects.update(name="renamed")


def a_new_name_of_the_dimension(compared: Compared) -> None:
    Dimension.objects.update(name="Renamed")


def another_tier(compared: Compared) -> None:
    Criterion.objects.update(tier="subjective", critical=True)


CHANGES = [a_new_label, a_new_text, a_new_name_of_the_set, a_new_name_of_the_dimension, another_tier]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("page", ["api_run", "api_set"])
def test_the_same_link_shows_the_same_and_says_that_it_is_not_todays(
    compared: Compared, lead: Client, change: Any, page: str
) -> None:
    number = stored(lead, compared, page=page)
    before, shown = document(lead, number), words_without_notice(lead, number)
    assert CHANGED not in text_of(lead.get(page_of(number)))
    change(compared)
    assert document(lead, number) == before
    assert words_without_notice(lead, number) == shown
    assert CHANGED in text_of(lead.get(page_of(number)))
    newer = stored(lead, compared, page=page)
    assert newer != number
    assert CHANGED not in text_of(lead.get(page_of(newer)))


def test_a_retired_criterion_stays_on_the_sheet(compared: Compared, lead: Client) -> None:
    number = stored(lead, compared, page="api_set")
    shown = words_without_notice(lead, number)
    Criterion.objects.filter(key="welcome").update(state=Criterion.State.RETIRED)
    assert words_without_notice(lead, number) == shown
    assert "Welcome" in shown
    assert CHANGED in text_of(lead.get(page_of(number)))


def test_names_that_no_figure_depends_on_stay_as_well(compared: Compared, lead: Client) -> None:
    """Of the judge, of a topic, of who labelled; a new prompt is of other runs."""
    number = stored(lead, compared, "?topic=delivery&against=rater%3Acleo")
    before, shown = document(lead, number), words_without_notice(lead, number)
    Judge.objects.update(name="another name", config={"model": "another"})
    Topic.objects.update(name="Another name")
    Rater.objects.filter(name="cleo").update(kind=Rater.Kind.DEMO)
    promote(a_version(polite()))
    assert (document(lead, number), words_without_notice(lead, number)) == (before, shown)
    assert "Delivery" in shown and "outside judge" in shown


def test_the_part_stays_in_the_way_to_the_live_report(compared: Compared, lead: Client) -> None:
    Chat.objects.update(started_at=timezone.now())
    query = f"?split=dev&against=rater%3Acleo&topic=delivery&since={timezone.now():%Y-%m-%d}"
    shown = text_of(lead.get(page_of(stored(lead, compared, query))))
    assert urls(compared)["report"] + query.replace("&", "&amp;") in shown


def test_rows_that_do_not_say_what_they_are_of_and_other_documents_have_no_page(
    compared: Compared, lead: Client
) -> None:
    number = stored(lead, compared)
    row = Report.objects.get(pk=number)
    Report.objects.filter(pk=number).update(kind=Report.Kind.BASELINES)
    assert status(lead, number) == 404
    body = {name: value for name, value in row.body.items() if name != "pinned"}
    Report.objects.filter(pk=number).update(kind=Report.Kind.REPORT, body=body)
    assert status(lead, number) == 404


# ---------- who may open it ----------


def test_it_is_for_those_who_see_the_judge(compared: Compared, lead: Client, author: Client) -> None:
    number, rater = stored(lead, compared), Client()
    rater.force_login(make_user("mara", Role.RATER))
    assert [status(client, number) for client in (lead, author, rater)] == [200, 200, 404]


def test_what_an_author_tried_is_there_for_who_finds_the_run(compared: Compared, author: Client) -> None:
    number, other = stored(author, compared), Client()
    other.force_login(make_user("ada", Role.AUTHOR))
    Run.objects.update(purpose=Run.Purpose.TRY, started_by=User.objects.get(username="ada"))
    assert [status(client, number) for client in (other, author)] == [200, 404]


def few_held_out(*, chats: int) -> None:
    """So many chats are held out."""
    kept = ChatSetMember.objects.filter(split="holdout").values_list("pk", flat=True)[:chats]
    ChatSetMember.objects.filter(split="holdout").exclude(pk__in=list(kept)).update(split="dev")


def test_figures_over_ten_holdout_chats_are_shown_over_nine_not(
    compared: Compared, lead: Client, author: Client
) -> None:
    ten = stored(lead, compared)
    assert status(author, ten) == 200
    few_held_out(chats=9)
    assert [status(client, ten) for client in (lead, author)] == [200, 404]


def test_nor_when_there_were_nine_then_and_ten_are_answered_now(
    compared: Compared, lead: Client, author: Client
) -> None:
    held = ChatSetMember.objects.filter(split="holdout").values_list("chat", flat=True)
    gone = Consensus.objects.filter(chat=held[0], criterion=polite())
    state = gone.values_list("state", flat=True)[0]
    gone.update(state="unresolved")
    nine = stored(lead, compared)
    own = stored(author, compared)
    assert (nine != own, status(author, nine), status(author, own)) == (True, 404, 200)
    Consensus.objects.filter(chat=held[0], criterion=polite()).update(state=state)
    Criterion.objects.update(labels_seq=F("labels_seq") + 1)
    # Today's figures are told; those of nine are not, and what the author was told then stays.
    assert author.get(urls(compared)["api_run"]).json()["chats"] == 40
    assert [status(author, number) for number in (nine, own)] == [404, 200]


def test_a_part_of_the_holdout_is_hidden_and_the_authors_own_part_is_shown(
    compared: Compared, lead: Client, author: Client
) -> None:
    topic = Topic.objects.create(key="refund", name="Refund")
    Chat.objects.filter(external_id__in=[f"chat-{n}" for n in range(1, 31)]).update(topic=topic)
    leads, authors = (stored(client, compared, "?topic=refund") for client in (lead, author))
    assert leads != authors
    assert [status(author, number) for number in (leads, authors)] == [404, 200]
    assert [status(lead, number) for number in (leads, authors)] == [200, 200]
    shown = text_of(author.get(page_of(authors)))
    assert "fewer than 10 holdout chats: only leads see their results" in shown.lower()


def test_a_chat_added_to_the_holdout_since_is_not_disclosed_by_the_difference(
    compared: Compared, lead: Client, author: Client
) -> None:
    number = stored(lead, compared, "?split=dev")
    assert status(author, number) == 200
    make_set(compared.rubric, compared.chat(1), name="gold", split="holdout")
    assert author.get(urls(compared)["api_run"] + "?split=dev").json()["chats"] == 19
    assert [status(client, number) for client in (lead, author)] == [200, 404]


def test_a_link_stays_when_the_set_has_grown(compared: Compared, lead: Client, author: Client) -> None:
    ChatSetMember.objects.update(split="dev")
    number = stored(author, compared, page="api_set")
    add_chats(compared, to=44)
    ChatSetMember.objects.update(split="dev")
    assert status(author, number) == 200
    assert document(author, number)["chats"] == 40


@pytest.fixture
def both(compared: Compared) -> Iterator[Client]:
    """A lead with chats of the set still to label."""
    user, client = make_user("both", Role.LEAD, Role.RATER), Client()
    client.force_login(user)
    job_open(
        chat_set=compared.chat_set,
        name="June",
        criteria=compared.criteria,
        raters=[rater_for(user=user)],
        overlap=1,
        by=None,
    )
    yield client


def test_who_is_still_to_label_chats_of_it_finds_the_whole_alone(
    compared: Compared, lead: Client, author: Client, both: Client
) -> None:
    whole, part = stored(lead, compared), stored(lead, compared, "?topic=delivery")
    without = stored(author, compared, "?topic=delivery")
    assert [status(both, number) for number in (whole, part, without)] == [200, 404, 404]
    few_held_out(chats=9)
    assert [status(both, number) for number in (whole, stored(author, compared))] == [200, 404]


def test_its_json_lists_no_disagreement_on_chats_that_one_may_not_see(
    compared: Compared, lead: Client, author: Client
) -> None:
    number = stored(lead, compared)
    listed = {row["chat_id"] for row in document(author, number)["disagreements"]}
    held = {f"chat-{n}" for n in range(1, 41) if SPLITS[n % 4] == "holdout"}
    assert listed and not listed & held
    assert {row["chat_id"] for row in document(lead, number)["disagreements"]} & held
