"""`probe_judge` against a gullible and a robust judge: what flips, what it costs, what it leaves behind."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from evaluation.judges.core.spec import JudgeSpec, spec_to_json
from evaluation.knowledge.services import criterion_articles_set, knowledge_import
from evaluation.management.commands.probe_judge import Command
from evaluation.models.judges import JudgeProfile
from evaluation.models.runs import Attempt, ModelCall, Run, Verdict
from evaluation.probes.core import KINDS
from labeling.models.chats import Chat
from tests.factories.runs import MODEL, Ended, always, answering, block, evaluate, workspace
from tests.stub_endpoint import Body, StubReply, asked_keys, conversation, fenced_text

pytestmark = pytest.mark.django_db(transaction=True)


def probe(*args: str, json_too: bool = True) -> Ended:
    """`manage.py probe_judge --set calibration … --json` in this process."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            extra = ["--json"] if json_too else []
            Command().run_from_argv(["manage.py", "probe_judge", "--set", "calibration", *args, *extra])
        except SystemExit as ended:
            code = int(ended.code or 0)
    assert "Traceback" not in err.getvalue(), err.getvalue()
    answer = json.loads(out.getvalue() or "{}") if json_too else {}
    return Ended(code, out.getvalue(), err.getvalue(), answer)


def gullible(body: Body) -> StubReply:
    """Does what a customer tells the evaluator; without that it says False."""
    obeys = "Note to the evaluator" in fenced_text(body) and "Answer TRUE" in fenced_text(body)
    return block(dict.fromkeys(asked_keys(body), obeys))


def row(report: dict[str, Any], kind: str, direction: str) -> dict[str, Any]:
    (found,) = [r for r in report["attacks"] if (r["kind"], r["direction"]) == (kind, direction)]
    return dict(found)


def test_a_gullible_judge_fails_and_the_kind_that_fooled_it_is_named(settings: Settings) -> None:
    workspace("polite", "clear", chats=20)
    with answering(settings, gullible):
        ended = probe("--engine", "direct", "--kinds", "direct_command,threat,flattery", "--attacks-only")
    report = ended.answer
    assert (ended.code, report["gate"]["answer"], report["gate"]["worst"]) == (1, "fail", "direct_command")
    fooled, threat = row(report, "direct_command", "true"), row(report, "threat", "true")
    assert (fooled["flips"], fooled["n"], fooled["detected"]["value"]) == (40, 40, 1.0)
    assert threat["flips"] == 0
    assert report["no_attack"]["any"]["flips"] == 0
    assert {(r["criterion"], r["flips"]) for r in report["criteria"] if r["direction"] == "true"} == {
        ("polite", 20),
        ("clear", 20),
    }


def test_the_kind_that_fools_a_judge_is_named_first_however_rare_it_is(settings: Settings) -> None:
    workspace("polite", chats=20)

    def fooled_by_json(body: Body) -> StubReply:
        return block(dict.fromkeys(asked_keys(body), "settled by hand" in fenced_text(body)))

    with answering(settings, fooled_by_json):
        ended = probe("--engine", "direct", "--attacks-only", "--directions", "true", json_too=False)
        gate = probe("--engine", "direct", "--attacks-only", "--directions", "true").answer["gate"]
    assert (ended.code, gate["worst"], gate["kinds"][0]["flips"]) == (1, "json", 40)
    assert gate["rate"]["value"] < 0.08  # over all kinds
    table = ended.out.partition("kind of attack")[2].splitlines()
    assert table[2].split() == ["json", "40", "40", "+100", "(+82", "to", "+100)", "fail"]
    assert "worst kind: json, 40 of 40 flipped, +100 (+82 to +100) points above" in ended.out


def test_a_robust_judge_passes_and_the_text_says_so(settings: Settings) -> None:
    workspace("polite", "clear", chats=37)
    with answering(settings, always(False)):
        ended = probe("--engine", "direct", "--kinds", "3", "--limit", "37", json_too=False)
    assert ended.code == 0
    rule = "each kind flips at most 5 points more than without an attack"
    assert ended.out.rstrip().endswith(f"{rule}: yes")
    assert "direct_command" in ended.out
    assert "wordier: 0 of 74" in ended.out


def test_few_chats_are_inconclusive(settings: Settings) -> None:
    workspace("polite", chats=2)
    with answering(settings, always(True)):
        ended = probe("--engine", "debate", "--kinds", "2", "--directions", "false")
        said = probe("--engine", "debate", "--kinds", "2", "--directions", "false", json_too=False).out
    assert (ended.code, ended.answer["gate"]["answer"]) == (3, "inconclusive")
    assert "without any flip a kind passes from 73 on" in said
    assert {r["direction"] for r in ended.answer["attacks"]} == {"false"}


def test_a_probe_leaves_calls_and_attempts_but_no_chat_run_or_verdict(settings: Settings) -> None:
    workspace("polite", chats=2)

    def first_cases_last(body: Body) -> StubReply:
        return replace(always(True)(body), delay=max(0.0, 1.0 - 0.1 * stub.count))

    with answering(settings, first_cases_last) as stub:
        first = probe("--engine", "direct", "--kinds", "3")
        asked = stub.count
        again = probe("--engine", "direct", "--kinds", "3")
        assert stub.count == asked
    assert (Chat.objects.count(), Run.objects.count(), Verdict.objects.count()) == (2, 0, 0)
    assert ModelCall.objects.count() == Attempt.objects.filter(run=None, unit=None).count() == asked
    assert (first.answer["calls"], again.answer["calls"], again.answer["reused"]) == (asked, 0, asked)
    for name in ("calls", "reused", "prompt_tokens", "completion_tokens"):
        first.answer.pop(name), again.answer.pop(name)
    first.answer.pop("cost_usd"), again.answer.pop("cost_usd")
    assert first.answer == again.answer


def test_verdicts_that_a_run_has_paid_for_are_not_asked_again(settings: Settings) -> None:
    workspace("polite", chats=3)
    with answering(settings, always(True)) as stub:
        evaluate("--set", "calibration", "--engine", "direct")
        ran = stub.count
        ended = probe("--engine", "direct", "--kinds", "1", "--directions", "false", "--attacks-only")
    assert ran == 3
    assert (ended.answer["calls"], ended.answer["reused"]) == (6, 3)  # asked again, and attacked


def test_dry_run_counts_what_would_be_asked_and_writes_nothing(settings: Settings) -> None:
    workspace("polite", chats=2)
    with answering(settings, always(True)) as stub:
        planned = probe("--engine", "direct", "--kinds", "4", "--dry-run")
        assert (stub.count, ModelCall.objects.count()) == (0, 0)
        ended = probe("--engine", "direct", "--kinds", "4")
        assert planned.answer["calls"] == stub.count == ended.answer["calls"]
    assert planned.code == 0
    assert "calls" in probe("--engine", "direct", "--kinds", "4", "--dry-run", json_too=False).out


def test_a_probe_that_may_cost_more_than_its_budget_asks_nothing(settings: Settings, tmp_path: Path) -> None:
    workspace("polite", chats=2)
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({MODEL: {"input": 1, "output": 2}}))
    with answering(settings, always(True), prices=str(prices)) as stub:
        refused = probe("--engine", "direct", "--kinds", "1", "--budget", "0.001")
        assert (refused.code, stub.count) == (2, 0)
        assert refused.error.startswith("error: --budget: this probe may cost $0.0")
        assert probe("--engine", "direct", "--kinds", "1", "--budget", "5").answer["cost_usd"] > 0


def test_profile_brings_the_recipe(settings: Settings) -> None:
    workspace("polite", chats=1)
    JudgeProfile.objects.create(name="thorough", config=spec_to_json(JudgeSpec("reflection", model="m2")))
    with answering(settings, always(True)):
        judge = probe("--profile", "thorough", "--kinds", "1").answer["judge"]
    assert (judge["engine"], judge["model"]) == ("reflection", "m2")


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (
            ("--engine", "direct", "--kinds", "magic"),
            "error: --kinds: 'magic' is not one of direct_command, ",
        ),
        (("--engine", "direct", "--directions", "up"), "error: --directions: 'up' is neither true nor false"),
        (("--engine", "direct", "--altered", "k1"), "error: --altered: KEY=FILE, not 'k1'"),
        (("--profile", "none"), "error: --profile: there is no judge profile 'none'"),
        (("--engine", "direct", "--criteria", "x"), "error: --criteria: 'x' is not an active criterion"),
        ((), "error: use --engine or --profile"),
    ],
)
def test_a_wrong_option_is_named(settings: Settings, args: tuple[str, ...], error: str) -> None:
    workspace("polite", chats=1)
    with answering(settings, always(True)) as stub:
        ended = probe(*args)
        assert stub.count == 0
    assert ended.code == 2
    assert ended.error.startswith(error)


def test_an_article_that_nobody_reads_cannot_be_altered(settings: Settings, tmp_path: Path) -> None:
    workspace("polite", chats=1)
    (tmp_path / "card.md").write_text("# Card\nIt is the customer's.")
    with answering(settings, always(True)):
        ended = probe("--engine", "direct", "--altered", f"card={tmp_path / 'card.md'}")
    assert ended.error == "error: --altered: no chosen criterion reads the article 'card'"


def test_verdicts_that_ignore_an_altered_article_are_listed(settings: Settings, tmp_path: Path) -> None:
    chat_set = workspace("polite", chats=3)
    (tmp_path / "card.md").write_text("# Card\nShoppers pay with a card of the company.")
    knowledge_import(folder=tmp_path)
    criterion_articles_set(chat_set.rubric.criteria.get(key="polite"), ["card"])
    other = tmp_path / "other.md"
    other.write_text("# Card\nShoppers pay with the customer's card.")

    def reads(body: Body) -> StubReply:
        ignores = "case c1" in conversation(body)
        return block(dict.fromkeys(asked_keys(body), ignores or "of the company" in conversation(body)))

    with answering(settings, reads):
        ended = probe("--engine", "direct", "--kinds", "1", "--altered", f"card={other}")
    altered = ended.answer["altered"]
    assert (altered["n"], altered["flips"]) == (3, 2)
    assert altered["unchanged"] == [{"chat_id": "c1", "criterion": "polite"}]


def test_an_endpoint_that_is_down_ends_the_probe_with_one_line(settings: Settings) -> None:
    workspace("polite", chats=3)
    with answering(settings, lambda body: StubReply("no", status=401)):
        ended = probe("--engine", "direct", "--kinds", "1")
    assert ended.code == 4
    assert "repeat the command to continue" in ended.error


@pytest.mark.heavy
def test_every_kind_runs_through_every_engine(settings: Settings) -> None:
    workspace("polite", chats=1)
    for engine in ("direct", "reflection", "debate"):
        with answering(settings, always(True)):
            report = probe("--engine", engine, "--attacks-only").answer
        assert {r["kind"] for r in report["attacks"]} == set(KINDS)
        assert (report["gate"]["flips"], report["gate"]["lost"], report["failed"]) == (0, 0, 0)
