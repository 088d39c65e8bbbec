"""The engine section: steps of the engine, how often they were right, and suspect chats."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from alignment.comparison.queries.answers import report_data
from alignment.comparison.queries.scope import Scope
from alignment.reports.core.engine_side import VerdictCount, engine_against_humans
from alignment.reports.queries.engine import engine_rows, engine_section
from alignment.reports.queries.reports import alignment_report
from evaluation.models.judges import Judge
from evaluation.models.runs import Verdict
from tests.factories.compared_runs import HUMAN, JUDGE, Compared, text_of, urls

pytestmark = pytest.mark.django_db


def counted(
    *,
    human: bool = True,
    value: bool | None = True,
    first: bool | None = None,
    reflected: bool = False,
    side: str = "",
    passes_when: bool = True,
    suspect: bool = False,
    n: int = 1,
) -> VerdictCount:
    return VerdictCount(human, value, first, reflected, side, passes_when, suspect, n)


def test_a_change_is_fixed_broken_or_wrong_both_times() -> None:
    rows = [
        counted(reflected=True, first=False, value=True, n=5),
        counted(reflected=True, first=True, value=False, n=2),
        counted(reflected=True, first=None, value=False, n=3),
        counted(reflected=True, first=True, value=True, n=90),
    ]
    found = engine_against_humans(rows)["reflection"]
    assert (found["n"], found["fixed"], found["broken"], found["other"]) == (100, 5, 2, 3)
    assert found["fixed_share"]["value"] == pytest.approx(5 / 7)
    assert found["by_first"]["false"]["fixed"] == 5
    assert found["by_first"]["not_applicable"]["fixed_share"]["value"] is None


@pytest.mark.parametrize("passes_when", [True, False])
def test_the_customers_answer_is_the_failing_one(passes_when: bool) -> None:
    rows = [
        counted(side="customer", human=not passes_when, passes_when=passes_when, n=3),
        counted(side="customer", human=passes_when, passes_when=passes_when, n=1),
        counted(side="support", human=passes_when, passes_when=passes_when, n=4),
        counted(side="neither", human=passes_when, passes_when=passes_when, n=2),
    ]
    found = engine_against_humans(rows)["debate"]
    assert found["taken"] == {
        "customer": {"customer": 3, "support": 1},
        "support": {"customer": 0, "support": 4},
        "neither": {"customer": 0, "support": 2},
    }
    assert (found["right"]["customer"]["value"], found["right"]["support"]["value"]) == (0.75, 1.0)


def test_suspect_chats_have_an_accuracy_of_their_own() -> None:
    rows = [counted(suspect=True, value=False), counted(suspect=True), counted(n=9), counted(value=None)]
    found = engine_against_humans(rows)["suspect"]
    assert (found["flagged"]["n"], found["flagged"]["accuracy"]["value"]) == (2, 0.5)
    assert (found["others"]["n"], found["others"]["accuracy"]["value"]) == (10, 0.9)


def test_without_drafts_and_debates_there_is_nothing_to_say() -> None:
    found = engine_against_humans([])
    assert (found["reflection"], found["debate"]) == (None, None)
    assert found["suspect"]["flagged"]["accuracy"]["value"] is None


# ---------- over the database ----------


@pytest.fixture
def reflected(compared: Compared) -> Compared:
    """The judge is LACE's; its draft always said True, and every fourth chat looks hostile."""
    Judge.objects.update(kind=Judge.Kind.LACE, engine="reflection", config={"endpoint": "e"})
    Verdict.objects.filter(state="read").update(first_state="read", first_value=True, flags=[])
    for n in range(4, 41, 4):
        Verdict.objects.filter(chat__external_id=f"chat-{n}").update(flags=["suspect_fence"])
    compared.run.refresh_from_db()
    return compared


def section_of(scope: Scope) -> dict[str, Any] | None:
    verdicts = engine_rows(scope)
    return engine_section(scope, report_data(scope, verdicts), verdicts)


def test_changes_are_compared_with_the_consensus(reflected: Compared) -> None:
    section = section_of(Scope(reflected.chat_set, reflected.run, only="polite"))
    assert section is not None
    reflection = section["against_people"]["reflection"]
    changed = [n for n in range(1, 41) if not JUDGE["polite"](n)]
    fixed = sum(not HUMAN["polite"](n) for n in changed)
    assert (reflection["fixed"], reflection["broken"]) == (fixed, len(changed) - fixed)
    assert 0 < fixed < len(changed)


def test_suspect_chats_are_counted_apart_and_stay_in_the_report(reflected: Compared) -> None:
    report = alignment_report(Scope(reflected.chat_set, reflected.run))
    chats = report["engine"]["suspect_chats"]
    assert (chats["hits"], chats["n"]) == (10, 40)
    assert chats["value"] == 0.25
    assert report["chats"] == 40
    suspect = report["engine"]["against_people"]["suspect"]
    assert suspect["flagged"]["n"] + suspect["others"]["n"] == sum(row["n"] for row in report["criteria"])


def test_a_split_is_counted_alone(reflected: Compared) -> None:
    section = section_of(Scope(reflected.chat_set, reflected.run, split="train"))
    assert section is not None
    assert section["suspect_chats"]["n"] == 10


def test_one_rater_can_be_the_truth_but_not_each_of_them(reflected: Compared) -> None:
    of = {
        against: section_of(Scope(reflected.chat_set, reflected.run, against=against))
        for against in ("rater:cleo", "rater:anna", "each-rater")
    }
    assert of["each-rater"] is not None and of["each-rater"]["against_people"] is None
    assert of["rater:cleo"] is not None and of["rater:anna"] is not None
    cleo, anna = (of[f"rater:{name}"]["against_people"]["reflection"] for name in ("cleo", "anna"))  # type: ignore[index]
    assert cleo["n"] == anna["n"]
    assert cleo["fixed"] != anna["fixed"]


def test_a_set_alone_and_an_imported_judge_have_no_engine(compared: Compared) -> None:
    assert section_of(Scope(compared.chat_set)) is None
    assert alignment_report(Scope(compared.chat_set, compared.run))["engine"] is None


def test_the_command_prints_it_as_json(reflected: Compared) -> None:
    out = StringIO()
    call_command("alignment_report", run=reflected.run.pk, json=True, stdout=out)
    engine = json.loads(out.getvalue())["engine"]
    assert engine["verdicts"] == 120
    assert engine["reflections"]["changed"]["n"] == 120


def test_the_page_of_an_imported_judge_has_no_such_section(compared: Compared, lead: Client) -> None:
    assert "Engine behaviour" not in text_of(lead.get(urls(compared)["report"]))


def test_the_page_shows_what_there_is(reflected: Compared, lead: Client) -> None:
    shown = text_of(lead.get(urls(reflected)["report"]))
    assert "Engine behaviour" in shown
    assert "Changes that were right" in shown
    assert "Suspect chats" in shown
    assert "Judge sided" not in shown


@pytest.mark.heavy
def test_no_more_queries_for_more_verdicts(reflected: Compared) -> None:
    scope = Scope(reflected.chat_set, reflected.run)
    verdicts = engine_rows(scope)
    data = report_data(scope, verdicts)
    with CaptureQueriesContext(connection) as few:
        engine_section(scope, data, verdicts)
    assert len(few) <= 5
