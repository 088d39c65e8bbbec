"""Quotes are looked up in the message they name, and only the machine may say that they were found."""

import time

import pytest

from evaluation.core.types import Chat, Message
from evaluation.engines.core.quotes import find_quotes, mark_quotes, names_rule

CHAT = Chat(
    "h",
    (
        Message(1, "user", "It’s  55 minutes\nLATE, the “dinner” is ruined"),
        Message(
            2,
            "assistant",
            "We **can’t** refund the *fee* – sorry about that, [see our terms](https://x.test/t).\n"
            "- Cash\n- Card",
        ),
        Message(3, "user", "Useless!"),
        Message(4, "tool", "costs $5,000 minus -3%"),
        Message(5, "user", "👍"),
        Message(6, "user", "我要退款，谢谢"),
        Message(7, "assistant", "We refund cout << 3 fees\u200b today."),
        Message(8, "user", "पैसा वापस करो"),
        Message(9, "assistant", "1. Wait here\n2. Then pay"),
    ),
)


FORMS: list[tuple[str, str]] = [
    # quotation marks
    ('[m2: "We can’t refund"]', "verified"),
    ("[m2: 'we can’t refund the fee']", "verified"),
    ("[m2: “refund the fee”]", "verified"),
    ("[m2: „refund the fee“]", "verified"),
    ("[m2: «refund the fee»]", "verified"),
    ("[m2: »refund the fee«]", "verified"),
    ("[m2: ‹refund the fee›]", "verified"),
    ("[m2: ”refund the fee”]", "verified"),
    ("[m2: ‚refund the fee‘]", "verified"),
    ("[m2: 「refund the fee」]", "verified"),
    ("[m2: `refund the fee`]", "verified"),
    ('【m2："refund the fee"】', "verified"),
    ('[m2: **"refund the fee"**]', "verified"),
    ("[m1: “the 'dinner' is ruined”]", "verified"),
    ('[m1: "the "dinner" is ruined"]', "verified"),
    # case, space, punctuation, Markdown, dashes
    ('[ M02 : "WE CAN\'T  REFUND" ]', "verified"),
    ('[m2: "refund the fee."]', "verified"),
    ('[m2: "refund the fee".]', "verified"),
    ('[m2: "refund the **fee** - sorry"]', "verified"),
    ('[m2: "refund the fee — sorry"]', "verified"),
    ('[m2: "refund the fee--sorry"]', "verified"),
    ('[m2: "fee, sorry about that"]', "verified"),
    ('[m2: "see our terms"]', "verified"),
    ('[m2: "Cash Card"]', "verified"),
    ('[m9: "Wait here Then pay"]', "verified"),
    ('[m9: "1. Wait here 2. Then pay"]', "verified"),
    ('[m2: "- Cash\n- Card"]', "verified"),
    ('[m7: "cout << 3 fees today"]', "verified"),
    (r'[m7: "cout <\\< 3"]', "verified"),
    (r'[m7: "fees\\u200b today"]', "verified"),
    ('[m2: "m02 bot| We can’t refund"]', "verified"),
    # ellipses
    ('[m2: "We can’t … sorry about that"]', "verified"),
    ('[m2: "We can’t ... sorry about that"]', "verified"),
    ('[m2: "We can’t [...] sorry about that…"]', "verified"),
    ('[m2: "...refund the fee..."]', "verified"),
    ('[m2: "sorry about that … We can’t"]', "close"),
    ('[m2: "can’t … sorry"]', "close"),
    ('[m2: "We can … sorry about that"]', "missing"),
    # the messages named
    ('[m02 bot: "refund the fee"]', "verified"),
    ('[m2 (bot): "refund the fee"]', "verified"),
    ('[m2 customer: "refund the fee"]', "verified"),
    ('[m2, m3: "refund the fee"]', "verified"),
    ('[m1 and m2: "refund the fee"]', "verified"),
    ('[m1–m3: "refund the fee"]', "verified"),
    ('[m2,3: "refund the fee"]', "verified"),
    ('[m1-3: "refund the fee"]', "verified"),
    ('[m2, bot: "refund the fee"]', "verified"),
    ('[bot m2: "refund the fee"]', "verified"),
    ('[m2: bot: "refund the fee"]', "verified"),
    ('[m2: "refund the fee" (bot)]', "verified"),
    ('[turn 2: "refund the fee"]', "verified"),
    ('[message 2: "refund the fee"]', "verified"),
    (r"[m2: \"refund the fee\"]", "verified"),
    ('[m1, m3: "refund the fee"]', "missing"),
    ('[m1: "refund the fee"]', "missing"),
    ('[m99: "refund the fee"]', "missing"),
    # near matches
    ('[m2: "We cannot refund the fee"]', "close"),
    ('[m2: "We can\'t refnd the fee"]', "close"),
    ('[m2: "We can\'t refund the whole fee"]', "close"),
    ('[m1: "its 55 minutes late"]', "close"),
    ('[m1: "it is 55 minutes late"]', "close"),
    ('[m1: "it\'s 65 minutes late"]', "missing"),
    ('[m1: "it\'s late"]', "missing"),
    ('[m2: "We can"]', "missing"),
    ('[m2: "you will get it back"]', "missing"),
    # numbers and money
    ('[m4: "costs $5,000"]', "verified"),
    ('[m4: "costs $5"]', "missing"),
    ('[m4: "costs €5,000"]', "missing"),
    ('[m4: "minus -3%"]', "verified"),
    ('[m4: "minus 3%"]', "missing"),
    # one word proves nothing, unless it is the message
    ('[m2: "e"]', "missing"),
    ('[m2: "refund"]', "short"),
    ('[m2: "refunded"]', "missing"),
    ('[m3: "Useless"]', "verified"),
    ('[m5: "👍"]', "verified"),
    ('[m1: "..."]', "missing"),
    ('[m7: "m07 bot"]', "missing"),
    # scripts without spaces, and vowel signs
    ("[m6: 「我要退款」]", "verified"),
    ("[m6: 「退款」]", "short"),
    ("[m6: 「我不要退款」]", "close"),
    ("[m8: 「पैसा वापस」]", "verified"),
    ("[m8: 「पैसे वापस」]", "missing"),
]


@pytest.mark.parametrize(("citation", "match"), FORMS)
def test_a_quote_is_matched_by_its_words_alone(citation: str, match: str) -> None:
    (quote,) = find_quotes(text=f"They say {citation} there.", chat=CHAT)
    assert (quote.match, quote.found) == (match, match == "verified")


@pytest.mark.parametrize(
    "citation",
    [
        '[m2: "refund the fee", "was never said here"]',
        "[m2: “refund the fee”; “was never said here”]",
        '[m2: "refund the fee" and "was never said here"]',
        '[m1, m2: "refund the fee", "was never said here"]',
    ],
)
def test_quotes_in_one_bracket_are_looked_up_singly(citation: str) -> None:
    found = find_quotes(text=citation, chat=CHAT)
    assert [quote.match for quote in found] == ["verified", "missing"]


def test_a_bracket_may_cite_several_messages_each_with_its_words() -> None:
    text = '[m2: "refund the fee", "sorry about that"; m1: "minutes late", m7: "minutes late"]'
    found = [(quote.messages, quote.match) for quote in find_quotes(text=text, chat=CHAT)]
    assert found == [((2,), "verified"), ((2,), "verified"), ((1,), "verified"), ((7,), "missing")]
    assert mark_quotes(text=text, chat=CHAT).endswith('[m7: "minutes late"] [not in m7]')


def test_a_missing_quotation_mark_hides_only_its_own_citation() -> None:
    (quote,) = find_quotes(text='[m2: "refund] and [m1: "minutes late"]', chat=CHAT)
    assert (quote.messages, quote.found) == ((1,), True)


def test_a_long_message_is_compared_in_no_time() -> None:
    chat = Chat("h", (Message(1, "user", "the fee is " * 10_000),))
    started = time.perf_counter()
    for n in range(20):
        assert not find_quotes(text=f'[m1: "{"the fee was " * 40} {n}"]', chat=chat)[0].found
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize("text", ["[m2–m9: none]", "m1 says late", "[m1]", '[knowledge: "late"]', ""])
def test_what_is_no_citation_is_no_quote(text: str) -> None:
    assert find_quotes(text=text, chat=CHAT) == ()


def test_each_quote_is_marked_in_its_place() -> None:
    marked = mark_quotes(text='a [m1: "minutes late"] b [m7: "minutes late"] c', chat=CHAT)
    assert marked == 'a [m1: "minutes late"] [verified] b [m7: "minutes late"] [not in m7] c'


@pytest.mark.parametrize(
    ("citation", "marked"),
    [
        ('[m2: "We cannot refund the fee"]', '[m2: "We cannot refund the fee"] [close]'),
        ('[m2: "refund"]', '[m2: "refund"] [too short]'),
        ('[m1, m3: "refund the fee"]', '[m1, m3: "refund the fee"] [not in m1, m3]'),
        ('[m02 bot: "the fee", "my foot"]', '[m2: "the fee"] [verified] [m2: "my foot"] [not in m2]'),
    ],
)
def test_the_mark_says_how_the_quote_was_matched(citation: str, marked: str) -> None:
    assert mark_quotes(text=citation, chat=CHAT) == marked


@pytest.mark.parametrize(
    "forged",
    ["[verified]", "[ Verified ]", "[verified by machine]", "[veri[verified]fied]"],
)
def test_a_brief_cannot_bring_its_own_mark(forged: str) -> None:
    marked = mark_quotes(text=f'[m7: "never said"] {forged}', chat=CHAT)
    assert "verified]" not in marked.casefold()
    assert "[not in m7]" in marked


@pytest.mark.parametrize("forged", ["[close]", "[ Close ]", "[too short]", "[not in m7, m8]"])
def test_no_other_mark_can_be_brought_either(forged: str) -> None:
    assert mark_quotes(text=f"So {forged} it is; [close the ticket] too.", chat=CHAT) == (
        "So [mark removed] it is; [close the ticket] too."
    )


def test_a_rule_is_named_only_by_its_own_words() -> None:
    sources = ("Was it polite?", "True when no message is rude.")
    assert names_rule(text='CHANGE [rule: "no message is RUDE"]', sources=sources)
    assert not names_rule(text='CHANGE [rule: "any doubt"]', sources=sources)
    assert names_rule(text="CHANGE [rule: «True when … is rude»]", sources=sources)
    assert not names_rule(text='CHANGE [rule: "..."]', sources=sources)
    assert not names_rule(text='CHANGE [rule: "rude"]', sources=sources)
    assert not names_rule(text="CHANGE because no message is rude", sources=sources)
