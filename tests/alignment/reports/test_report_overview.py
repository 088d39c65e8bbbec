"""The overview of a report: the run it shows, the filters in its address, and the rows with next steps."""

import re
from datetime import UTC, datetime
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from evaluation.models.judges import Judge, JudgePrompt
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run, RunChat, Verdict
from labeling.models.chats import Chat, ChatSet
from labeling.models.labels import Consensus, Label
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import Compared, add_chats, text_of, urls
from tests.factories.page_text import words_of
from tests.factories.stored_reports import forget_documents

pytestmark = pytest.mark.django_db

LIST = reverse("alignment:report_list")


def copied(compared: Compared, engine: str, *, prompts: list[PromptVersion]) -> Run:
    """Another finished run over the same chats, by a judge of this engine that asks these prompts."""
    number = Judge.objects.count()
    config = {"model": "large", "groups": [{"engine": engine}]}
    judge = Judge.objects.create(
        fingerprint=f"{number:064}", name=f"judge {number}", engine=engine, config=config
    )
    for prompt in prompts:
        JudgePrompt.objects.create(
            judge=judge,
            criterion=prompt.criterion,
            criterion_version=prompt.criterion.versions.latest("number"),
            prompt_version=prompt,
            group=0,
        )
    run = Run.objects.create(
        judge=judge,
        chat_set=compared.chat_set,
        state=Run.State.DONE,
        finished_at=timezone.now(),
    )
    chats = RunChat.objects.filter(run=compared.run)
    RunChat.objects.bulk_create(RunChat(run=run, chat=row.chat, split=row.split) for row in chats)
    return run


@pytest.fixture
def versions(compared: Compared) -> list[PromptVersion]:
    """Two versions of the prompt of one criterion."""
    polite = Criterion.objects.get(key="polite")
    return [
        PromptVersion.objects.create(
            criterion=polite, number=n, text=f"# Objective\n{n}", content_hash=str(n)
        )
        for n in (1, 2)
    ]


def opened(client: Client, **query: Any) -> str:
    response = client.get(LIST, {"run": ""} | query)
    assert response.status_code == 302
    return str(response["Location"])


def report_of(run: Run) -> str:
    return reverse("alignment:report_run", args=[run.pk])


def row_of(client: Client, compared: Compared, key: str, query: str = "") -> dict[str, Any]:
    rows = client.get(urls(compared)["report"] + query).context["report"]["criteria"]
    found: dict[str, Any] = next(row for row in rows if row["key"] == key)
    return found


# ---------- which run ----------


def test_the_newest_run_that_fits_is_shown_and_the_address_holds_what_was_asked(
    compared: Compared, lead: Client, versions: list[PromptVersion]
) -> None:
    old = copied(compared, "debate", prompts=versions[:1])
    new = copied(compared, "debate", prompts=versions[1:])
    copied(compared, "direct", prompts=versions[1:])
    asked = {"set": compared.chat_set.pk, "engine": "debate"}
    assert opened(lead, **asked, split="dev", topic="delivery", against="rater:cleo") == (
        f"{report_of(new)}?engine=debate&split=dev&against=rater%3Acleo&topic=delivery"
    )
    rows = lead.get(LIST).context["runs"]
    version = next(row["version"] for row in rows if row["row"].id == old.pk).split(", ")[1]
    assert opened(lead, **asked, version=version) == f"{report_of(old)}?engine=debate&version={version}"
    assert lead.get(opened(lead, **asked, version=version)).status_code == 200


def test_a_run_that_is_chosen_is_kept_where_it_fits_and_given_up_where_it_does_not(
    compared: Compared, lead: Client, versions: list[PromptVersion]
) -> None:
    first, second = (copied(compared, "debate", prompts=[one]) for one in versions)
    direct = copied(compared, "direct", prompts=versions[:1])
    assert opened(lead, run=first.pk) == report_of(first)
    assert opened(lead, run=first.pk, engine="direct") == f"{report_of(direct)}?engine=direct"
    assert opened(lead, run=direct.pk, engine="debate") == f"{report_of(second)}?engine=debate"


def test_where_no_run_fits_the_list_says_so_and_leads_on(compared: Compared, lead: Client) -> None:
    location = opened(lead, set=compared.chat_set.pk, engine="debate", split="dev")
    assert location == f"{LIST}?set={compared.chat_set.pk}&engine=debate"
    shown = lead.get(location)
    assert shown.context["runs"] == []
    assert "No matching run" in words_of(shown)
    assert "Show all reports" in words_of(shown)


@pytest.mark.parametrize("query", [{"set": "x"}, {"set": "9" * 30}, {"version": "zz"}, {"engine": "zz"}])
def test_nonsense_fits_no_run(compared: Compared, lead: Client, query: dict[str, str]) -> None:
    assert opened(lead, **query).startswith(LIST + "?")


def test_the_list_is_narrowed_by_set_engine_and_version(
    compared: Compared, lead: Client, versions: list[PromptVersion]
) -> None:
    run = copied(compared, "debate", prompts=versions[1:])
    other = ChatSet.objects.create(name="other", rubric=compared.rubric)
    for query in ({"engine": "debate"}, {"engine": "outside"}, {"set": str(other.pk)}):
        rows = lead.get(LIST, query).context["runs"]
        wanted = {"debate": [run.pk], "outside": [compared.run.pk]}.get(query.get("engine", ""), [])
        assert [row["row"].id for row in rows] == wanted


def test_the_report_leads_to_the_same_chats_under_another_engine_and_the_version_before(
    compared: Compared, lead: Client, versions: list[PromptVersion]
) -> None:
    before = copied(compared, "debate", prompts=versions[:1])
    shown = copied(compared, "debate", prompts=versions[1:])
    same = copied(compared, "direct", prompts=versions[1:])
    copied(compared, "direct", prompts=versions[:1])  # newer, but with other prompts
    others = lead.get(report_of(shown) + "?split=dev").context["others"]
    assert [(one["words"], one["url"]) for one in others] == [
        ("direct", f"{report_of(same)}?split=dev"),
        ("outside", f"{urls(compared)['report']}?split=dev"),
        ("previous version", f"{report_of(before)}?split=dev"),
    ]


def test_what_an_author_tried_is_offered_to_nobody(compared: Compared, lead: Client) -> None:
    tried = copied(compared, "debate", prompts=[])
    Run.objects.filter(pk=tried.pk).update(purpose=Run.Purpose.TRY)
    page = lead.get(urls(compared)["report"])
    assert page.context["others"] == []
    assert opened(lead, engine="debate").startswith(LIST)


def test_a_rater_unknown_to_the_other_run_gives_way_to_the_consensus(
    compared: Compared, lead: Client
) -> None:
    Label.objects.filter(rater__name="cleo").delete()
    location = opened(lead, run=compared.run.pk, against="rater:cleo")
    assert location == urls(compared)["report"]
    assert "cleo gave no label on these chats" in words_of(lead.get(location))


@pytest.mark.heavy
def test_the_query_count_does_not_grow_with_runs(
    compared: Compared, lead: Client, versions: list[PromptVersion]
) -> None:
    def queries() -> dict[str, int]:
        found = {}
        for url in (LIST, f"{LIST}?engine=debate", urls(compared)["report"], urls(compared)["set"]):
            lead.get(url)
            with CaptureQueriesContext(connection) as counted:
                lead.get(url)
            found[url] = len(counted)
        return found

    copied(compared, "debate", prompts=versions[1:])
    queries()  # what is kept is there from now on
    few = queries()
    for engine in ("debate", "direct", "auto", "reflection"):
        for prompts in (versions[:1], versions[1:], []):
            copied(compared, engine, prompts=prompts)
    assert queries() == few


# ---------- the address holds it ----------

EIGHT = {
    "engine": "debate",
    "split": "dev",
    "against": "rater:cleo",
    "topic": "delivery",
    "since": "2026-01-01",
    "until": "2026-12-31",
}  # and set and run, which the address names in its path


def followed(client: Client, page: Any, path: str) -> Any:
    """The page behind a link of this one that begins so."""
    links = [unescape(link) for link in re.findall(r'href="([^"#]+)', text_of(page))]
    return client.get(next(link for link in links if link.startswith(path)))


def chosen(page: Any) -> dict[str, str]:
    """The chosen values of the selects and days of a report's page."""
    filters = {row["name"]: row for row in page.context["filters"]}
    days = {name: row["day"].isoformat() for name, row in filters.items() if row.get("day")}
    selects = {name: row["options"] for name, row in filters.items() if "options" in row}
    return days | {
        name: one["value"] for name, options in selects.items() for one in options if one["selected"]
    }


@pytest.mark.parametrize("to", ["cell", "criterion report", "disagreements", "chat"])
def test_all_eight_filters_are_kept_on_the_way_into_a_page_and_back(
    compared: Compared, lead: Client, versions: list[PromptVersion], to: str
) -> None:
    Chat.objects.update(started_at=datetime(2026, 6, 1, tzinfo=UTC))
    run = copied(compared, "debate", prompts=versions[:1])
    Verdict.objects.filter(criterion__key="polite").update(run=run)
    key = next(row["version"] for row in lead.get(LIST).context["runs"] if row["row"].id == run.pk)
    asked = EIGHT | {"version": key.split(", ")[1]}
    report = lead.get(opened(lead, set=compared.chat_set.pk, run=run.pk, **asked))
    stand = asked | {"set": str(compared.chat_set.pk), "run": str(run.pk)}
    assert chosen(report) == stand
    cell = reverse("alignment:cell", args=[run.pk, "polite", "fn"])
    paths = {
        "cell": [cell],
        "criterion report": [reverse("alignment:criterion_report", args=[run.pk, "polite"])],
        "disagreements": [reverse("alignment:disagreements", args=[run.pk])],
        "chat": [cell, f"/runs/{run.pk}/chats/"],
    }
    page = report
    for path in paths[to]:
        page = followed(lead, page, path)
        assert page.status_code == 200
    assert chosen(followed(lead, page, f"{report_of(run)}?")) == stand


def test_the_filters_of_a_criterions_page_keep_what_the_runs_were_narrowed_to(
    compared: Compared, lead: Client
) -> None:
    shown = text_of(lead.get(urls(compared)["criterion report"] + "?engine=outside&version=unknown"))
    for name, value in (("engine", "outside"), ("version", "unknown")):
        assert f'<input type="hidden" name="{name}" value="{value}">' in shown


def test_from_a_sets_report_to_any_run_to_any_set_and_back(
    compared: Compared, lead: Client, versions: list[PromptVersion]
) -> None:
    run = copied(compared, "debate", prompts=versions[:1])
    other = ChatSet.objects.create(name="other", rubric=compared.rubric)
    page = lead.get(urls(compared)["set"] + "?split=dev&engine=debate")
    assert chosen(page) == {
        **{"set": str(compared.chat_set.pk), "engine": "debate", "version": "", "run": "none"},
        **{"split": "dev", "topic": ""},  # and no ground truth, for there is no judge to compare
    }
    offered = next(row["options"] for row in page.context["filters"] if row["name"] == "run")
    assert [one["value"] for one in offered] == ["none", str(run.pk)]
    stand = {"set": compared.chat_set.pk, "engine": "debate", "split": "dev"}
    assert opened(lead, **stand, run=run.pk) == f"{report_of(run)}?engine=debate&split=dev"
    alone = reverse("alignment:report_set", args=[other.pk])
    assert opened(lead, **stand | {"set": other.pk}, run="none") == f"{alone}?engine=debate&split=dev"
    assert opened(lead, **stand, run="none", against="each-rater") == (
        f"{urls(compared)['set']}?engine=debate&split=dev"
    )
    assert opened(lead, run="none", set="x") == f"{LIST}?set=x"


def test_what_a_set_is_narrowed_to_changes_no_figure_and_no_pin(compared: Compared, lead: Client) -> None:
    whole = lead.get(urls(compared)["report"]).context
    narrowed = lead.get(urls(compared)["report"] + "?engine=outside&version=unknown").context
    assert narrowed["report"]["generated_at"] == whole["report"]["generated_at"]
    assert narrowed["report"]["criteria"][0]["tpr"] == whole["report"]["criteria"][0]["tpr"]
    assert narrowed["export_url"] == whole["export_url"]


# ---------- a row ----------


def test_what_a_row_leaves_out_is_named_and_leads_to_all_of_it(compared: Compared, lead: Client) -> None:
    verdicts = Verdict.objects.filter(run=compared.run, criterion__key="polite")
    for place, state in enumerate(("unparsed", "refused", "refused", "failed"), start=1):
        verdicts.filter(chat=compared.chat(place)).update(state=state, value=None)
    tied = Consensus.objects.filter(chat=compared.chat(9), criterion__key="polite")
    tied.update(state=Consensus.State.UNRESOLVED)
    forget_documents()
    row = row_of(lead, compared, "polite")
    assert (row["unresolved"], row["no_verdict_by"], row["other_no_verdict"]) == (
        1,
        {"unparsed": 1, "refused": 2, "failed": 1},
        1,
    )
    shown = text_of(lead.get(urls(compared)["report"]))
    assert "<dt>Refused</dt><dd>2</dd>" in shown
    assert "?tab=excluded#left-polite" in shown and 'id="left-polite"' in shown
    words = [step.words for step in row["next_steps"]]
    assert words[-2:] == ["see why 4 chats have no verdict", "adjudicate 1 unresolved chat"]


def test_next_steps_lead_where_the_reader_may_go(compared: Compared, lead: Client, author: Client) -> None:
    Consensus.objects.filter(chat=compared.chat(9)).update(state=Consensus.State.UNRESOLVED)
    leads, authors = (row_of(client, compared, "polite")["next_steps"] for client in (lead, author))
    assert [f"ask a lead to {step.words}" for step in leads] == [step.words for step in authors]
    assert leads[0].words.startswith("label ")
    assert leads[0].url.startswith(reverse("alignment:label_plan", args=[compared.run.pk]))
    assert f"{reverse('labeling:adjudication_queue')}?criterion=polite" in leads[1].url
    assert [step.url for step in authors] == ["", ""]


def test_labelling_as_many_more_as_the_next_step_says_lifts_the_reason(
    compared: Compared, lead: Client
) -> None:
    def first(to: int) -> tuple[str, str]:
        add_chats(compared, to=to)
        Run.objects.update(finished_at=timezone.now())
        row = row_of(lead, compared, "polite")
        return row["status"], row["next_steps"][0].words

    more = "label {} more chats: {} True and {} False ({} for a status, {} for ±6 points, {} for the gate)"
    assert first(40) == ("not_enough_labels", more.format(20, 10, 10, "20 more", 60, 60))
    assert first(58) == ("not_enough_labels", more.format(2, 1, 1, "2 more", 42, 42))
    words = "label 1 more chat with answer False (1 more for a status, 41 for ±6 points, 41 for the gate)"
    assert first(59) == ("not_enough_labels", words)
    assert first(60)[0] != "not_enough_labels"


def test_where_verdicts_are_missing_and_not_labels_no_label_is_asked_for(
    compared: Compared, lead: Client
) -> None:
    add_chats(compared, to=64)
    Run.objects.update(finished_at=timezone.now())
    Verdict.objects.filter(criterion__key="polite", value=False).update(state="refused", value=None)
    Run.objects.update(finished_at=timezone.now())
    row = row_of(lead, compared, "polite")
    assert row["status"] == "not_enough_labels"
    assert [step.words for step in row["next_steps"]] == [
        f"see why {row['no_verdict']} chats have no verdict"
    ]


def test_chats_that_the_judge_calls_not_applicable_are_to_be_read(compared: Compared, lead: Client) -> None:
    add_chats(compared, to=64)
    Run.objects.update(finished_at=timezone.now())
    Verdict.objects.filter(criterion__key="polite", value=False).update(value=None)
    row = row_of(lead, compared, "polite", "?split=dev")
    step = next(step for step in row["next_steps"] if "not applicable" in step.words)
    assert step.words == f"read {row['judge_not_applicable']} chats with the verdict not applicable"
    assert step.url == f"/reports/runs/{compared.run.pk}/criteria/polite/?split=dev#matrix"


def test_a_criterion_that_is_not_aligned_leads_to_its_triage(compared: Compared, lead: Client) -> None:
    add_chats(compared, to=140)
    Run.objects.update(finished_at=timezone.now())
    Verdict.objects.filter(criterion__key="polite").update(value=True)
    row = row_of(lead, compared, "polite")
    assert row["status"] == "not_aligned"
    assert row["next_steps"][-2].words == "triage 70 disagreements"
    assert row["next_steps"][-2].url == (
        f"{reverse('alignment:misalignment_list')}?criterion=polite&run={compared.run.pk}"
    )
    one = row_of(lead, compared, "polite", "?against=rater%3Aanna")
    assert one["next_steps"][-2].url == "#c-polite"  # misalignments are kept against the consensus


def test_every_figure_of_the_plot_is_in_the_table_of_numbers(compared: Compared, lead: Client) -> None:
    page = lead.get(urls(compared)["report"])
    shown = text_of(page)
    table = shown[shown.index('id="numbers"') :]
    table = table[: table.index("</table>")]
    row = next(row for row in page.context["report"]["criteria"] if row["key"] == "polite")
    for figure in (row["balanced_accuracy"], row["tpr"], row["tnr"], row["human"]["ceiling"]):
        assert f"{figure['low']:.2f}–{figure['high']:.2f}" in table
    assert "Human ceiling" in shown
