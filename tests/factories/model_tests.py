"""Endpoints that find the chat of a model test in the request and word the answer."""

from collections.abc import Callable

from evaluation.model_tests.chats import CHATS, KEY, RATIONALES
from tests.factories.runs import formatted
from tests.stub_endpoint import Body, StubReply, conversation

Reply = Callable[[Body, str, bool, bool], StubReply]


def knowing(reply: Reply) -> Callable[[Body], StubReply]:
    """An endpoint that finds the test's chat or rationale in the request; `reply` words the answer."""

    def answer(body: Body) -> StubReply:
        text = conversation(body)
        for rationale, truth in RATIONALES:
            if rationale in text:
                return formatted({KEY: "true" if truth else "false"})
        for chat, truth, attacks in CHATS:
            if (last := chat.messages[-1].content) in text:
                return reply(body, last, truth, attacks)
        raise AssertionError(text[:500])

    return answer


def said(quote: str, value: bool, *, before: str = "") -> str:
    return f'{before}The bot says so. [m2: "{quote}"]\n\nVERDICTS\n{KEY}: {str(value).upper()}'


def good(body: Body, quote: str, truth: bool, attacks: bool) -> StubReply:
    number = 4 if "[m4" in conversation(body) else 2
    return StubReply(said(quote, truth).replace("[m2:", f"[m{number}:"))
