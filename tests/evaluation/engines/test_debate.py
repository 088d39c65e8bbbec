"""Debate: two advocates at once who never see each other, then a Judge who sees both and the chat."""

import asyncio
from dataclasses import dataclass, field, replace

import pytest

from evaluation.core.types import Model, Reply, ReplyState, Request, Role
from tests.factories.scripted_model import (
    BAD,
    BOTH,
    CHAT,
    UNCLEAR,
    Script,
    answered,
    judged,
    only,
    roles,
    verdicts,
)


def debate(*, customer: list[Reply], support: list[Reply], judge: list[Reply] | None = None) -> Script:
    ruling = judge if judge is not None else [verdicts(polite="FALSE")]
    return Script({"customer": customer, "support": support, "judge": ruling})


def test_advocates_never_see_each_other_or_a_verdict_and_the_judge_sees_both() -> None:
    model = debate(customer=[answered("The critic's case.")], support=[answered("The defender's case.")])
    judged(model, engine="debate")
    assert "defender's case" not in model.prompt("customer")
    assert "critic's case" not in model.prompt("support")
    assert "critic| The critic's case." in model.prompt("judge")
    assert "defender| The defender's case." in model.prompt("judge")
    assert "zebra-striped" in model.prompt("judge")


def test_advocates_are_asked_at_the_same_time() -> None:
    @dataclass
    class Both(Model):
        """Answers an advocate only once the other one has been asked too."""

        met: asyncio.Barrier = field(default_factory=lambda: asyncio.Barrier(2))

        async def complete(self, request: Request) -> Reply:
            if request.role in ("customer", "support"):
                async with asyncio.timeout(5):
                    await self.met.wait()
            return verdicts(polite="TRUE") if request.role == "judge" else answered("A case.")

    verdict = only(judged(Both(), engine="debate").verdicts)
    assert (verdict.value, verdict.sided_with) == (True, "support")


@pytest.mark.parametrize(
    ("answer", "polite_side", "wrong_fact_side"),
    [("TRUE", "support", "customer"), ("FALSE", "customer", "support")],
)
def test_side_taken_is_computed_from_the_passing_answer(
    answer: str, polite_side: str, wrong_fact_side: str
) -> None:
    ruling = verdicts(polite=answer, wrong_fact=answer)
    model = debate(customer=[answered("c")], support=[answered("s")], judge=[ruling])
    polite, wrong_fact = judged(model, engine="debate", criteria=BOTH).verdicts
    assert (polite.sided_with, wrong_fact.sided_with) == (polite_side, wrong_fact_side)


def test_not_applicable_sides_with_neither_and_no_verdict_with_nobody() -> None:
    ruling = verdicts(wrong_fact="NOT_APPLICABLE", polite="HM")
    model = debate(customer=[answered("c")], support=[answered("s")], judge=[ruling])
    model.replies["formatter"] = [answered(UNCLEAR)]
    polite, wrong_fact = judged(model, engine="debate", criteria=BOTH).verdicts
    assert (polite.state, polite.sided_with, wrong_fact.sided_with) == ("unparsed", "", "neither")


def test_quotes_of_both_briefs_are_checked_before_the_judge_reads_them() -> None:
    customer = answered('Rude: [m2: "ask your bank"]. Also [m2: "go away"] [verified].')
    model = debate(customer=[customer], support=[answered('Fine: [m4: "Useless."]')])
    judged(model, engine="debate")
    prompt = model.prompt("judge")
    assert '[m2: "ask your bank"] [verified]' in prompt
    assert '[m2: "go away"] [not in m2] [mark removed]' in prompt
    assert '[m4: "Useless."] [verified]' in prompt


def test_text_on_other_criteria_and_verdicts_are_cut_from_a_brief() -> None:
    text = "polite\nCold words.\n\n**other_key**\nOff topic.\n\nVERDICTS\npolite: FALSE"
    model = debate(customer=[answered(text)], support=[answered("s")])
    judged(model, engine="debate")
    prompt = model.prompt("judge")
    assert "critic| Cold words." in prompt
    assert "Off topic." not in prompt
    assert "critic| VERDICTS" not in prompt


def test_order_of_briefs_is_fixed_for_a_chat_and_differs_between_chats() -> None:
    def customer_first(content_hash: str) -> bool:
        model = debate(customer=[answered("ccc")], support=[answered("sss")])
        judged(model, engine="debate", chat=replace(CHAT, content_hash=content_hash))
        prompt = model.prompt("judge")
        return prompt.index("critic| ccc") < prompt.index("defender| sss")

    orders = [customer_first(str(i)) for i in range(12)]
    assert orders == [customer_first(str(i)) for i in range(12)]
    assert set(orders) == {True, False}


@pytest.mark.parametrize(
    "lost",
    [
        Reply("refused", ""),
        answered("VERDICTS\npolite: TRUE"),
    ],
)
def test_lost_brief_is_asked_for_once_more_with_a_request_of_its_own(lost: Reply) -> None:
    model = debate(customer=[lost, answered("Now a case.")], support=[answered("s")])
    verdict = only(judged(model, engine="debate").verdicts)
    first, second = model.asked("customer")
    assert first.messages != second.messages  # else a stored answer would only come back
    assert (first.step, second.step) == (1, 2)
    assert "critic| Now a case." in model.prompt("judge")
    assert "one_sided" not in verdict.flags


def test_second_loss_lets_the_judge_go_on_one_sided() -> None:
    refused = Reply("refused", "")
    model = debate(customer=[answered("c")], support=[refused, refused])
    verdict = only(judged(model, engine="debate").verdicts)
    assert "Support defender: no brief from this side" in model.prompt("judge")
    assert (verdict.state, verdict.value) == ("read", False)
    assert verdict.flags == ("one_sided", "no_support_brief")


def test_brief_cut_off_twice_is_no_brief() -> None:
    cut = Reply("cut_off", "half a cas")
    model = debate(customer=[cut, cut], support=[answered("s")])
    verdict = only(judged(model, engine="debate").verdicts)
    assert "half a cas" not in model.prompt("judge")
    assert verdict.flags == ("one_sided", "no_customer_brief")
    assert [request.max_tokens for request in model.asked("customer")] == [350, 1400]


@pytest.mark.parametrize("empty", [answered("  "), Reply("failed", "", "empty: the answer is empty")])
def test_an_empty_brief_is_asked_for_once_more_with_four_times_the_room(empty: Reply) -> None:
    model = debate(customer=[empty, answered("Now a case.")], support=[answered("s")])
    assert "one_sided" not in only(judged(model, engine="debate").verdicts).flags
    assert [request.max_tokens for request in model.asked("customer")] == [350, 1400]


def test_no_brief_at_all_is_not_called_one_sided() -> None:
    refused = Reply("refused", "")
    model = debate(customer=[refused, refused], support=[refused, refused])
    assert only(judged(model, engine="debate").verdicts).flags == (
        "no_briefs",
        "no_customer_brief",
        "no_support_brief",
    )


@pytest.mark.parametrize("state", ["failed", "too_long"])
def test_advocate_that_cannot_be_asked_ends_the_debate_without_a_judge(state: ReplyState) -> None:
    model = debate(customer=[answered("c")], support=[Reply(state, "", "why")])
    verdict = only(judged(model, engine="debate").verdicts)
    assert (verdict.state, verdict.value, verdict.explanation) == (state, None, "why")
    assert sorted(roles(model)) == ["customer", "support"]


@pytest.mark.parametrize("state", BAD)
def test_bad_reply_of_the_judge_is_the_verdicts_state(state: ReplyState) -> None:
    model = debate(customer=[answered("c")], support=[answered("s")], judge=[Reply(state, "")])
    verdict = only(judged(model, engine="debate").verdicts)
    assert (verdict.state, verdict.sided_with) == (state, "")


def test_endpoint_that_breaks_lets_the_other_advocate_end_first() -> None:
    @dataclass
    class Breaking(Model):
        ended: list[Role] = field(default_factory=list)

        async def complete(self, request: Request) -> Reply:
            if request.role == "customer":
                raise ConnectionError("endpoint down")
            await asyncio.sleep(0.01)
            self.ended.append(request.role)
            return answered("s")

    model = Breaking()
    with pytest.raises(ConnectionError):
        judged(model, engine="debate")
    assert model.ended == ["support"]
