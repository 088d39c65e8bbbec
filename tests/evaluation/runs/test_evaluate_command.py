"""`evaluate` plans a run, works it off and says what came of it."""

import hashlib
import json
import re
import threading
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings

from evaluation.models.judges import Judge
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Attempt, ModelCall, Run, Unit, UnitCall, Verdict
from evaluation.prompts.queries.versions import champions
from evaluation.runs.services.control import run_cancel
from labeling.models.people import Workspace
from labeling.models.rubric import Criterion, CriterionVersion
from tests.factories.batches import batching
from tests.factories.rows import make_criterion, make_set
from tests.factories.runs import (
    MODEL,
    always,
    answering,
    block,
    by_role,
    calls_by_role,
    chats_of,
    evaluate,
    formatted,
    rubric_of,
    the_run,
    verdicts_of,
    workspace,
)
from tests.stub_endpoint import StubReply, asked_keys, conversation, planted_judge

pytestmark = pytest.mark.django_db(transaction=True)

TRUTH = {f"c{n}": {"polite": n % 2 == 0, "wrong_fact": n == 0, "happy": None} for n in range(4)}
WRITTEN = (Run, Judge, PromptVersion, Unit, ModelCall, Attempt, Verdict, Workspace)


def mixed_set(chats: int = 3):
    """One criterion of each tier, the second one good when False, the third with N/A."""
    rubric = rubric_of("polite")
    make_criterion("wrong_fact", rubric=rubric, tier="context", passes_when=False)
    make_criterion("happy", rubric=rubric, tier="subjective", allow_na=True)
    return make_set(rubric, *chats_of(chats))


ENGINE_CALLS = {
    "direct": {"direct": 9},
    "reflection": {"direct": 9, "reflector": 9},
    "debate": {"customer": 9, "judge": 9, "support": 9},
    "auto": {"customer": 6, "direct": 3, "judge": 6, "support": 6},
}


@pytest.mark.parametrize("engine", list(ENGINE_CALLS))
def test_every_engine_reaches_the_verdicts_of_its_judge(settings: Settings, engine: str) -> None:
    mixed_set()
    with answering(settings, planted_judge(TRUTH, tpr=1, tnr=1)) as stub:
        ended = evaluate("--set", "calibration", "--engine", engine)
        assert stub.count == sum(ENGINE_CALLS[engine].values())
    assert ended.code == 0
    assert calls_by_role() == ENGINE_CALLS[engine]
    run = the_run()
    assert (run.state, run.judge.engine, run.judge.model) == ("done", engine, MODEL)
    expected = {
        (case, key): ("read", value) for case in ("c0", "c1", "c2") for key, value in TRUTH[case].items()
    }
    assert verdicts_of(run) == expected


def test_json_answer_has_the_contracted_keys(settings: Settings) -> None:
    workspace("polite", chats=2)
    with answering(settings, always(True)):
        ended = evaluate("--set", "calibration", "--engine", "direct")
    run = the_run()
    assert ended.answer == {
        "run": run.pk,
        "state": "done",
        "verdicts": 2,
        "read": 2,
        "unparsed": 0,
        "refused": 0,
        "cut_off": 0,
        "too_long": 0,
        "failed": 0,
        "calls": 2,
        "reused": 0,
        "prompt_tokens": run.prompt_tokens,
        "completion_tokens": run.completion_tokens,
        "cost_usd": None,
        "unknown_cost_requests": 2,
        "unknown_cost_usd": None,
    }
    assert run.prompt_tokens > 0 < run.completion_tokens
    assert len(ended.out.splitlines()) == 1


def test_every_verdict_state_is_counted(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    workspace("polite", chats=6)
    long = json.dumps({"error": {"code": "context_length_exceeded"}}).encode()
    replies = {
        "c1": StubReply(refusal="I cannot help with that."),
        "c2": StubReply("No block at all."),
        "c3": StubReply("half", finish_reason="length"),
        "c4": StubReply(status=400, raw=long),
        "c5": StubReply(status=400),
    }

    def answer(body):
        case = re.search(r"case (c\d)", body["messages"][-1]["content"])
        return (case and replies.get(case[1])) or always(True)(body)

    with answering(settings, answer):
        counted = evaluate("--set", "calibration", "--engine", "direct").answer
        states = ("read", "unparsed", "refused", "cut_off", "too_long", "failed")
        assert [counted[state] for state in states] == [1] * 6
        assert counted["verdicts"] == 6
        with pytest.raises(CommandError):
            call_command("evaluate", "--set", "calibration", "--engine", "direct")
    assert "6 verdicts, 1 unparsed, 1 refused, 1 cut off, 1 too long, 1 failed," in capsys.readouterr().out


@pytest.mark.parametrize("mode", [[], ["--batch"]])
def test_a_cancelled_run_exits_4(settings: Settings, mode: list[str]) -> None:
    workspace("polite", chats=3)

    def cancel() -> None:
        if (run := the_run()).state == "running":
            run_cancel(run=run, by=None)
        connection.close()

    def answer(body):
        other = threading.Thread(target=cancel)
        other.start()
        other.join()
        return always(True)(body)

    with batching(settings, answer):
        ended = evaluate("--set", "calibration", "--engine", "direct", *mode)
    assert (ended.code, ended.answer["state"]) == (4, "cancelled")
    assert "is cancelled (cancelled by the command line)" in ended.error


def test_call_command_ends_in_the_same_answer(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    workspace("polite", chats=1)
    with answering(settings, always(False)):
        call_command("evaluate", "--set", "calibration", "--engine", "direct")
        with pytest.raises(CommandError) as caught:
            call_command("evaluate", "--set", "calibration", "--engine", "guess")
    assert caught.value.returncode == 2
    assert f"run {the_run().pk} done: 1 verdicts, 0 unparsed, 1 calls, 0 reused" in capsys.readouterr().out


def test_reflection_keeps_the_first_verdict_beside_the_final_one(settings: Settings) -> None:
    workspace("polite", chats=1)

    def reviewer(body):
        audits = "draft|" in conversation(body)
        return block({"polite": not audits}, prose='CHANGE: [m2: "It is on its way."]' if audits else "Kind.")

    with answering(settings, reviewer):
        assert evaluate("--set", "calibration", "--engine", "reflection").code == 0
    verdict = Verdict.objects.get()
    assert (verdict.first_state, verdict.first_value) == ("read", True)
    assert (verdict.state, verdict.value) == ("read", False)


def test_advocates_in_a_debate_run_in_parallel_and_never_see_each_other(settings: Settings) -> None:
    workspace("wrong_fact", chats=1, passes_when=False)
    briefs = {"customer": "wrong_fact\nThe customer-side case.", "support": "wrong_fact\nThe bot-side case."}

    def debater(body):
        asked = body["messages"][-1]["content"]
        if "Your duty: judge" in asked:
            return block({"wrong_fact": True})
        side = "customer" if "the customer's brief" in asked else "support"
        return StubReply(briefs[side], delay=0.3)

    with answering(settings, debater) as stub:
        assert evaluate("--set", "calibration", "--engine", "debate").code == 0
        assert stub.most_in_flight == 2
        first, second, judge = (conversation(body) for body in stub.requests)
    assert "side case" not in first + second
    assert "The customer-side case." in judge
    assert "The bot-side case." in judge
    assert Verdict.objects.get().sided_with == "customer"


@pytest.mark.parametrize(
    ("grouping", "groups"),
    [
        ("criterion", [["a"], ["b"], ["c"]]),
        ("dimension", [["a", "b"], ["c"]]),
        ("rubric", [["a", "b", "c"]]),
        ("auto", [["a"], ["b"], ["c"]]),
    ],
)
def test_grouping_decides_which_criteria_share_a_call(
    settings: Settings, grouping: str, groups: list[list[str]]
) -> None:
    rubric = rubric_of("a")
    make_criterion("b", rubric=rubric, tier="context")
    make_criterion("c", rubric=rubric, dimension="chat_efficiency")
    make_set(rubric, *chats_of(1))
    with answering(settings, always(True)) as stub:
        ended = evaluate("--set", "calibration", "--engine", "direct", "--grouping", grouping)
        asked = sorted(sorted(asked_keys(body)) for body in stub.requests)
    assert asked == groups
    assert ended.answer["verdicts"] == 3


def test_limit_takes_the_first_chats_of_the_set(settings: Settings) -> None:
    workspace("polite", chats=4)
    with answering(settings, always(True)):
        evaluate("--set", "calibration", "--engine", "direct", "--limit", "2")
    assert {chat for chat, _ in verdicts_of(the_run())} == {"c0", "c1"}


def test_split_and_criteria_narrow_what_is_asked(settings: Settings) -> None:
    chat_set = mixed_set()
    chat_set.members.filter(chat__external_id="c1").update(split="holdout")
    with answering(settings, always(True)) as stub:
        args = ("--set", "calibration", "--engine", "direct", "--split", "holdout")
        evaluate(*args, "--criteria", "polite, happy")
        assert stub.count == 2
    assert set(verdicts_of(the_run())) == {("c1", "polite"), ("c1", "happy")}
    assert list(the_run().run_chats.values_list("split", flat=True)) == ["holdout"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--set", "nowhere", "--engine", "direct"), "--set: there is no chat set 'nowhere'"),
        (("--set", "calibration", "--engine", "direct", "--criteria", "polite,rude"), "'rude'"),
        (("--set", "calibration", "--engine", "direct", "--split", "train"), "no chats in split 'train'"),
        (("--set", "calibration"), "--engine"),
        (("--set", "calibration", "--engine", "oracle"), "--engine"),
        (("--set", "calibration", "--engine", "direct", "--limit", "0"), "--limit"),
        (("--set", "calibration", "--engine", "direct", "--limit", "few"), "--limit"),
        (("--set", "calibration", "--engine", "direct", "--replicate", "-1"), "--replicate"),
        (("--resume", "4711"), "--resume: there is no run 4711"),
    ],
)
def test_wrong_usage_exits_2_and_writes_nothing(
    settings: Settings, args: tuple[str, ...], words: str
) -> None:
    workspace("polite", chats=1)
    with answering(settings, always(True)) as stub:
        ended = evaluate(*args)
        assert stub.count == 0
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.error
    assert not any(model.objects.exists() for model in WRITTEN)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (
            "LACE_PRICES",
            "/nowhere/prices.json",
            "directory) (setting: LACE_PRICES)",
        ),
        ("OPENAI_BASE_URL", "ftp://elsewhere", "(setting: OPENAI_BASE_URL)"),
        ("OPENAI_API_KEY", "two words", "(setting: OPENAI_API_KEY)"),
    ],
)
def test_settings_that_cannot_work_exit_2_and_write_nothing(
    settings: Settings, name: str, value: str, words: str
) -> None:
    workspace("polite", chats=1)
    with answering(settings, always(True)) as stub:
        setattr(settings, name, value)
        ended = evaluate("--set", "calibration", "--engine", "direct")
        assert stub.count == 0
    assert ended.code == 2
    assert words in ended.error
    assert not any(model.objects.exists() for model in WRITTEN)


def test_resume_at_another_endpoint_is_refused_and_leaves_the_run_as_it_was(
    settings: Settings,
) -> None:
    workspace("polite", chats=1)
    with answering(settings, lambda body: StubReply(raw=b"x" * 1_100_000)):
        assert evaluate("--set", "calibration", "--engine", "direct").code == 4
    before = Run.objects.values().get()
    with answering(settings, always(True)) as stub:
        ended = evaluate("--resume", str(before["id"]))
        assert stub.count == 0
    assert ended.code == 2
    assert Run.objects.values().get() == before
    assert Verdict.objects.filter(state="failed").count() == 1


@pytest.mark.parametrize("engine", list(ENGINE_CALLS))
def test_dry_run_writes_and_sends_nothing_and_foretells_the_calls(settings: Settings, engine: str) -> None:
    mixed_set()
    with answering(settings, planted_judge(TRUTH, tpr=1, tnr=1)) as stub:
        planned = evaluate("--set", "calibration", "--engine", engine, "--dry-run")
        assert stub.count == 0
        assert not any(model.objects.exists() for model in WRITTEN)
        done = evaluate("--set", "calibration", "--engine", engine)
        assert planned.answer["calls"] == done.answer["calls"] == stub.count
    assert (planned.code, planned.answer["reused"], planned.answer["cost_usd"]) == (0, 0, None)


def test_dry_run_counts_what_is_answered_already_apart(settings: Settings, tmp_path: Path) -> None:
    mixed_set()
    prices = tmp_path / "prices.json"
    prices.write_text(f'{{"{MODEL}": {{"input": 1, "output": 2}}}}')
    with answering(settings, planted_judge(TRUTH, tpr=1, tnr=1), prices=str(prices)):
        args = ("--set", "calibration", "--engine", "debate")
        evaluate(*args, "--limit", "2")
        planned = evaluate(*args, "--dry-run").answer
        done = evaluate(*args).answer
        again = evaluate(*args, "--dry-run").answer
    assert (planned["calls"], planned["reused"]) == (done["calls"], done["reused"]) == (9, 18)
    assert planned["cost_usd"] >= done["cost_usd"] > 0
    assert (again["calls"], again["reused"], again["cost_usd"]) == (0, 27, 0)


def test_a_rubric_without_prompts_gets_a_generated_version_1(settings: Settings) -> None:
    workspace("zebra_striped", chats=1, question="Were the stripes named?")
    with answering(settings, always(True)) as stub:
        assert evaluate("--set", "calibration", "--engine", "direct").code == 0
        asked = conversation(stub.requests[0])
    prompt = PromptVersion.objects.get()
    assert (prompt.number, prompt.origin) == (1, "generated")
    assert "Were the stripes named?" in asked
    assert "True when zebra_striped." in asked


def test_a_judged_criterions_new_text_makes_a_draft_and_does_not_reach_the_judge(settings: Settings) -> None:
    workspace("polite", chats=1)
    with answering(settings, always(True)) as stub:
        evaluate("--set", "calibration", "--engine", "direct")
        definition = "True when no message is rude."
        CriterionVersion.objects.create(
            criterion=Criterion.objects.get(),
            number=2,
            question="Is polite so?",
            definition=definition,
            content_hash=hashlib.sha256(definition.encode()).hexdigest(),
        )
        evaluate("--set", "calibration", "--engine", "direct", "--replicate", "1")
        assert all(definition not in conversation(body) for body in stub.requests)
    first, draft = PromptVersion.objects.all()
    assert definition in draft.text
    assert champions(criteria=Criterion.objects.all()) == {first.criterion_id: first}


def test_a_shipped_prompt_serves_its_own_question(settings: Settings) -> None:
    question = "Was every bot message polite and professional?"
    workspace("polite_professional", chats=1, question="Is it blue?")
    with answering(settings, always(True)):
        evaluate("--set", "calibration", "--engine", "direct")
    assert PromptVersion.objects.get().origin == "generated"
    assert question not in PromptVersion.objects.get().text


def test_what_the_rules_cannot_read_goes_to_the_formatter(settings: Settings) -> None:
    workspace("polite", chats=2)
    answers = by_role(
        reasoning=lambda body: StubReply("The bot was kind throughout."),
        formatter=lambda body: formatted({"polite": "true"}),
    )
    with answering(settings, answers):
        ended = evaluate("--set", "calibration", "--engine", "direct")
    assert (ended.code, ended.answer["calls"], ended.answer["unparsed"]) == (0, 3, 0)
    assert list(Verdict.objects.values_list("value", "read_by")) == [(True, "formatter")] * 2


@pytest.mark.parametrize("word", ["unclear", "maybe", ""])
def test_what_nobody_can_read_is_unparsed_and_never_guessed(settings: Settings, word: str) -> None:
    workspace("polite", chats=1)
    answers = by_role(
        reasoning=lambda body: StubReply("Hard to say."),
        formatter=lambda body: formatted({"polite": word}) if word else StubReply("not JSON"),
    )
    with answering(settings, answers):
        ended = evaluate("--set", "calibration", "--engine", "direct")
    assert (ended.code, ended.answer["state"], ended.answer["unparsed"]) == (0, "done", 1)
    assert verdicts_of(the_run()) == {("c0", "polite"): ("unparsed", None)}


def test_every_verdict_leads_to_its_calls(settings: Settings) -> None:
    workspace("polite", chats=1)
    with answering(settings, always(True)):
        evaluate("--set", "calibration", "--engine", "debate")
    verdict = Verdict.objects.get()
    uses = UnitCall.objects.filter(unit=verdict.unit).values_list("role", "step", "reused")
    assert sorted(uses) == [("customer", 1, False), ("judge", 1, False), ("support", 1, False)]
