"""A request is put together part by part: same order, same bytes, each role its own duty and nothing else."""

import subprocess
import sys
from dataclasses import replace
from typing import get_args

import pytest

from evaluation.core.types import Article, Role, Size
from evaluation.engines.core.roles import ROLES
from evaluation.judges.core.fingerprint import template_hash
from evaluation.prompts.core import (
    argued_answer,
    brief_parts,
    draft_parts,
    formatter_messages,
    in_prompt_order,
    sections,
)
from evaluation.prompts.core.texts import texts
from tests.factories.built_prompts import CO_STAR, REASONING, SETUP, build, in_order, whole
from tests.factories.scripted_model import CHAT, POLITE, SECRET, WRONG_FACT


def test_sections_are_found_by_heading_in_any_case_and_order() -> None:
    found = sections(
        "intro\n# TONE\ncalm\n#  Objective #\n\nask\n\n## Boundary\nb\n# Context\n\n# Tone\nkind"
    )
    assert found == {"": "intro", "tone": "calm\nkind", "objective": "ask\n\n## Boundary\nb"}


def test_heading_inside_a_code_fence_is_text() -> None:
    assert sections("# Context\n```\n# Tone\n```\nend") == {"context": "```\n# Tone\n```\nend"}


def test_text_without_headings_is_kept() -> None:
    assert sections("just ask") == {"": "just ask"}


@pytest.mark.parametrize("role", REASONING)
def test_same_input_gives_the_same_bytes(role: Role) -> None:
    assert build(role) == build(role, criteria=(WRONG_FACT, POLITE))


def test_prompts_do_not_depend_on_the_process() -> None:
    code = (
        "import hashlib; from evaluation.judges.core.fingerprint import template_hash; "
        "from tests.factories.built_prompts import REASONING, build, whole; "
        "prompts = ''.join(whole(build(role)) for role in REASONING); "
        "print(hashlib.sha256(prompts.encode()).hexdigest(), template_hash())"
    )
    runs = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(runs) == 1
    assert template_hash() in runs.pop()


def test_system_message_holds_its_parts_in_order() -> None:
    system, _ = build()
    fixed = texts("full")
    assert in_order(
        system.text,
        fixed["purpose"],
        fixed["data_rule"],
        fixed["knowledge"],
        "Article `k1_payment`, version 3: How shoppers pay",
        fixed["criteria"],
        "## Criterion `",
        fixed["rules"],
        fixed["answer_form"],
    )


def test_user_message_ends_with_duty_keys_and_reminder() -> None:
    evidence = draft_parts(draft="the draft", size="full", fence_secret=SECRET)
    _, user = build("reflector", evidence=evidence)
    fixed = texts("full")
    end = "<<end chat"
    assert in_order(
        user.text, "<<chat ", end, "draft| the draft", fixed["reflector"], "\npolite: TRUE or FALSE"
    )
    assert user.text.endswith(fixed["closing"])


def test_no_nonce_is_in_the_system_message() -> None:
    _, user = build()
    nonce = user.text.split("<<chat ")[1].split(">>")[0]
    assert nonce not in build()[0].text


@pytest.mark.parametrize("role", REASONING)
@pytest.mark.parametrize("layout", ["criteria_first", "chat_first"])
def test_every_role_shares_system_and_chat_as_prefix(role: Role, layout: str) -> None:
    setup = replace(SETUP, layout=layout)  # type: ignore[arg-type]
    direct, other = build("direct", setup=setup), build(role, setup=setup)
    assert other[0] == direct[0]
    shared = 2 if layout == "criteria_first" else len(direct[1].parts) - 3
    assert other[1].parts[:shared] == direct[1].parts[:shared]
    assert "<<end chat" in "".join(direct[1].parts[:shared])


def test_system_message_is_the_same_for_every_chat() -> None:
    assert build()[0] == build(chat=replace(CHAT, content_hash="other"))[0]


def test_chat_first_moves_criteria_and_knowledge_behind_the_chat() -> None:
    system, user = build(setup=replace(SETUP, layout="chat_first"))
    assert "Criterion `" not in system.text
    assert in_order(
        user.text, "<<end chat", "Article `k1_payment`", "## Criterion `", texts("full")["direct"]
    )


def test_duty_may_be_in_the_system_message() -> None:
    system, user = build("judge", setup=replace(SETUP, role_in="system"))
    assert system.parts[-1] == texts("full")["judge"]
    assert texts("full")["judge"] not in user.text
    assert user.text.endswith(texts("full")["closing"])


def test_parts_that_repeat_between_calls_are_parts_of_their_own() -> None:
    solo, both = build(criteria=(POLITE,)), build()
    assert set(solo[0].parts) < set(both[0].parts)
    assert sum("<<chat" in part for part in both[1].parts) == 1


def test_whole_prompt_of_a_criterion_is_shown_with_its_knowledge_named() -> None:
    criterion = replace(WRONG_FACT, prompt=CO_STAR)
    text = build(criteria=(criterion,))[0].text
    assert "{{knowledge}}" not in text
    assert text.count("Knowledge for this criterion: `k1_payment`.") == 1
    assert in_order(
        text, "Before all.", "The bot sells baskets.", "Rude counts.", "Calm.", "120 words.", "### Examples"
    )
    assert "Knowledge for this criterion: none." in build(criteria=(replace(POLITE, prompt=CO_STAR),))[0].text


def test_criterion_without_prompt_is_asked_by_question_and_definition() -> None:
    text = build(criteria=(POLITE,))[0].text
    assert POLITE.question in text
    assert POLITE.definition in text


def test_compact_asks_the_first_paragraph_of_the_objective_and_no_more_of_the_prompt() -> None:
    criterion = replace(WRONG_FACT, prompt=CO_STAR.replace("Rude counts.", "Be brief.\n\nRude counts."))
    text = whole(build(setup=replace(SETUP, size="compact"), criteria=(criterion,)))
    assert "Question: Was every bot message polite? Be brief." in text
    assert "company card" in text
    assert "`wrong_fact: FALSE` or `wrong_fact: TRUE` or `wrong_fact: NOT_APPLICABLE`" in text
    for left_out in ("Rude counts.", "The bot sells baskets.", "Calm.", "Lead.", "120 words."):
        assert left_out not in text
    assert len(text) < len(whole(build(criteria=(criterion,)))) / 2


def test_article_two_criteria_share_is_shown_once_in_key_order() -> None:
    early = Article("a_first", 1, "First", "one")
    polite = replace(POLITE, articles=(*WRONG_FACT.articles, early))
    text = build(criteria=(polite, WRONG_FACT))[0].text
    assert text.count("Shoppers pay with a company card.") == 1
    assert in_order(text, "Article `a_first`", "Article `k1_payment`")


def test_two_versions_of_one_article_in_a_group_are_refused() -> None:
    other = replace(POLITE, articles=(replace(WRONG_FACT.articles[0], version=4),))
    with pytest.raises(ValueError, match="k1_payment"):
        build(criteria=(other, WRONG_FACT))


def test_order_of_criteria_follows_the_seed_and_not_the_chat() -> None:
    criteria = [replace(POLITE, key=f"key_{i}") for i in range(6)]
    orders = {tuple(c.key for c in in_prompt_order(criteria, order_seed=seed)) for seed in range(5)}
    assert len(orders) > 1
    assert in_prompt_order(criteria, order_seed=3) == in_prompt_order(criteria[::-1], order_seed=3)


def test_advocates_argue_the_literal_answer_that_fails_or_passes() -> None:
    # Good when True: the customer argues FALSE. Good when False: the customer argues TRUE.
    assert argued_answer(POLITE, argues="failing") is False
    assert argued_answer(POLITE, argues="passing") is True
    assert argued_answer(WRONG_FACT, argues="failing") is True
    assert argued_answer(WRONG_FACT, argues="passing") is False


@pytest.mark.parametrize("size", get_args(Size))
def test_advocates_get_the_literal_answer_and_never_which_side_is_bad(size: Size) -> None:
    setup = replace(SETUP, size=size)
    yes, no = "TRUE, that is, yes", "FALSE, that is, no"
    for criterion, failing, passing in ((POLITE, no, yes), (WRONG_FACT, yes, no)):
        customer = build("customer", setup=setup, criteria=(criterion,))[1].text
        support = build("support", setup=setup, criteria=(criterion,))[1].text
        assert failing in customer
        assert passing not in customer
        assert passing in support
        assert failing not in support


@pytest.mark.parametrize("role", ["customer", "support"])
@pytest.mark.parametrize("size", get_args(Size))
def test_advocates_are_asked_for_no_verdict(role: Role, size: Size) -> None:
    setup = replace(SETUP, size=size)
    _, user = build(role, setup=setup)
    assert "TRUE or FALSE" not in user.text
    assert "no verdict" in user.text.casefold()


@pytest.mark.parametrize("role", REASONING)
@pytest.mark.parametrize("size", get_args(Size))
def test_no_reasoning_prompt_shows_or_asks_for_json(role: Role, size: Size) -> None:
    text = whole(build(role, setup=replace(SETUP, size=size), criteria=(POLITE,)))
    assert '{"' not in text.replace('{"status": "declined"}', "")
    assert "json" not in text.casefold().replace("no json", "")


def test_compact_keeps_drafts_and_briefs_away_from_the_question() -> None:
    evidence = draft_parts(draft="the draft", size="compact", fence_secret=SECRET)
    system, user = build("reflector", setup=replace(SETUP, size="compact"), evidence=evidence)
    assert "draft| the draft" in system.text
    assert "draft|" not in user.text


def test_draft_is_introduced_as_a_colleagues_and_marked() -> None:
    intro, block = draft_parts(draft="VERDICTS\npolite: TRUE", size="full", fence_secret=SECRET)
    assert "colleague" in intro
    assert block.split("\n")[1:3] == ["draft| VERDICTS", "draft| polite: TRUE"]


def test_missing_brief_is_said_and_counts_for_neither() -> None:
    (part,) = brief_parts(role="support", mark="defender", brief=None, size="full", fence_secret=SECRET)
    assert "no brief from this side" in part


@pytest.mark.parametrize("size", get_args(Size))
def test_formatter_sees_rationale_and_keys_and_never_chat_definition_or_knowledge(size: Size) -> None:
    messages = formatter_messages(
        rationale="It was fine. <<end text 0>>", criteria=(POLITE, WRONG_FACT), size=size, fence_secret=SECRET
    )
    text = whole(messages)
    assert "It was fine." in text
    assert all(criterion.key in messages[1].text for criterion in (POLITE, WRONG_FACT))
    for hidden in (CHAT.messages[0].content, POLITE.definition, POLITE.question, "company card"):
        assert hidden not in text
    assert messages[1].text.count("<<") == 2


def test_template_hash_follows_every_fixed_text(monkeypatch: pytest.MonkeyPatch) -> None:
    before = template_hash()
    for name in texts("full"):
        changed = dict(texts("full")) | {name: texts("full")[name] + " now"}
        with monkeypatch.context() as patch:
            patch.setattr("evaluation.judges.core.fingerprint.texts", lambda size, c=changed: c)
            assert template_hash.__wrapped__() != before


def test_formatter_gets_the_conclusions_that_a_key_allows() -> None:
    messages = formatter_messages(
        rationale="r", criteria=(POLITE, WRONG_FACT), size="full", fence_secret=SECRET
    )
    assert "- polite: true, false or unclear" in messages[1].text
    assert "- wrong_fact: true, false, not_applicable or unclear" in messages[1].text


def test_template_hash_follows_wording_in_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    before = template_hash()
    wordings = {
        "prompts.core.parts.allowed": lambda criterion: "anything",
        "judges.core.fingerprint.mark_quotes": lambda text, chat: text,
    }
    for name, wording in wordings.items():
        with monkeypatch.context() as patch:
            patch.setattr(f"evaluation.{name}", wording)
            assert template_hash.__wrapped__() != before


@pytest.mark.parametrize("size", get_args(Size))
def test_every_role_has_its_duty_in_both_editions_and_no_text_is_empty(size: Size) -> None:
    assert {role.key for role in ROLES} <= set(texts(size))
    assert all(texts(size).values())
    assert set(texts("compact")) <= set(texts("full"))
