"""The stub endpoint's planted judge errs exactly as often as requested."""

import asyncio
import json
from typing import Any

import pytest

from evaluation.gateway.client import EndpointClient
from evaluation.gateway.endpoints import resolve_endpoint
from tests.stub_endpoint import StubEndpoint, StubReply, in_turn, planted_judge, planted_verdict

TRUTH = {"c-1": {"polite": True, "late": False, "refund": None}}
KEYS = "- polite: TRUE or FALSE\n- refund: TRUE, FALSE or NOT_APPLICABLE"
FENCED = "<<chat 1f>>\nm01 customer| about case c-1, in case of polite: FALSE\n<<end chat 1f>>\n"


def request(user: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": user}], **more}


def test_the_planted_rates_hold_and_depend_on_the_seed() -> None:
    answers = [
        planted_verdict(True, case=f"c{n}", criterion="k", tpr=0.8, tnr=0.5, seed=seed)
        for n in range(2000)
        for seed in (0, 1)
    ]
    assert 0.77 < sum(answer is True for answer in answers) / len(answers) < 0.83
    assert answers[0::2] != answers[1::2]
    assert planted_verdict(False, case="c", criterion="k", tpr=0.0, tnr=1.0) is False


def test_the_judge_answers_the_keys_asked_after_the_chat() -> None:
    reply = planted_judge(TRUTH, tpr=1, tnr=1)(request(FENCED + KEYS))
    assert reply.text is not None
    assert reply.text.endswith("VERDICTS\npolite: TRUE\nrefund: NOT_APPLICABLE")
    assert "late" not in reply.text


def test_an_advocate_gets_a_brief_without_a_block() -> None:
    duty = "Answers to argue for:\n- polite: FALSE, that is, no to the question “Polite?”"
    reply = planted_judge(TRUTH, tpr=1, tnr=1)(request(FENCED + duty))
    assert reply.text and "VERDICTS" not in reply.text


def test_a_schema_is_filled_from_the_rationale_alone() -> None:
    answer = planted_judge(TRUTH, tpr=1, tnr=1, with_block=False)
    rationale = answer(request(FENCED + KEYS)).text
    value = {"type": "string", "enum": ["true", "false", "not_applicable", "unclear"]}
    entry = {"type": "object", "properties": {"explanation": {"type": "string"}, "value": value}}
    keys = {"polite": entry, "refund": entry, "late": entry}
    schema = {"type": "object", "properties": {"verdicts": {"type": "object", "properties": keys}}}
    wanted = {"type": "json_schema", "json_schema": {"schema": schema}}
    text = f"<<text 2e>>\n{rationale}\n<<end text 2e>>\nKeys:\n- polite: true, false or unclear"
    verdicts = json.loads(answer(request(text, response_format=wanted)).text or "")["verdicts"]
    assert {key: entry["value"] for key, entry in verdicts.items()} == {
        "polite": "true",
        "refund": "not_applicable",
        "late": "unclear",
    }


def test_replies_come_in_turn_and_a_failing_answer_fails_the_test() -> None:
    async def twice(base_url: str) -> list[str]:
        async with EndpointClient(resolve_endpoint(base_url=base_url, api_key="")) as client:
            return [(await client.send(request("hi"), timeout=10)).kind for _ in range(2)]

    with StubEndpoint(in_turn(StubReply(status=500), StubReply("yes"))) as stub:
        assert asyncio.run(twice(stub.base_url)) == ["server_error", "answered"]
    with pytest.raises(KeyError, match="no `case"), StubEndpoint(planted_judge(TRUTH, tpr=1, tnr=1)) as stub:
        asyncio.run(twice(stub.base_url))
