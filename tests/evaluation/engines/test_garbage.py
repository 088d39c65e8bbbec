"""Whatever a model answers, a verdict is True or False only where its text says so, and nothing crashes."""

import json
import re
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.core.transcript_fencing import without_invisible
from evaluation.core.types import Engine, Reply, ReplyState, Request, VerdictResult
from evaluation.engines.core.verdicts import read_answer
from tests.factories.scripted_model import BOTH, Answering, judged

WORDS = {True: "true", False: "false", None: "not_applicable"}

ANSWERS = st.sampled_from(
    [
        "TRUE",
        "FALSE",
        "NOT_APPLICABLE",
        "true",
        "**False**",
        "maybe",
        "TRUE or FALSE",
        "TRUE FALSE",
        "not true",
        "TRUE\x00",
        "TRU",
        "1",
        "yes",
        "",
        "TRUE (no: FALSE)",
        '"TRUE"',
        "\u200bTRUE",
        "ＴＲＵＥ",
    ]
)
KEYS = st.sampled_from(
    ["polite", "wrong_fact", "- **polite**", "wrong\\_fact", "politeness", "POLITE", "key"]
)
ENDS = st.sampled_from([":", " :", "：", " is", "="])
LINES = st.one_of(
    st.builds("{}{} {}".format, KEYS, ENDS, ANSWERS),
    st.sampled_from(
        [
            "VERDICTS",
            "## Verdicts",
            "VERDICTS:",
            "> VERDICTS",
            "m03 bot| VERDICTS",
            "draft| polite: TRUE",
            "The customer wrote “",
            '"',
            "<<end chat 0>>",
            "```",
            "```json",
            '{"verdicts": {"polite": {"value": "true"}}}',
            "<html><body>502 Bad Gateway</body></html>",
            "",
            "\x00",
            "\u202e",
            "\ud800",
        ]
    ),
    st.text(max_size=20),
)
ENTRY = st.fixed_dictionaries(
    {}, optional={"value": st.one_of(ANSWERS, st.sampled_from(["true", "false", "unclear"]), st.none())}
)
FORMATTED = st.one_of(
    st.builds(json.dumps, st.fixed_dictionaries({"verdicts": st.dictionaries(KEYS, ENTRY, max_size=3)})),
    st.builds(
        lambda text, end: text[: len(text) - end],
        st.just('{"verdicts": {"polite": {"explanation": "", "value": "true"}}}'),
        st.integers(0, 40),
    ),
)
GIVEN = st.builds("{}{} {}".format, KEYS, ENDS, ANSWERS)
BLOCK = st.builds(
    lambda before, block: "\n".join([*before, "VERDICTS", *block]),
    st.lists(LINES, max_size=4),
    st.lists(st.one_of(GIVEN, GIVEN, GIVEN, LINES), max_size=6),
)
GARBAGE = st.one_of(BLOCK, st.lists(LINES, max_size=12).map("\n".join), FORMATTED, st.text(max_size=60))
REPLIES = st.lists(
    st.builds(Reply, st.sampled_from(["answered"] * 6 + list(get_args(ReplyState))), GARBAGE),
    min_size=1,
    max_size=6,
)


def says(text: str, *, key: str, value: bool | None) -> bool:
    """Whether a line of the text is this answer to this key, or a JSON value is it."""
    plain = without_invisible(text).replace("\\_", "_").casefold()
    word = WORDS[value] if value is not None else r"(?:not[ _-]?applicable|n\s?/\s?a|n\.a\.|na)"
    return re.search(rf"{key}[^\w\n]*{word}(?!\w)", plain) is not None


def formatted_as(text: str, *, key: str, value: bool | None) -> bool:
    word = WORDS[value] if value is not None else "(?:not[_ ]applicable|n/a)"
    entry = rf'"{key}"\s*:\s*(?:{{[^{{}}]*"value"\s*:)?\s*"?\s*{word}\s*["}},]'
    return re.search(entry, text, re.IGNORECASE) is not None


@pytest.mark.heavy
@settings(max_examples=1000)
@given(GARBAGE)
def test_reader_takes_no_answer_that_no_line_gives(text: str) -> None:
    answer = read_answer(text, criteria=BOTH)
    for key, value in answer.values.items():
        assert says(text, key=key, value=value), text
        assert "verdict" in without_invisible(text).casefold()


@pytest.mark.heavy
@settings(max_examples=1000)
@given(REPLIES, st.sampled_from(get_args(Engine)), st.integers(1, 2))
def test_no_engine_gives_an_answer_that_no_reply_gives(
    replies: list[Reply], engine: Engine, samples: int
) -> None:
    given: list[tuple[str, Reply]] = []

    def answer(request: Request) -> Reply:
        given.append((request.role, replies[len(given) % len(replies)]))
        return given[-1][1]

    result = judged(Answering(answer), engine=engine, criteria=BOTH, samples=samples, audit=0.5)
    assert [verdict.criterion for verdict in result.verdicts] == ["polite", "wrong_fact"]
    for verdict in result.verdicts:
        assert verdict.state == "read" or verdict.value is None
        if verdict.state == "read":
            assert any(_gives(role, reply, verdict) for role, reply in given)


def _gives(role: str, reply: Reply, verdict: VerdictResult) -> bool:
    """Whether this reply holds the verdict, where it may come from it: a whole answer to its last reader."""
    if reply.state != "answered" or (role == "formatter") is not (verdict.read_by == "formatter"):
        return False
    check = formatted_as if role == "formatter" else says
    return check(reply.text, key=verdict.criterion, value=verdict.value)
