"""An audit reads prose without its block once more: it flags what contradicts and changes no verdict."""

import json

import pytest

from evaluation.core.types import Engine, Reply, Request
from tests.factories.scripted_model import (
    BOTH,
    POLITE,
    Answering,
    Script,
    answered,
    judged,
    only,
    roles,
    verdicts,
)


def copied(**values: str) -> Reply:
    entries = {key: {"explanation": "as it says", "value": value} for key, value in values.items()}
    return answered(json.dumps({"verdicts": entries}))


@pytest.mark.parametrize(
    ("found", "flag"),
    [
        (copied(polite="true"), "audited"),
        (copied(polite="false"), "audit_contradicts"),
        (copied(polite="unclear"), "audit_unclear"),
        (answered("no JSON"), "audit_unclear"),
        (Reply("failed", "", "timeout"), "audit_unclear"),
    ],
)
def test_flag_says_what_the_prose_alone_concludes_and_the_verdict_stays(found: Reply, flag: str) -> None:
    model = Script({"direct": [verdicts(polite="TRUE")], "formatter": [found]})
    result = judged(model, engine="direct", audit=1.0)
    verdict = only(result.verdicts)
    assert (verdict.state, verdict.value, verdict.read_by, verdict.flags) == ("read", True, "rules", (flag,))
    assert [use.role for use in result.calls] == ["direct", "formatter"]


def test_formatter_reads_the_prose_without_the_block() -> None:
    model = Script({"direct": [verdicts(polite="TRUE")], "formatter": [copied(polite="true")]})
    judged(model, engine="direct", audit=1.0)
    assert "What the chat shows." in model.prompt("formatter")
    assert "VERDICTS" not in model.prompt("formatter")
    assert "polite: TRUE" not in model.prompt("formatter")


def test_only_what_the_rules_read_is_audited() -> None:
    first = verdicts(polite="HM", wrong_fact="TRUE")
    model = Script({"direct": [first], "formatter": [copied(polite="true"), copied(wrong_fact="true")]})
    polite, wrong_fact = judged(model, engine="direct", criteria=BOTH, audit=1.0).verdicts
    assert (polite.flags, wrong_fact.flags) == ((), ("audited",))
    schema = model.asked("formatter")[1].schema
    assert schema is not None
    assert list(schema["properties"]["verdicts"]["properties"]) == ["wrong_fact"]


@pytest.mark.parametrize("reply", [Reply("refused", ""), answered("VERDICTS\npolite: TRUE")])
def test_nothing_is_audited_without_prose(reply: Reply) -> None:
    model = Script({"direct": [reply]})
    assert only(judged(model, engine="direct", audit=1.0).verdicts).flags == ()
    assert roles(model) == ["direct"]


def test_without_the_option_nothing_is_audited() -> None:
    model = Script({"direct": [verdicts(polite="TRUE")]})
    judged(model, engine="direct")
    assert roles(model) == ["direct"]


@pytest.mark.parametrize("engine", ["reflection", "debate"])
def test_only_the_final_pass_is_audited(engine: Engine) -> None:
    def answer(request: Request) -> Reply:
        return copied(polite="false") if request.role == "formatter" else verdicts(polite="TRUE")

    model = Answering(answer)
    verdict = only(judged(model, engine=engine, audit=1.0).verdicts)
    assert [request.role for request in model.requests].count("formatter") == 1
    assert model.requests[-1].role == "formatter"
    assert (verdict.value, "audit_contradicts" in verdict.flags) == (True, True)


def test_the_share_is_chosen_by_the_answers_own_hash_so_that_a_repeated_run_chooses_the_same() -> None:
    def drawn(share: float) -> set[int]:
        found = set()
        for n in range(400):
            reply = answered(f"Reason {n}.\nVERDICTS\npolite: TRUE")
            model = Script({"direct": [reply], "formatter": [copied(polite="true")]})
            if (
                "audited"
                in only(judged(model, engine="direct", criteria=[POLITE], audit=share).verdicts).flags
            ):
                found.add(n)
        return found

    some = drawn(0.25)
    assert 60 < len(some) < 140
    assert drawn(0.25) == some
    assert some < drawn(0.5)
