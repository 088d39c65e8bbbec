"""`regress`: candidate against champion, through a stub endpoint whose verdicts follow the prompt."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from pytest_django import Settings

from alignment.management.commands.regress import Command
from alignment.models.regressions import HoldoutOpening, RegressionTest
from alignment.regression.queries.tests import regression_text
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run
from labeling.models.chats import ChatSetMember
from labeling.models.people import User
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


def test_from_the_policys_limit_on_a_holdout_warns_everywhere_and_names_who_used_it(
    labelled: Path, settings: Settings, lead_user: User
) -> None:
    ChatSetMember.objects.filter(chat__external_id__in=CASES[:50]).update(split="holdout")
    policy = write_json(labelled / "policy.json", {"openings_warning": 2, "name": "careful"})
    junit, summary = labelled / "gate.xml", labelled / "gate.md"
    files = "--junit", str(junit), "--markdown", str(summary)
    options = "--split", "holdout", "--policy", str(policy), "--by", lead_user.username, *files
    with answering(settings, wrong_on(6, 4)):
        assert "the holdout" not in regress(labelled, *options).err
        (labelled / "prompt.md").write_text(PROMPT + "Look again.\n", encoding="utf-8")
        second = regress(labelled, *options)
    warning = f"the holdout of golden was used 2 times for polite, this time by {lead_user.username}."
    assert f"warning: {warning}" in second.err
    assert warning in second.answer["warnings"][0]
    assert f"- **Warning:** {warning}" in summary.read_text("utf-8")
    assert f"<system-err>warning: {warning}" in junit.read_text("utf-8")
    assert {opening.by for opening in HoldoutOpening.objects.all()} == {lead_user}
    assert second.answer["created_by"] == lead_user.username


@pytest.mark.parametrize("text", ["# Objektive\nIs polite so?\n", "Is polite so?\n"])
def test_a_prompt_with_errors_ends_before_a_call_is_paid(
    labelled: Path, settings: Settings, text: str
) -> None:
    (labelled / "prompt.md").write_text(text, encoding="utf-8")
    junit = labelled / "gate.xml"
    with answering(settings, wrong_on(6, 4)) as stub:
        ended = regress(labelled, "--junit", str(junit))
        assert (ended.code, stub.count) == (2, 0)
    assert ended.error == f"error: {labelled / 'prompt.md'}: # Objective: is missing or empty"
    assert "# Objective: is missing or empty" in junit.read_text("utf-8")
    assert not PromptVersion.objects.filter(text=text).exists()


def test_no_earlier_result_is_left_by_a_command_that_ends_without_one(
    labelled: Path, settings: Settings
) -> None:
    junit, summary = labelled / "gate.xml", labelled / "gate.md"
    for path in (junit, summary):
        path.write_text("yesterday: Pass", encoding="utf-8")
    with answering(settings, lambda body: StubReply("", status=401)):
        ended = regress(labelled, "--junit", str(junit), "--markdown", str(summary))
    assert ended.code == 4
    suite = ElementTree.fromstring(junit.read_text("utf-8"))  # noqa: S314  written by us
    (error,) = suite.iter("error")
    assert (suite.get("errors"), error.get("type")) == ("1", "outside_failure")
    assert "run the same command again to continue" in error.get("message", "")
    assert summary.read_text("utf-8").startswith("## No result: polite on golden")


@pytest.mark.django_db
def test_no_earlier_result_is_left_by_arguments_that_are_wrong(tmp_path: Path) -> None:
    junit = tmp_path / "gate.xml"
    junit.write_text("yesterday: Pass", encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        Command().run_from_argv(["manage.py", "regress", "--split", "all", "--junit", str(junit)])
    assert ended.value.code == 2
    (error,) = ElementTree.fromstring(junit.read_text("utf-8")).iter("error")  # noqa: S314  written by us
    assert error.get("type") == "wrong_input" and "--split" in error.get("message", "")


def test_a_file_that_cannot_be_written_ends_before_a_call_is_paid(labelled: Path, settings: Settings) -> None:
    with answering(settings, wrong_on(6, 4)) as stub:
        ended = regress(labelled, "--junit", str(labelled / "no" / "gate.xml"))
        assert (ended.code, stub.count) == (2, 0)
    assert "cannot be written: No such file or directory" in ended.error


@pytest.mark.heavy
def test_cut_off_answers_are_named_before_the_loss_that_they_make(labelled: Path, settings: Settings) -> None:
    def answer(body: Body) -> StubReply:
        reply = wrong_on(0, 0)(body)
        cut = MARK in conversation(body) and case_of(body, TRUTH) in CASES[:15]
        return StubReply("It was pol", finish_reason="length") if cut else reply

    with answering(settings, answer):
        ended = regress(labelled)
    assert ended.code == 1
    assert ended.answer["reasons"][0].startswith(
        "polite: the candidate has no verdict on 15 of 120 labelled chats (15 cut off)"
    )
    text = command("gate", str(ended.answer["test"])).answer
    assert text["criteria"][0]["after"]["no_verdict_by"] == {"cut_off": 15}
    assert "no verdict 0 → 15 (15 cut off)" in regression_text(RegressionTest.objects.get())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--criterion", "rude"), "--criterion: there is no criterion 'rude'"),
        (("--set", "silver"), "--set: there is no chat set 'silver'"),
        (("--profile", "none"), "--profile: there is no judge profile 'none'"),
        (("--by", "nobody"), "--by: there is no account 'nobody'"),
    ],
)
def test_what_does_not_exist_is_refused_by_name(
    options: tuple[str, str], message: str, labelled: Path
) -> None:
    given = {"--criterion": "polite", "--set": "golden"} | dict([options])
    words = [word for pair in given.items() for word in pair]
    assert message in refused("regress", "--prompt", labelled / "prompt.md", *words)
    assert not RegressionTest.objects.exists()
    assert not PromptVersion.objects.filter(text=PROMPT).exists()
