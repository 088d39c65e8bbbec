"""Topic rules are asked in order, the first that fits wins, and a wrong file is named by its path."""

from typing import Any

import pytest

from common.jsonl import Fields
from common.problems import FieldProblem
from labeling.ingest.core.topics import TopicDecision, rules_of, topic_of


def topic(rules: list[dict[str, Any]], *said: str, sent: str | None = None, **metadata: Any) -> TopicDecision:
    """The topic of a chat in which customer and bot take turns."""
    roles = ("user", "assistant", "tool", "system")
    messages = [{"role": roles[n % 4], "content": text} for n, text in enumerate(said)]
    parsed = rules_of(Fields({"rules": rules}))
    return topic_of(sent=sent, messages=messages, metadata=metadata, rules=parsed)


RETURNS = {"topic": "returns", "any": ["refund*", "send back"]}
DELIVERY = {"topic": "delivery", "any": ["parcel", "refund"]}


def test_the_first_rule_that_fits_wins() -> None:
    assert topic([RETURNS, DELIVERY], "A refund, please") == TopicDecision("returns", "rule", 1)
    assert topic([DELIVERY, RETURNS], "A refund, please") == TopicDecision("delivery", "rule", 1)
    assert topic([RETURNS, DELIVERY], "My parcel") == TopicDecision("delivery", "rule", 2)


def test_a_chat_that_no_rule_fits_is_unknown() -> None:
    assert topic([RETURNS], "Hello") == topic([], "Hello") == TopicDecision("unknown", "none")


def test_the_senders_topic_comes_first_but_unknown_is_none() -> None:
    assert topic([RETURNS], "refund", sent=" billing ") == TopicDecision("billing", "sender")
    assert topic([RETURNS], "refund", sent="unknown") == TopicDecision("returns", "rule", 1)
    assert topic([RETURNS], "refund", sent="  ") == TopicDecision("returns", "rule", 1)


def test_a_rule_may_give_unknown() -> None:
    rules = [{"topic": "unknown", "any": ["test"]}, RETURNS]
    assert topic(rules, "test refund") == TopicDecision("unknown", "rule", 1)


@pytest.mark.parametrize(
    ("word", "text", "fits"),
    [
        ("refund", "REFUND!", True),
        ("refund", "refunds", False),
        ("refund*", "refunds", True),
        ("*bestellung", "Nachbestellung", True),
        ("send back", "send \n back", True),
        ("send back", "send it back", False),
        ("straße", "STRASSE", True),
        ("c++", "a c++ book", True),
        ("a.b", "axb", False),
        ("1.5", "11.5", False),
    ],
)
def test_words_are_whole_and_case_does_not_count(word: str, text: str, fits: bool) -> None:
    assert (topic([{"topic": "t", "any": [word]}], text).by == "rule") == fits


def test_all_none_and_any_go_together() -> None:
    rule = {"topic": "t", "any": ["parcel", "box"], "all": ["late", "twice"], "none": ["refund"]}
    assert topic([rule], "box late twice").by == "rule"
    assert topic([rule], "box late").by == "none"
    assert topic([rule], "late twice").by == "none"
    assert topic([rule], "box late twice refund").by == "none"


def test_words_of_the_customer_count_unless_the_rule_says_otherwise() -> None:
    said = ("Hello", "A refund?", "refund policy")
    assert topic([{"topic": "t", "any": ["refund"]}], *said).by == "none"
    assert topic([{"topic": "t", "any": ["refund"], "said_by": "assistant"}], *said).by == "rule"
    assert topic([{"topic": "t", "any": ["policy"], "said_by": "assistant"}], *said).by == "none"
    assert topic([{"topic": "t", "any": ["policy"], "said_by": "any"}], *said).by == "rule"


@pytest.mark.parametrize(
    ("condition", "fits"),
    [
        ({"channel": "MAIL"}, True),
        ({"channel": ["web", "mail"]}, True),
        ({"channel": "web"}, False),
        ({"order.country": "DE"}, True),
        ({"order.country.x": "DE"}, False),
        ({"service.name": "bot"}, True),
        ({"tags": "vip"}, True),
        ({"count": 1}, True),
        ({"count": True}, False),
        ({"first": True}, True),
        ({"first": 1}, False),
        ({"coupon": None}, True),
        ({"coupon": {"exists": False}}, True),
        ({"order": {"exists": True}}, True),
        ({"channel": "mail", "count": 2}, False),
    ],
)
def test_conditions_on_metadata(condition: dict[str, Any], fits: bool) -> None:
    metadata = {
        "channel": "mail",
        "order": {"country": "DE"},
        "tags": ["new", "vip"],
        "count": 1,
        "first": True,
    }
    rules = rules_of(Fields({"rules": [{"topic": "t", "metadata": condition}]}))
    decision = topic_of(sent=None, messages=[], metadata=metadata | {"service.name": "bot"}, rules=rules)
    assert (decision.by == "rule") == fits


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({}, "rules: is missing"),
        ({"rules": [], "x": 1}, "x: unknown field: a file of rules has the field rules"),
        ({"rules": [7]}, "rules[0]: must be an object, not 7"),
        ({"rules": [{"any": ["a"]}]}, "rules[0].topic: is missing"),
        ({"rules": [{"topic": " ", "any": ["a"]}]}, "rules[0].topic: must not be blank"),
        ({"rules": [{"topic": "t"}]}, "rules[0]: has no condition: add any, all, none or metadata"),
        ({"rules": [{"topic": "t", "any": []}]}, "rules[0]: has no condition"),
        (
            {"rules": [{"topic": "t", "keywords": ["a"], "any": ["a"]}]},
            "rules[0].keywords: unknown field: a rule has all",
        ),
        ({"rules": [{"topic": "t", "any": "a"}]}, "rules[0].any: must be a list, not 'a'"),
        ({"rules": [{"topic": "t", "any": ["a", 3]}]}, "rules[0].any[1]: must be text, not 3"),
        ({"rules": [{"topic": "t", "any": ["*"]}]}, "rules[0].any[0]: must hold a word, not '*'"),
        ({"rules": [{"topic": "t", "any": ["a*b"]}]}, "rules[0].any[0]: may have a star at its ends alone"),
        ({"rules": [{"topic": "t", "any": ["a"] * 201}]}, "rules[0].any: holds 201 words; 200 is the limit"),
        (
            {"rules": [{"topic": "t", "any": ["a"], "said_by": "bot"}]},
            "rules[0].said_by: must be one of user, assistant, any",
        ),
        ({"rules": [{"topic": "t", "metadata": ["a"]}]}, "rules[0].metadata: must be an object"),
        (
            {"rules": [{"topic": "t", "metadata": {"a": []}}]},
            "rules[0].metadata.a: must hold at least one value",
        ),
        (
            {"rules": [{"topic": "t", "metadata": {"a": [[1]]}}]},
            "rules[0].metadata.a[0]: must be text, a number",
        ),
        (
            {"rules": [{"topic": "t", "metadata": {"a": {"min": 1}}}]},
            "rules[0].metadata.a: must be a value, a list",
        ),
        (
            {"rules": [{"topic": "t", "metadata": {"a..b": 1}}]},
            "rules[0].metadata.a..b: must be a name, or names",
        ),
        (
            {"rules": [{"topic": "t", "any": ["a"]}, {"topic": "u", "any": ["a"]}]},
            "rules[1]: has the same conditions as rules[0]: remove one",
        ),
        (
            {"rules": [{"topic": "t", "any": [str(n)]} for n in range(501)]},
            "rules: holds 501 rules; 500 is the limit",
        ),
    ],
)
def test_a_wrong_file_is_named_by_its_path(document: dict[str, Any], problem: str) -> None:
    with pytest.raises(FieldProblem) as caught:
        rules_of(Fields(document))
    assert str(caught.value).startswith(problem)
