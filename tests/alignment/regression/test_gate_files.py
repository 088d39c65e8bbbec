"""What CI shows of a result: JUnit, Markdown and the reasons, without a database."""

from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from alignment.comparison.core.codes import JudgeCode
from alignment.regression.core import (
    GatePolicy,
    PairedVerdicts,
    count_evidence,
    decide,
    junit_problem,
    junit_xml,
    markdown_problem,
    markdown_summary,
    regression_body,
)

TITLE = "polite version 2 on golden, dev"


def paired(cut_off: int, *, tier: str = "simple", wrong: int = 0, key: str = "polite") -> PairedVerdicts:
    """100 chats: the champion is right; the candidate was cut off on the first and errs on the last."""
    human = (np.arange(100) % 2).astype(np.int8)
    new = np.where(np.arange(100) >= 100 - wrong, 1 - human, human)
    new = np.where(np.arange(100) < cut_off, JudgeCode.CUT_OFF, new).astype(np.int8)
    return PairedVerdicts(key, tier, human, human, new)


def answer(*criteria: PairedVerdicts, **more: Any) -> dict[str, Any]:
    """The JSON of `regress`."""
    evidence = count_evidence(criteria)
    decision = decide(evidence, policy=GatePolicy())
    return regression_body(evidence, decision, seed=1) | {"test": 7} | more


def case_of(text: str) -> tuple[ElementTree.Element, ElementTree.Element]:
    """The suite and its only case."""
    suite = ElementTree.fromstring(text)  # noqa: S314  written by us
    (case,) = suite
    return suite, case


def other_test(**changes: Any) -> dict[str, Any]:
    row = {
        "test": 5,
        "kind": "prompt",
        "set": "golden",
        "split": "holdout",
        "state": "done",
        "gate": "fail",
        "counts": True,
        "policy": "start values, version 1",
        "policy_in_force": True,
        "finished_at": "2026-11-20T10:00:00+00:00",
    }
    return row | changes


def test_cut_off_answers_are_the_first_reason_of_the_loss_that_they_make() -> None:
    body = answer(paired(12))
    assert body["gate"] == "fail"
    assert body["reasons"][0] == (
        "polite: the candidate has no verdict on 12 of 100 labelled chats (12 cut off)"
    )
    (row,) = body["criteria"]
    assert (row["after"]["no_verdict"], row["after"]["no_verdict_by"]) == (12, {"cut_off": 12})
    assert row["before"]["no_verdict_by"] == {}
    assert row["after"]["tpr"]["value"] == 1.0  # the rates exclude them


def test_markdown_has_a_column_for_them_and_says_that_the_rates_exclude_them() -> None:
    text = markdown_summary(answer(paired(12)), title=TITLE)
    assert "| criterion | n | fixed | broken | no verdict |" in text
    assert "| `polite` | 100 | 0 | 12 | 0 → 12 (12 cut off) |" in text
    assert "TPR, TNR and the other rates exclude them." in text
    assert "exclude them" not in markdown_summary(answer(paired(0)), title=TITLE)


def test_a_fail_is_a_failure_with_its_reasons() -> None:
    suite, case = case_of(junit_xml(answer(paired(12)), title=TITLE))
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("1", "0", "0")
    failure = case.find("failure")
    assert failure is not None
    assert failure.get("type") == "fail"
    assert "(12 cut off)" in failure.get("message", "")
    assert "0 → 12 (12 cut off)" in (case.findtext("system-out") or "")


@pytest.mark.parametrize(("chosen", "counts"), [("failure", ("1", "0")), ("skipped", ("0", "1"))])
def test_inconclusive_is_a_failure_of_its_own_type_unless_it_may_be_skipped(
    chosen: str, counts: tuple[str, str]
) -> None:
    body = answer(paired(0), gate="inconclusive", reasons=["too few chats"])
    suite, case = case_of(junit_xml(body, title=TITLE, inconclusive=chosen))
    assert (suite.get("failures"), suite.get("skipped")) == counts
    found = case.find(chosen)
    assert found is not None
    assert found.get("type") == "inconclusive"


def test_a_pass_has_neither_failure_nor_error() -> None:
    suite, case = case_of(junit_xml(answer(paired(0)), title=TITLE))
    assert [suite.get(name) for name in ("failures", "errors", "skipped")] == ["0", "0", "0"]
    assert [part.tag for part in case] == ["system-out"]


def test_a_command_without_a_result_leaves_an_error_in_both_files() -> None:
    suite, case = case_of(junit_problem("run 7: no <answer>\x00", title=TITLE, kind="outside_failure"))
    assert (suite.get("errors"), suite.get("failures")) == ("1", "0")
    error = case.find("error")
    assert error is not None
    assert (error.get("type"), error.get("message")) == ("outside_failure", "run 7: no <answer>\ufffd")
    assert markdown_problem("no <answer>", title=TITLE) == f"## No result: {TITLE}\n\n- no &lt;answer>\n"


def test_all_tests_of_the_candidate_stand_in_the_summary() -> None:
    tests = [
        other_test(),
        other_test(test=4, gate="pass", counts=False, policy_in_force=False),
        other_test(test=3, split="", state="running", gate=None, counts=False, finished_at=None),
    ]
    why = "regression test 5 on golden, holdout, failed"
    text = markdown_summary(answer(paired(0), tests=tests, needs_override=[why]), title=TITLE)
    assert f"- **A release needs an override:** {why}" in text
    assert "| 5 | golden | holdout | Fail | 2026-11-20 | start values, version 1 |  |" in text
    assert "| policy not in force; replaced by a newer test |" in text
    assert "| 3 | golden | all splits | running |" in text


def test_warnings_stand_first_in_the_summary_and_on_standard_error_of_the_case() -> None:
    body = answer(paired(0), warnings=["the holdout was used 8 times"])
    assert "\n- **Warning:** the holdout was used 8 times\n" in markdown_summary(body, title=TITLE)
    _, case = case_of(junit_xml(body, title=TITLE))
    assert case.findtext("system-err") == "warning: the holdout was used 8 times"
