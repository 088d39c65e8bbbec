"""Chats without a verdict count against a judge, except those of a run that has not ended."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from alignment.comparison.core.codes import CriterionData, JudgeCode
from alignment.comparison.queries.scope import Scope
from alignment.reports.core.missing_verdicts import missing_verdicts
from alignment.reports.core.terminal_table import report_table
from alignment.reports.queries.reports import alignment_report
from evaluation.models.runs import Run, Verdict
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import Compared, one_of_each_status
from tests.factories.page_text import words_of
from tests.factories.report_data import F, T, criterion, pairs, report
from tests.files import chat, label, rubric, run, verdict, write_json, write_jsonl
from tests.files import criterion as a_criterion

CHATS, WRONG = 400, 178


def shown_criteria(client: Client, compared: Compared) -> list[dict[str, Any]]:
    page = client.get(reverse("alignment:report_run", args=[compared.run.pk]))
    found: list[dict[str, Any]] = page.context["report"]["criteria"]
    return found


def entry_of(data: CriterionData) -> dict[str, Any]:
    found: dict[str, Any] = report(data)["criteria"][0]
    return found


@pytest.mark.parametrize("code", [JudgeCode.NONE, JudgeCode.FAILED, JudgeCode.NA])
def test_a_judge_is_not_aligned_by_what_it_does_not_answer(code: JudgeCode) -> None:
    human, judge = pairs(111, 0, 0, 111)
    entry = entry_of(criterion(human + [T] * 89 + [F] * 89, [*judge, *[code] * 178]))
    assert (entry["accuracy"]["value"], entry["status"]) == (1.0, "not_aligned")
    assert entry["reasons"] == [
        f"the judge gave no True or False on 89 of 200 chats with a human {answer}"
        for answer in ("True", "False")
    ]


def test_a_criterion_without_any_verdict_says_so() -> None:
    entry = entry_of(criterion([T] * 60 + [F] * 60, [JudgeCode.NONE] * 120))
    assert (entry["n"], entry["no_verdict"], entry["without_verdict"]) == (0, 120, 120)
    assert entry["status"] == "not_enough_labels"
    assert entry["reasons"][0] == "verdicts on 0 of 60 chats with a human True: 30 needed"


def test_a_notice_names_the_criteria_with_most_chats_missing() -> None:
    rows = [{"key": f"c{n}", "without_verdict": n} for n in range(6)]
    assert missing_verdicts(rows, chats=40) == [
        "5 of 40 chats have no verdict on c5, 4 on c4, 3 on c3, fewer on 2 more criteria"
    ]
    assert missing_verdicts([{"key": "polite"}, {"key": "kind", "without_verdict": 0}], chats=40) == []


@pytest.mark.django_db
def test_a_file_that_omits_what_the_judge_had_wrong_is_found_out(tmp_path: Path, lead: Client) -> None:
    keys = ("polite", "refund")
    run("import_rubric", write_json(tmp_path / "r.json", rubric(*(a_criterion(key) for key in keys))))
    names = [str(n) for n in range(CHATS)]
    run("import_chats", write_jsonl(tmp_path / "c.jsonl", *map(chat, names)), "--set", "s")
    labels = [label(name, key, value=int(name) % 2 == 0) for name in names for key in keys]
    run("import_labels", write_jsonl(tmp_path / "l.jsonl", *labels))
    said = [verdict(name, "polite", value=int(name) % 2 == 0) for name in names[WRONG:]]
    imported = run("import_verdicts", write_jsonl(tmp_path / "v.jsonl", *said), "--set", "s").document
    (number,) = [one["id"] for one in imported["runs"]]
    answered = run("alignment_report", "--run", number)
    polite, refund = answered.document["criteria"]
    assert (polite["status"], polite["accuracy"]["value"]) == ("not_aligned", 1.0)
    # The judge has no verdict on this labelled criterion.
    assert (refund["key"], refund["n"], refund["no_verdict_by"]) == ("refund", 0, {"none": CHATS})
    refund_name, polite_name = (Criterion.objects.get(key=key).name for key in ("refund", "polite"))
    notice = f"400 of 400 chats have no verdict on {refund_name}, 178 on {polite_name}"
    pages = [reverse("alignment:report_run", args=[number]), f"/reports/{answered.document['id']}/"]
    for page in pages:
        assert notice in lead.get(page).content.decode()
    of_one = lead.get(reverse("alignment:criterion_report", args=[number, "polite"]))
    assert "178 of 400 chats have no verdict<" in of_one.content.decode()
    assert f"Note: {notice}." in report_table(answered.document).splitlines()


@pytest.mark.django_db
def test_an_unlabelled_criterion_without_a_verdict_stays_out(tmp_path: Path) -> None:
    keys = ("polite", "refund")
    run("import_rubric", write_json(tmp_path / "r.json", rubric(*(a_criterion(key) for key in keys))))
    run("import_chats", write_jsonl(tmp_path / "c.jsonl", chat("1")), "--set", "s")
    run("import_labels", write_jsonl(tmp_path / "l.jsonl", label("1", "polite", value=True)))
    said = write_jsonl(tmp_path / "v.jsonl", verdict("1", "polite", value=True))
    imported = run("import_verdicts", said, "--set", "s").document
    (number,) = [one["id"] for one in imported["runs"]]
    entries = run("alignment_report", "--run", number).document["criteria"]
    assert [entry["key"] for entry in entries] == ["polite"]


@pytest.mark.parametrize("against", ["consensus", "each-rater"])
def test_a_run_that_has_not_ended_says_how_many_chats_it_has_not_judged(against: str) -> None:
    human, judge = pairs(95, 5, 5, 95)
    late = replace(criterion(human + [T] * 200, [*judge, *[JudgeCode.NONE] * 200]), complete=False)
    (entry,) = report(late, against=against)["criteria"]
    assert entry["not_judged_yet"] == 200
    assert entry["cautions"][0] == "200 of 400 chats not judged yet: the figures may change"
    assert entry["status"] == ("aligned" if against == "consensus" else None)
    (ended,) = report(replace(late, complete=True), against=against)["criteria"]
    assert ended["not_judged_yet"] == 0
    assert not any("not judged yet" in words for words in ended["cautions"])
    (human_only,) = report(criterion(human, None))["criteria"]
    assert human_only["not_judged_yet"] is None


@pytest.mark.django_db
def test_the_report_of_an_unfinished_run_says_so_at_the_top(compared: Compared, lead: Client) -> None:
    one_of_each_status(compared)
    Verdict.objects.filter(run=compared.run, chat__external_id__endswith="12").delete()
    kept = Verdict.objects.filter(run=compared.run, criterion__key="polite").count()
    Run.objects.update(state=Run.State.RUNNING, finished_at=None, purpose=Run.Purpose.EVALUATION)
    words = f"{140 - kept} of 140 chats not judged yet"
    for page in ("report_run", "criterion_report"):
        args = [compared.run.pk, "polite"][: 1 if page == "report_run" else 2]
        shown = lead.get(reverse(f"alignment:{page}", args=args))
        assert words in str(shown.context["notices"])
        assert words in words_of(shown)
    (row,) = [row for row in shown_criteria(lead, compared) if row["status"] == "aligned"]
    assert row["next_steps"][0].words == "wait until the run has ended"
    body = lead.get(reverse("api_run_report", args=[compared.run.pk])).json()
    assert body["pinned"]["notices"] == [words]
    assert f"Note: {words}." in report_table(body).splitlines()
    Run.objects.update(state=Run.State.DONE, finished_at=compared.run.created_at)
    body = lead.get(reverse("api_run_report", args=[compared.run.pk])).json()
    assert body["pinned"]["notices"] == []


@pytest.mark.django_db
@pytest.mark.parametrize("state", [Run.State.RUNNING, Run.State.PAUSED])
def test_the_verdicts_that_a_run_still_owes_do_not_count_against_it(
    compared: Compared, lead: Client, state: Run.State
) -> None:
    one_of_each_status(compared)
    late = Verdict.objects.filter(run=compared.run, chat__external_id__endswith="2")
    late.delete()
    Run.objects.update(state=state, finished_at=None, purpose=Run.Purpose.EVALUATION)
    compared.run.refresh_from_db()
    entries = alignment_report(Scope(compared.chat_set, compared.run))["criteria"]
    assert entries[0]["unjudged"]["false"] > 0
    for entry in entries:
        assert not any("gave no True or False" in words for words in entry["reasons"] + entry["cautions"])
        assert f"{entry['not_judged_yet']} of 140 chats not judged yet" in entry["cautions"][0]
    page = lead.get(reverse("alignment:report_run", args=[compared.run.pk])).content.decode()
    assert "have no verdict" not in page
    Run.objects.update(state=Run.State.CANCELLED, finished_at=compared.run.created_at)
    compared.run.refresh_from_db()
    polite = alignment_report(Scope(compared.chat_set, compared.run))["criteria"][0]
    assert polite["not_judged_yet"] == 0
    assert any("gave no True or False" in words for words in polite["reasons"])
