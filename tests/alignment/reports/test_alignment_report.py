"""One report for command, page and API: ground truths, and when it is computed again."""

from collections import Counter
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from alignment.models.reports import Report
from evaluation.models.runs import Run, Verdict
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion
from tests.factories.compared_runs import HUMAN, JUDGE, RATERS, SPLITS, Compared, cell, says
from tests.files import decision, label, refused, run, write_jsonl

pytestmark = pytest.mark.django_db

INTERVALS = {
    *("accuracy", "balanced_accuracy", "tpr", "tnr", "precision"),
    *("f1", "mcc", "kappa", "gwet_ac1", "pabak"),
}
COUNTS = {
    *("n", "human_true", "unlabelled", "unresolved", "not_applicable"),
    *("no_verdict", "no_verdict_by", "judge_not_applicable", "confusion"),
}
CRITERION = {
    *("key", "dimension", "tier", "passes_when", "human", "pass_rate", "status", "reasons"),
    *COUNTS,
    *INTERVALS,
}
HUMAN_SIDE = {
    *("raters", "overlap", "percent_agreement"),
    *("fleiss_kappa", "krippendorff_alpha", "gwet_ac1"),
}
REPORT = {
    *("run", "set", "split", "against", "judge", "chats", "generated_at", "criteria"),
    *("dimensions", "tiers", "overall", "disagreements", "disagreements_total"),
}


def report_of(compared: Compared, *options: str) -> dict[str, Any]:
    return run("alignment_report", "--run", compared.run.pk, *options).document


def entry(report: dict[str, Any], key: str) -> dict[str, Any]:
    return next(row for row in report["criteria"] if row["key"] == key)


def pages(client: Client, compared: Compared, query: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
    """The report behind the page, and the API's."""
    page = client.get(reverse("alignment:report_run", args=[compared.run.pk]) + query)
    api = client.get(reverse("api_run_report", args=[compared.run.pk]) + query)
    assert (page.status_code, api.status_code) == (200, 200)
    shown: dict[str, Any] = page.context["report"]
    return shown, api.json()


# ---------- one document ----------


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("", []),
        ("?split=dev", ["--split", "dev"]),
        ("?against=each-rater", ["--against", "each-rater"]),
        ("?against=rater%3Acleo&split=train", ["--against", "rater:cleo", "--split", "train"]),
    ],
)
def test_command_page_and_api_give_one_document(
    query: str, options: list[str], compared: Compared, client: Client, lead_user: User
) -> None:
    client.force_login(lead_user)
    command = report_of(compared, *options)
    page, api = pages(client, compared, query)
    assert command == api
    assert {name: page[name] for name in api if name != "criteria"} == {
        name: api[name] for name in api if name != "criteria"
    }
    for shown, sent in zip(page["criteria"], api["criteria"], strict=True):
        assert {name: shown[name] for name in sent} == sent
    assert Report.objects.filter(kind=Report.Kind.REPORT).count() == 1


def test_every_contracted_key_is_there(compared: Compared) -> None:
    report = report_of(compared)
    assert set(report) >= REPORT
    assert set(report["judge"]) == {"name", "fingerprint", "engine", "model"}
    for row in report["criteria"]:
        assert set(row) >= CRITERION
        assert set(row["confusion"]) == {"tp", "fn", "fp", "tn"}
        assert set(row["human"]) >= HUMAN_SIDE
        assert set(row["pass_rate"]) == {"human", "judge", "judge_corrected"}
        for name in INTERVALS:
            assert {"value", "low", "high"} <= set(row[name])
    for group in (*report["dimensions"], *report["tiers"]):
        assert {"key", "n", "accuracy", "balanced_accuracy"} <= set(group)
    assert {"n", "accuracy", "balanced_accuracy"} <= set(report["overall"])
    assert [row["key"] for row in report["tiers"]] == ["simple"]
    assert {row["key"] for row in report["dimensions"]} == {"compliance", "answer_correctness"}


def test_the_counts_are_those_of_the_labels_and_verdicts(compared: Compared) -> None:
    report = report_of(compared)
    assert (report["run"], report["set"], report["split"]) == (compared.run.pk, "calibration", None)
    assert (report["against"], report["chats"]) == ("consensus", 40)
    for row in report["criteria"]:
        cells = Counter(cell(row["key"], n) for n in range(1, 41))
        assert row["confusion"] == {name: cells[name] for name in ("tp", "fn", "fp", "tn")}
        assert (row["n"], row["human_true"]) == (40, sum(HUMAN[row["key"]](n) for n in range(1, 41)))
    differing = [
        {"chat_id": f"chat-{n}", "criterion": key, "human": HUMAN[key](n), "judge": JUDGE[key](n)}
        for n in range(1, 41)
        for key in HUMAN
        if HUMAN[key](n) != JUDGE[key](n)
    ]
    assert report["disagreements_total"] == len(differing)
    listed = {(row["chat_id"], row["criterion"]): row for row in report["disagreements"]}
    assert listed == {(row["chat_id"], row["criterion"]): row for row in differing}
    places = [int(row["chat_id"].removeprefix("chat-")) for row in report["disagreements"]]
    assert places == sorted(places)


def test_the_terminal_table_names_every_criterion(compared: Compared) -> None:
    call_command("alignment_report", "--run", str(compared.run.pk), stdout=(out := StringIO()))
    lines = out.getvalue().splitlines()
    assert lines[0] == "calibration: 40 chats, outside judge against consensus"
    for key in HUMAN:
        (line,) = [text for text in lines if text.startswith(key)]
        assert "not enough labels" in line


# ---------- split, set, ground truth ----------


@pytest.mark.parametrize("split", ["train", "dev", "holdout"])
def test_a_split_covers_its_chats_alone(split: str, compared: Compared) -> None:
    places = [n for n in range(1, 41) if SPLITS[n % 4] == split]
    report = report_of(compared, "--split", split)
    assert (report["split"], report["chats"]) == (split, len(places))
    cells = Counter(cell("polite", n) for n in places)
    assert entry(report, "polite")["confusion"] == {name: cells[name] for name in ("tp", "fn", "fp", "tn")}


def test_a_run_keeps_the_splits_it_was_made_with(compared: Compared) -> None:
    compared.chat_set.members.update(split="train")
    assert report_of(compared, "--split", "dev")["chats"] == 20
    assert run("alignment_report", "--set", "calibration", "--split", "dev").document["chats"] == 0


def test_a_set_alone_gives_the_human_side_with_null_judge_fields(
    compared: Compared, client: Client, lead_user: User
) -> None:
    report = run("alignment_report", "--set", "calibration").document
    assert (report["run"], report["judge"], report["set"], report["chats"]) == (None, None, "calibration", 40)
    assert (report["disagreements"], report["disagreements_total"]) == ([], 0)
    judged = report_of(compared)
    for row in report["criteria"]:
        names = {*INTERVALS, "confusion", "no_verdict", "no_verdict_by", "judge_not_applicable", "status"}
        assert {name: row[name] for name in names} == dict.fromkeys(names)
        assert row["human"] == entry(judged, row["key"])["human"]
        assert row["human"]["raters"] == 3
        assert row["pass_rate"]["judge"] is None
    client.force_login(lead_user)
    page = client.get(reverse("alignment:report_set", args=[compared.chat_set.pk]))
    api = client.get(reverse("api_set_report", args=[compared.chat_set.pk]))
    assert api.json() == report
    assert page.context["report"]["generated_at"] == report["generated_at"]


def test_against_one_rater_compares_with_that_raters_labels(compared: Compared) -> None:
    report = report_of(compared, "--against", "rater:cleo")
    assert report["against"] == "rater:cleo"
    for key in HUMAN:
        pairs = Counter((says("cleo", key, n), JUDGE[key](n)) for n in range(1, 41))
        assert entry(report, key)["confusion"] == {
            "tp": pairs[True, True],
            "fn": pairs[True, False],
            "fp": pairs[False, True],
            "tn": pairs[False, False],
        }


def test_against_each_rater_averages_and_shows_no_table(compared: Compared) -> None:
    report = report_of(compared, "--against", "each-rater")
    assert report["against"] == "each-rater"
    for key in ("polite", "wrong_fact"):
        row = entry(report, key)
        single = [entry(report_of(compared, "--against", f"rater:{name}"), key) for name in RATERS]
        assert row["confusion"] is None
        for name in INTERVALS:
            mean = sum(one[name]["value"] for one in single) / len(RATERS)
            assert row[name]["value"] == pytest.approx(mean)
            assert (row[name]["low"], row[name]["high"]) == (None, None)


def test_a_rater_who_left_a_criterion_out_is_no_unknown_rater(compared: Compared, tmp_path: Path) -> None:
    run("import_labels", write_jsonl(tmp_path / "l.jsonl", label("chat-1", "polite", rater="dora")))
    report = report_of(compared, "--against", "rater:dora")
    assert (entry(report, "polite")["n"], entry(report, "polite")["unlabelled"]) == (1, 39)
    assert (entry(report, "welcome")["n"], entry(report, "welcome")["unlabelled"]) == (0, 40)


def test_what_does_not_exist_is_refused_by_name(compared: Compared, client: Client, lead_user: User) -> None:
    pk = compared.run.pk
    assert "'nobody'" in refused("alignment_report", "--run", pk, "--against", "rater:nobody")
    assert "--against" in refused("alignment_report", "--run", pk, "--against", "majority")
    assert "--run: there is no run 999999" in refused("alignment_report", "--run", 999999)
    assert "--set: there is no chat set 'nothing'" in refused("alignment_report", "--set", "nothing")
    assert "--split" in refused("alignment_report", "--run", pk, "--split", "test")
    refused("alignment_report")
    refused("alignment_report", "--run", pk, "--set", "calibration")
    client.force_login(lead_user)
    for route, wrong in (("alignment:report_run", 404), ("api_run_report", 400)):
        for query in ("?against=rater:nobody", "?against=majority", "?split=test"):
            assert client.get(reverse(route, args=[pk]) + query).status_code == wrong
        assert client.get(reverse(route, args=[999999])).status_code == 404


# ---------- computed once, and anew when something changed ----------


def test_a_report_is_computed_once_and_read_back(compared: Compared) -> None:
    first = report_of(compared)
    assert report_of(compared) == first
    assert Report.objects.filter(kind=Report.Kind.REPORT).count() == 1
    report_of(compared, "--split", "dev")
    report_of(compared, "--against", "each-rater")
    assert Report.objects.filter(kind=Report.Kind.REPORT).count() == 3


def test_a_changed_label_is_followed(compared: Compared, tmp_path: Path) -> None:
    before = entry(report_of(compared), "polite")
    changed = [label("chat-1", "polite", rater=name, value=False) for name in RATERS]
    run("import_labels", write_jsonl(tmp_path / "l.jsonl", *changed))
    after = entry(report_of(compared), "polite")
    assert (before["human_true"], after["human_true"]) == (20, 19)
    assert after["confusion"]["fp"] == before["confusion"]["fp"] + 1
    assert Report.objects.filter(kind=Report.Kind.REPORT).count() == 2


def test_an_adjudication_is_followed(compared: Compared, tmp_path: Path) -> None:
    before = entry(report_of(compared), "polite")
    assert cell("polite", 2) == "tn"
    run("import_adjudications", write_jsonl(tmp_path / "a.jsonl", decision("chat-2", "polite", value=True)))
    after = entry(report_of(compared), "polite")
    assert after["confusion"]["fn"] == before["confusion"]["fn"] + 1


def test_a_run_that_went_on_is_followed(compared: Compared) -> None:
    before = entry(report_of(compared), "polite")
    verdict = Verdict.objects.get(chat__external_id="chat-1", criterion__key="polite")
    verdict.state, verdict.value = Verdict.State.UNPARSED, None
    verdict.save()
    Run.objects.update(finished_at=timezone.now())
    after = entry(report_of(compared), "polite")
    assert (before["no_verdict"], after["no_verdict_by"]) == (0, {"unparsed": 1})


def test_a_new_text_of_a_criterion_and_a_renamed_dimension_are_followed(compared: Compared) -> None:
    report_of(compared)
    polite = Criterion.objects.get(key="polite")
    CriterionVersion.objects.create(
        criterion=polite, number=2, question="?", definition="", content_hash="2" * 64
    )
    report_of(compared)
    assert Report.objects.filter(kind=Report.Kind.REPORT).count() == 2
    polite.dimension.name = "Rules of the house"
    polite.dimension.save()
    names = {row["name"] for row in report_of(compared)["dimensions"]}
    assert "Rules of the house" in names


def test_a_running_runs_report_is_not_kept(compared: Compared) -> None:
    Run.objects.update(finished_at=None, state=Run.State.RUNNING)
    first = report_of(compared)
    verdicts = Verdict.objects.filter(chat__external_id="chat-1", criterion__key="polite")
    verdicts.delete()
    second = report_of(compared)
    assert not Report.objects.exists()
    assert (entry(first, "polite")["no_verdict"], entry(second, "polite")["no_verdict_by"]) == (
        0,
        {"none": 1},
    )
