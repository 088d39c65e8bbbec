"""Reflection audits a direct draft as a colleague's, and keeps the first verdict beside the final one."""

import pytest

from evaluation.core.types import Reply, ReplyState
from tests.factories.scripted_model import BAD, CLEAR, Script, answered, judged, only, roles, verdicts


def test_reflection_drafts_with_the_very_request_of_engine_direct() -> None:
    direct, reflection = (
        Script({"direct": [verdicts(polite="TRUE")]}),
        Script({"direct": [verdicts(polite="TRUE")], "reflector": [verdicts(polite="TRUE")]}),
    )
    judged(direct, engine="direct")
    judged(reflection, engine="reflection")
    assert reflection.requests[0] == direct.requests[0]


def test_reflection_keeps_the_first_verdict_beside_the_final_one() -> None:
    audit = answered('polite\nCHANGE, see [m2: "ask your bank"].\nVERDICTS\npolite: FALSE')
    model = Script({"direct": [verdicts(polite="TRUE")], "reflector": [audit]})
    verdict = only(judged(model, engine="reflection").verdicts)
    assert (verdict.first_state, verdict.first_value) == ("read", True)
    assert (verdict.state, verdict.value, verdict.flags) == ("read", False, ())
    assert "draft| What the chat shows." in model.prompt("reflector")
    assert "colleague" in model.prompt("reflector")


@pytest.mark.parametrize(
    ("reason", "flagged"),
    [
        ("CHANGE: the tone is off.", True),
        ('CHANGE, see [m2: "never said"].', True),
        ('CHANGE, see [m4: "useless"].', False),
        ('CHANGE, [rule: "no message is rude"].', False),
        ('CHANGE, [rule: "be strict"].', True),
    ],
)
def test_change_without_a_reason_that_holds_is_flagged_and_not_undone(reason: str, flagged: bool) -> None:
    audit = answered(f"polite\n{reason}\nVERDICTS\npolite: FALSE")
    model = Script({"direct": [verdicts(polite="TRUE")], "reflector": [audit]})
    verdict = only(judged(model, engine="reflection").verdicts)
    assert verdict.value is False
    assert ("change_without_reason" in verdict.flags) is flagged


def test_kept_verdict_needs_no_reason_and_words_that_differ_from_the_block_are_flagged() -> None:
    def flags(said: str, final: str) -> tuple[str, ...]:
        audit = answered(f'{said} [m4: "Useless."]\nVERDICTS\npolite: {final}')
        model = Script({"direct": [verdicts(polite="TRUE")], "reflector": [audit]})
        return only(judged(model, engine="reflection").verdicts).flags

    assert flags("KEEP", "TRUE") == ()
    assert flags("KEEP", "FALSE") == ("keep_but_changed",)
    assert flags("CHANGE", "TRUE") == ("change_but_kept",)


@pytest.mark.parametrize("state", BAD)
def test_reflection_stops_when_there_is_no_draft(state: ReplyState) -> None:
    model = Script({"direct": [Reply(state, "", "why")]})
    verdict = only(judged(model, engine="reflection").verdicts)
    assert (verdict.state, verdict.first_state, roles(model)) == (state, state, ["direct"])


@pytest.mark.parametrize("state", BAD)
def test_bad_audit_never_falls_back_to_the_first_verdict(state: ReplyState) -> None:
    model = Script({"direct": [verdicts(polite="TRUE")], "reflector": [Reply(state, "")]})
    verdict = only(judged(model, engine="reflection").verdicts)
    assert (verdict.state, verdict.value) == (state, None)
    assert (verdict.first_state, verdict.first_value) == ("read", True)


def test_draft_the_rules_cannot_read_is_formatted_and_still_audited() -> None:
    model = Script(
        {
            "direct": [answered("It was rude.")],
            "formatter": [answered(CLEAR)],
            "reflector": [verdicts(polite="FALSE")],
        }
    )
    verdict = only(judged(model, engine="reflection").verdicts)
    assert (verdict.first_value, verdict.value, verdict.read_by) == (False, False, "rules")
    assert roles(model) == ["direct", "formatter", "reflector"]
