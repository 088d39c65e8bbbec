"""`regress`: candidate against champion, through a stub endpoint whose verdicts follow the prompt."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from pytest_django import Settings

from alignment.models.regressions import HoldoutOpening, RegressionTest
from evaluation.models.runs import Run
from labeling.models.chats import ChatSetMember
from tests.factories.runs import Ended, answering, command, evaluate
from tests.files import chat, criterion, label, refused, rubric, run, write_json, write_jsonl
from tests.stub_endpoint import Answer, Body, StubReply, asked_keys, case_of, conversation

pytestmark = pytest.mark.django_db(transaction=True)

CASES = [f"c-{n:03}" for n in range(120)]
TRUTH: dict[str, dict[str, bool | None]] = {case: {"polite": n % 2 == 0} for n, case in enumerate(CASES)}
MARK = "Look twice."
PROMPT = f"# Context\nA shop.\n\n# Objective\nIs polite so?\n\n# Style\n{MARK}\n"


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """A set of 120 labelled chats, split dev, and one criterion."""
    run("import_rubric", write_json(tmp_path / "rubric.json", rubric(criterion("polite"))))
    chats = [chat(case, f"This is case {case}, where is my order?", "On its way.") for case in CASES]
    run("import_chats", write_jsonl(tmp_path / "chats.jsonl", *chats), "--set", "golden")
    mine = [label(case, "polite", value=TRUTH[case]["polite"]) for case in CASES]
    run("import_labels", write_jsonl(tmp_path / "labels.jsonl", *mine))
    (tmp_path / "prompt.md").write_text(PROMPT, encoding="utf-8")
    return tmp_path


def wrong_on(champion: int, candidate: int) -> Answer:
    """A judge with this many errors, and another number with the candidate's prompt."""
    wrong = {False: set(CASES[:champion]), True: set(CASES[60 : 60 + candidate])}

    def answer(body: Body) -> StubReply:
        case = case_of(body, TRUTH)
        says = TRUTH[case]["polite"] != (case in wrong[MARK in conversation(body)])
        lines = "\n".join(f"{key}: {str(says).upper()}" for key in asked_keys(body))
        return StubReply(f"What was said.\n\nVERDICTS\n{lines}")

    return answer


def regress(folder: Path, *options: str) -> Ended:
    prompt = str(folder / "prompt.md")
    return command("regress", "--criterion", "polite", "--prompt", prompt, "--set", "golden", *options)


def test_a_candidate_that_is_no_worse_passes(labelled: Path, settings: Settings) -> None:
    with answering(settings, wrong_on(6, 4)):
        answer = regress(labelled)
    assert answer.code == 0
    found = answer.answer
    assert (found["gate"], found["criteria"][0]["fixed"], found["criteria"][0]["broken"]) == ("pass", 6, 4)
    assert found["criteria"][0]["before"]["confusion"] == {"tp": 57, "fn": 3, "fp": 3, "tn": 57}
    assert found["criteria"][0]["after"]["confusion"] == {"tp": 58, "fn": 2, "fp": 2, "tn": 58}


def test_a_worse_candidate_fails_after_a_second_run(labelled: Path, settings: Settings) -> None:
    with answering(settings, wrong_on(2, 20)) as stub:
        answer = regress(labelled)
        assert stub.count == 3 * len(CASES)  # champion, candidate, candidate again
    assert answer.code == 1
    assert answer.answer["gate"] == "fail"
    assert "a second run of the candidate failed too" in answer.answer["reasons"]
    test = RegressionTest.objects.get()
    assert test.confirm_run is not None
    assert (test.confirm_run.purpose, test.confirm_run.replicate) == (Run.Purpose.CONFIRM, 1)


@pytest.mark.heavy
def test_a_fail_that_was_noise_is_inconclusive(labelled: Path, settings: Settings) -> None:
    with answering(settings, wrong_on(2, 20)) as stub:
        first, asked = stub.answer, 0

        def answer(body: Body) -> StubReply:
            nonlocal asked
            asked += 1
            return (first if asked <= 2 * len(CASES) else wrong_on(2, 2))(body)

        stub.answer = answer
        ended = regress(labelled)
    assert ended.code == 3
    assert "did not fail" in ended.answer["reasons"][0]
    noise = ended.answer["criteria"][0]["noise"]
    assert noise["value"] == pytest.approx(18 / 120)


@pytest.mark.heavy
def test_what_the_champion_answered_before_is_not_asked_again(labelled: Path, settings: Settings) -> None:
    with answering(settings, wrong_on(6, 4)) as stub:
        assert evaluate("--set", "golden", "--engine", "direct").code == 0
        before = stub.count
        assert regress(labelled).code == 0
        assert stub.count - before == len(CASES)


@pytest.mark.flow
@pytest.mark.heavy
def test_a_test_that_was_broken_off_goes_on(labelled: Path, settings: Settings) -> None:
    with answering(settings, wrong_on(6, 4)) as stub:
        judge, asked = stub.answer, 0

        def answer(body: Body) -> StubReply:
            nonlocal asked
            asked += 1
            return judge(body) if asked <= 150 else StubReply("", status=401)

        stub.answer = answer
        broken = regress(labelled)
        assert (broken.code, RegressionTest.objects.get().state) == (4, "running")
        stub.answer, before = judge, stub.count
        assert regress(labelled).code == 0
        assert stub.count - before <= 2 * len(CASES) - 150 + 4
    assert RegressionTest.objects.get().result == "pass"
    assert Run.objects.count() == 2


def test_too_few_labels_are_inconclusive_and_say_so(labelled: Path, settings: Settings) -> None:
    Path(labelled / "few.json").write_text(json.dumps({"single_minimum": 200, "name": "strict"}), "utf-8")
    with answering(settings, wrong_on(6, 4)):
        answer = regress(labelled, "--policy", str(labelled / "few.json"))
    assert answer.code == 3
    assert answer.answer["reasons"] == ["polite: 120 labelled chats; 200 are needed to pass alone"]


@pytest.mark.heavy
def test_it_writes_files_for_a_pull_request(labelled: Path, settings: Settings) -> None:
    junit, summary = labelled / "gate.xml", labelled / "gate.md"
    with answering(settings, wrong_on(2, 20)):
        assert regress(labelled, "--junit", str(junit), "--markdown", str(summary)).code == 1
    suite = ElementTree.fromstring(junit.read_text("utf-8"))  # noqa: S314  written by us
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert ["polite got worse" in entry.get("message", "") for entry in suite.iter("failure")] == [True]
    assert "| `polite` | 120 | 2 | 20 | 0 → 0 | 0.98 → 0.83 |" in summary.read_text("utf-8")


@pytest.mark.heavy
def test_the_gate_answers_again_for_a_test_that_is_over(labelled: Path, settings: Settings) -> None:
    with answering(settings, wrong_on(6, 4)):
        first = regress(labelled)
    again = command("gate", str(first.answer["test"]))
    assert (again.code, again.answer) == (0, first.answer)
    assert command("gate", "999999").error == "error: there is no regression test 999999"


def test_the_holdout_is_opened_on_record(labelled: Path, settings: Settings) -> None:
    ChatSetMember.objects.filter(chat__external_id__in=CASES[:50]).update(split="holdout")
    with answering(settings, wrong_on(6, 4)):
        assert regress(labelled, "--split", "holdout").code == 3
    opening = HoldoutOpening.objects.get()
    assert (opening.chat_set.name, opening.criterion.key) == ("golden", "polite")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--criterion", "rude"), "--criterion: there is no criterion 'rude'"),
        (("--set", "silver"), "--set: there is no chat set 'silver'"),
        (("--profile", "none"), "--profile: there is no judge profile 'none'"),
    ],
)
def test_what_does_not_exist_is_refused_by_name(
    options: tuple[str, str], message: str, labelled: Path
) -> None:
    given = {"--criterion": "polite", "--set": "golden"} | dict([options])
    words = [word for pair in given.items() for word in pair]
    assert message in refused("regress", "--prompt", labelled / "prompt.md", *words)
    assert not RegressionTest.objects.exists()
