"""Reports on real labels and verdicts equal the results of other programs.

`real_data.json` holds the published data as counts, with their sources, and the figures that scikit-learn,
krippendorff and irrCAC give; they are imported as files of as many chats, labels and verdicts.
"""

import json
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from tests.files import chat, criterion, label, rubric, run, verdict, write_json, write_jsonl

pytestmark = pytest.mark.django_db

DATA: dict[str, Any] = json.loads(Path(__file__).with_name("real_data.json").read_text(encoding="utf-8"))
# Half of the last digit that is printed.
DIGITS = {"fleiss_kappa": 5.001e-6, "gwet_ac1": 5.001e-6}
SIX = 5.001e-7


@pytest.fixture
def workspace(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Rubric and chats of one of the two data sets are in; the folder for further files."""
    criteria = DATA[request.param]["criteria"]
    run(
        "import_rubric",
        write_json(tmp_path / "rubric.json", rubric(*(criterion(one["key"]) for one in criteria))),
    )
    chats = [chat(str(n)) for n in range(200 if request.param == "people" else 223)]
    run("import_chats", write_jsonl(tmp_path / "chats.jsonl", *chats), "--set", "real")
    return tmp_path


def votes(one: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Label lines of raters known by their place only."""
    chats = chain.from_iterable(repeat((true, false), often) for true, false, often in one["votes"])
    for number, (true, false) in enumerate(chats):
        for slot, value in enumerate([True] * true + [False] * false):
            yield label(str(number), one["key"], rater=f"slot{slot}", value=value)


def answers(table: list[list[int]]) -> list[tuple[bool, bool]]:
    """Human answer and verdict by chat; the human True come first in every table."""
    (tp, fn), (fp, tn) = table
    return [(True, True)] * tp + [(True, False)] * fn + [(False, True)] * fp + [(False, False)] * tn


def assert_equal(entry: dict[str, Any], expected: dict[str, float]) -> None:
    found = {**entry, **entry["human"]} if "overlap" in expected else entry
    for name, value in expected.items():
        got = found[name]["value"] if isinstance(found[name], dict) else found[name]
        assert got == pytest.approx(value, abs=DIGITS.get(name, SIX), rel=0), (entry["key"], name)


@pytest.mark.parametrize("workspace", ["people"], indirect=True)
def test_agreement_between_raters_equals_the_reference(workspace: Path) -> None:
    given = DATA["people"]["criteria"]
    run(
        "import_labels",
        write_jsonl(workspace / "labels.jsonl", *chain.from_iterable(votes(one) for one in given)),
    )
    report = run("alignment_report", "--set", "real").document
    each = run("alignment_report", "--set", "real", "--against", "each-rater").document
    for one, entry, by_rater in zip(given, report["criteria"], each["criteria"], strict=True):
        assert_equal(entry, one["expected"])
        assert_equal(by_rater, {"prevalence": one["share_of_labels"]})


@pytest.mark.parametrize("workspace", ["judges"], indirect=True)
def test_agreement_of_judges_with_raters_equals_the_reference(workspace: Path) -> None:
    given = DATA["judges"]["criteria"]
    labels = [
        label(str(number), one["key"], value=person)
        for one in given
        for number, (person, _) in enumerate(answers(one["judges"]["argmax"]["table"]))
    ]
    run("import_labels", write_jsonl(workspace / "labels.jsonl", *labels))
    verdicts = [
        verdict(str(number), one["key"], judge=judge, value=said)
        for one in given
        for judge, body in one["judges"].items()
        for number, (_, said) in enumerate(answers(body["table"]))
    ]
    path = write_jsonl(workspace / "verdicts.jsonl", *verdicts)
    for found in run("import_verdicts", path, "--set", "real").document["runs"]:
        report = run("alignment_report", "--run", found["id"]).document
        for one, entry in zip(given, report["criteria"], strict=True):
            body = one["judges"][found["judge"]]
            (tp, fn), (fp, tn) = body["table"]
            assert entry["confusion"] == {"tp": tp, "fn": fn, "fp": fp, "tn": tn}
            assert_equal(entry, body["expected"] | {"prevalence": one["prevalence"]})
