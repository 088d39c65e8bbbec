"""A judge with known error rates, through `evaluate` and every engine: the report measures those rates."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from evaluation.models.runs import ModelCall
from tests.files import chat, criterion, label, rubric, run, write_json, write_jsonl
from tests.stub_endpoint import (
    Answer,
    Body,
    StubEndpoint,
    StubReply,
    asked_schema,
    case_of,
    planted_judge,
    planted_verdict,
)

pytestmark = pytest.mark.django_db(transaction=True)

ENGINES = {"direct": 1, "reflection": 2, "debate": 3}  # reasoning calls a chat
TPR, TNR = 0.85, 0.7
# A 95% interval misses its rate in one draw of twenty; this draw is none of those for any of the four rates.
SEED = 4
CASES = [f"c-{n:03}" for n in range(90)]
TRUTH = {case: {"polite": n % 2 == 0, "wrong_fact": n % 3 == 0} for n, case in enumerate(CASES)}
COUNTS = ("n", "unlabelled", "unresolved", "not_applicable", "no_verdict", "judge_not_applicable")

Truths = Mapping[str, Mapping[str, bool | None]]


def prepare(folder: Path, truth: Truths, *labels: dict[str, Any]) -> None:
    """A workspace with one rubric, one chat a case, and the truth as one rater's labels."""
    criteria = [
        criterion("polite", allow_na=True),
        criterion("wrong_fact", passes_when=False, tier="context"),
    ]
    run("import_rubric", write_json(folder / "rubric.json", rubric(*criteria)))
    chats = [chat(case, f"This is case {case}, where is my order?", "On its way.") for case in truth]
    run("import_chats", write_jsonl(folder / "chats.jsonl", *chats), "--set", "planted")
    mine = [
        label(case, key, value=value) for case, answers in truth.items() for key, value in answers.items()
    ]
    run("import_labels", write_jsonl(folder / "labels.jsonl", *mine, *labels))


def judged(settings: Settings, answer: Answer, *options: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `evaluate` and then `alignment_report` say of the planted set."""
    with StubEndpoint(answer) as stub:
        settings.OPENAI_BASE_URL = stub.base_url
        done = run("evaluate", "--set", "planted", "--grouping", "rubric", *options).document
        assert stub.count == done["calls"]
    return done, run("alignment_report", "--run", done["run"]).document


def by_key(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {entry["key"]: entry for entry in report["criteria"]}


def planted_table(key: str, cases: Truths) -> dict[str, int]:
    """The 2×2 table of the planted judge, counted here and not by the workbench."""
    cells = Counter(
        (truth[key], planted_verdict(truth[key], case=case, criterion=key, tpr=TPR, tnr=TNR, seed=SEED))
        for case, truth in cases.items()
    )
    names = {"tp": (True, True), "fn": (True, False), "fp": (False, True), "tn": (False, False)}
    return {cell: cells[pair] for cell, pair in names.items()}


@pytest.mark.parametrize(("engine", "calls"), ENGINES.items())
def test_the_intervals_hold_the_planted_rates(
    engine: str, calls: int, tmp_path: Path, settings: Settings
) -> None:
    prepare(tmp_path, TRUTH)
    answer = planted_judge(TRUTH, tpr=TPR, tnr=TNR, seed=SEED)
    done, report = judged(settings, answer, "--engine", engine)
    assert (done["state"], done["verdicts"], done["unparsed"]) == ("done", 180, 0)
    assert done["calls"] == calls * len(CASES)
    assert report["judge"]["engine"] == engine
    for key, entry in by_key(report).items():
        assert entry["confusion"] == planted_table(key, TRUTH)
        assert entry["tpr"]["low"] <= TPR <= entry["tpr"]["high"]
        assert entry["tnr"]["low"] <= TNR <= entry["tnr"]["high"]
        assert sum(entry[name] for name in COUNTS) == report["chats"] == entry["n"] == len(CASES)


def test_another_judge_is_distinguished_from_the_planted_one(tmp_path: Path, settings: Settings) -> None:
    prepare(tmp_path, TRUTH)
    _, report = judged(settings, planted_judge(TRUTH, tpr=0.5, tnr=1.0), "--engine", "direct")
    for entry in report["criteria"]:
        assert entry["tpr"]["high"] < TPR
        assert entry["tnr"]["value"] == 1.0


@pytest.mark.parametrize("engine", ENGINES)
def test_verdicts_left_in_the_prose_reach_the_same_report_through_the_formatter(
    engine: str, tmp_path: Path, settings: Settings
) -> None:
    few = dict(list(TRUTH.items())[:25])
    prepare(tmp_path, few)
    answer = planted_judge(few, tpr=TPR, tnr=TNR, seed=SEED, with_block=False)
    done, report = judged(settings, answer, "--engine", engine)
    assert done["unparsed"] == 0
    assert ModelCall.objects.filter(role="formatter").count() > 0
    for key, entry in by_key(report).items():
        assert entry["confusion"] == planted_table(key, few)


# ---------- everything that is not a pair of answers ----------

PLANTED = ["unparsed"] * 4 + ["refused"] * 3 + ["cut_off"] * 2 + ["too_long"]
TROUBLE = {f"t-{n}": name for n, name in enumerate(PLANTED)}
NOT_APPLICABLE = [f"n-{n}" for n in range(5)]  # people say so
JUDGE_NOT_APPLICABLE = [f"j-{n}" for n in range(6)]  # the judge alone says so
UNLABELLED = ["u-0", "u-1"]
TIED = "x-0"
BAD = {
    "unparsed": StubReply("I would rather not conclude anything."),
    "refused": StubReply("", refusal="I can't help with that."),
    "cut_off": StubReply("On polite I was about to", finish_reason="length"),
    "too_long": StubReply(
        status=400, raw=b'{"error": {"message": "too many tokens", "code": "context_length_exceeded"}}'
    ),
}


def troubled_judge() -> Answer:
    """Right wherever it answers; fails by name on the cases of TROUBLE."""
    seen: dict[str, dict[str, bool | None]] = {
        case: {"polite": True, "wrong_fact": False} for case in ["a-0", "a-1", TIED, *UNLABELLED, *TROUBLE]
    }
    seen |= {case: {"polite": None, "wrong_fact": True} for case in [*NOT_APPLICABLE, *JUDGE_NOT_APPLICABLE]}
    right = planted_judge(seen, tpr=1, tnr=1)

    def answer(body: Body) -> StubReply:
        if asked_schema(body) is None and (trouble := TROUBLE.get(case_of(body, seen))):
            return BAD[trouble]
        return right(body)

    return answer


@pytest.mark.parametrize("engine", ENGINES)
def test_every_chat_is_counted_once_whatever_happened_to_it(
    engine: str, tmp_path: Path, settings: Settings
) -> None:
    good: dict[str, bool | None] = {"polite": True, "wrong_fact": False}
    bad: dict[str, bool | None] = {"polite": True, "wrong_fact": True}
    truth: dict[str, dict[str, bool | None]] = dict.fromkeys(["a-0", "a-1", TIED, *TROUBLE], good)
    truth |= {case: {} for case in UNLABELLED}
    truth |= dict.fromkeys(JUDGE_NOT_APPLICABLE, bad)
    truth |= {case: {"polite": None, "wrong_fact": True} for case in NOT_APPLICABLE}
    prepare(tmp_path, truth, label(TIED, "polite", rater="otto", value=False))
    done, report = judged(settings, troubled_judge(), "--engine", engine)
    assert done["state"] == "done"
    assert done["unparsed"] == 8
    entries = by_key(report)
    trouble = {"unparsed": 4, "refused": 3, "cut_off": 2, "too_long": 1}
    assert {name: entries["polite"][name] for name in (*COUNTS, "no_verdict_by")} == {
        "n": 2,
        "unlabelled": 2,
        "unresolved": 1,
        "not_applicable": 5,
        "no_verdict": 10,
        "judge_not_applicable": 6,
        "no_verdict_by": trouble,
    }
    assert entries["wrong_fact"]["n"] == 3 + 11
    assert entries["wrong_fact"]["no_verdict_by"] == trouble
    for entry in report["criteria"]:
        assert sum(entry[name] for name in COUNTS) == report["chats"] == len(truth)
        assert sum(entry["confusion"].values()) == entry["n"]
        assert sum(entry["no_verdict_by"].values()) == entry["no_verdict"]
        assert entry["accuracy"]["value"] == 1.0
