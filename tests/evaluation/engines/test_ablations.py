"""Ablations of a debate: no briefs, briefs of another chat, the other order; what are briefs worth?"""

import asyncio
from dataclasses import replace

import pytest

from evaluation.core.types import Ablation, Chat, Message, VerdictResult
from evaluation.engines.core.debate import judge_by_debate
from evaluation.engines.core.session import Session
from evaluation.models.judges import Judge
from evaluation.models.runs import Run, RunChat
from evaluation.runs.worker.placebo_chat import placebo_chat
from labeling.models.chats import Chat as ChatRow
from tests.factories.rows import make_chat
from tests.factories.scripted_model import (
    CHAT,
    POLITE,
    SECRET,
    Script,
    answered,
    only,
    roles,
    setup_for,
    verdicts,
)

OTHER = Chat("0ther", (Message(1, "user", "Where is my parcel?"), Message(2, "assistant", "At the door.")))


def debated(
    model: Script, ablation: Ablation, *, other: Chat | None = OTHER, chat: Chat = CHAT
) -> VerdictResult:
    session = Session(
        chat=chat,
        criteria=(POLITE,),
        setup=replace(setup_for("debate"), ablation=ablation),
        model=model,
        fence_secret=SECRET,
        other_chat=other,
    )
    return only(asyncio.run(judge_by_debate(session)))


def script(customer: str = "The critic's case.", support: str = "The defender's case.") -> Script:
    return Script(
        {
            "customer": [answered(customer)],
            "support": [answered(support)],
            "judge": [verdicts(polite="FALSE")],
        }
    )


def test_without_briefs_nobody_but_the_judge_is_asked_and_nothing_is_flagged() -> None:
    model = script()
    verdict = debated(model, "no_briefs")
    assert roles(model) == ["judge"]
    assert model.prompt("judge").count("no brief from this side") == 2
    assert (verdict.value, verdict.sided_with, verdict.flags) == (False, "customer", ())


def test_placebo_briefs_are_the_very_requests_of_the_other_chats_own_debate() -> None:
    placebo, own = script(), script()
    debated(placebo, "placebo_briefs")
    debated(own, "", chat=OTHER)
    for role in ("customer", "support"):
        assert placebo.asked(role) == own.asked(role)
    assert "zebra-striped" in placebo.prompt("judge")
    assert "parcel" not in placebo.prompt("judge")


def test_quotes_of_placebo_briefs_are_looked_up_in_the_chat_that_is_judged() -> None:
    model = script(customer='Rude: [m1: "Where is my parcel?"]', support='Fine: [m2: "ask your bank"]')
    verdict = debated(model, "placebo_briefs")
    assert '[m1: "Where is my parcel?"] [not in m1]' in model.prompt("judge")
    assert '[m2: "ask your bank"] [verified]' in model.prompt("judge")
    assert verdict.flags == ("customer_unverified_quote",)


def test_a_run_of_one_chat_has_no_placebo_and_says_so() -> None:
    verdict = debated(script(), "placebo_briefs", other=None)
    assert verdict.flags == ("no_briefs", "no_customer_brief", "no_support_brief")


@pytest.mark.parametrize("content_hash", ["a", "b", "c", "d"])
def test_swapped_order_is_the_other_order_and_nothing_else(content_hash: str) -> None:
    chat = replace(CHAT, content_hash=content_hash)
    usual, swapped = script(), script()
    first, second = debated(usual, "", chat=chat), debated(swapped, "swapped_order", chat=chat)
    assert {first.first_brief, second.first_brief} == {"customer", "support"}
    assert sorted(usual.prompt("judge").splitlines()) == sorted(swapped.prompt("judge").splitlines())
    assert usual.asked("customer") == swapped.asked("customer")


def test_first_brief_names_the_one_that_the_judge_reads_first() -> None:
    model = script()
    verdict = debated(model, "")
    prompt = model.prompt("judge")
    customer_first = prompt.index("critic| The critic") < prompt.index("defender| The defender")
    assert verdict.first_brief == ("customer" if customer_first else "support")


# ---------- whose briefs ----------


@pytest.mark.django_db
def test_the_next_chat_of_the_run_lends_its_briefs_and_after_the_last_the_first() -> None:
    run, chats = run_over("a", "b", "c")
    lenders = [placebo_chat(run_id=run.pk, chat_id=chat.pk) for chat in chats]
    assert [lender and lender.content_hash for lender in lenders] == [
        chats[1].content_hash,
        chats[2].content_hash,
        chats[0].content_hash,
    ]


@pytest.mark.django_db
def test_a_chat_with_the_same_messages_is_no_other_chat() -> None:
    run, chats = run_over("a", "a")
    assert placebo_chat(run_id=run.pk, chat_id=chats[0].pk) is None
    run, chats = run_over("b", "b", "c")
    lender = placebo_chat(run_id=run.pk, chat_id=chats[0].pk)
    assert lender is not None and lender.content_hash == chats[2].content_hash


def run_over(*texts: str) -> tuple[Run, list[ChatRow]]:
    chats = [make_chat(messages=[("user", text)]) for text in texts]
    judge = Judge.objects.create(fingerprint="".join(texts), name="judge", config={})
    run = Run.objects.create(judge=judge)
    RunChat.objects.bulk_create(RunChat(run=run, chat=chat) for chat in chats)
    return run, chats
