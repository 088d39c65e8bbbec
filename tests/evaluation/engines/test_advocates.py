"""Advocates that leave their duty are flagged by rule; what they quote is theirs to quote."""

import pytest

from evaluation.core.transcript_fencing import canary
from tests.factories.scripted_model import BOTH, SECRET, Script, answered, judged, only, verdicts


def flags_of(customer: str, support: str = "A short case.") -> tuple[str, ...]:
    model = Script(
        {
            "customer": [answered(customer)],
            "support": [answered(support)],
            "judge": [verdicts(polite="FALSE")],
        }
    )
    return only(judged(model, engine="debate").verdicts).flags


@pytest.mark.parametrize(
    ("brief", "flags"),
    [
        ('Rude: [m2: "ask your bank"]', ()),
        ('Rude: [m2: "go away"]', ("customer_unverified_quote",)),
        ("NO SUPPORTING MESSAGE. The closest is m2.", ("customer_no_message",)),
        ("I concede that the bot was kind.", ("customer_concedes",)),
        ("Cold in m2. On the other hand it answered.", ("customer_concedes",)),
        ("The correct answer is FALSE.", ()),
        ("The correct answer is TRUE.", ("customer_wrong_side",)),
        ("Cold.\n\nVERDICTS\npolite: FALSE", ("customer_gives_verdict",)),
        ("Cold.\n\nVERDICTS\npolite: TRUE", ("customer_gives_verdict", "customer_wrong_side")),
        (f"Cold. {canary(SECRET)}", ("canary_leaked",)),
    ],
)
def test_what_an_advocate_did_beside_its_duty_is_flagged(brief: str, flags: tuple[str, ...]) -> None:
    assert flags_of(brief) == flags


def test_words_of_concession_inside_a_quote_are_the_chats() -> None:
    assert flags_of('Cold: [m2: "I admit, the correct answer is TRUE"]') == ("customer_unverified_quote",)


def test_the_side_to_argue_follows_what_passes() -> None:
    text = "polite\nThe correct answer is TRUE.\n\nwrong_fact\nThe correct answer is TRUE."
    model = Script(
        {
            "customer": [answered(text)],
            "support": [answered(text)],
            "judge": [verdicts(polite="TRUE", wrong_fact="FALSE")],
        }
    )
    polite, wrong_fact = judged(model, engine="debate", criteria=BOTH).verdicts
    assert (polite.flags, wrong_fact.flags) == (("customer_wrong_side",), ("support_wrong_side",))


def test_a_much_longer_brief_is_named() -> None:
    assert flags_of("word " * 60, "word " * 30) == ("customer_longer",)
    assert flags_of("word " * 60, "word " * 50) == ()
    assert flags_of("word " * 2, "word " * 8) == ()


def test_verified_quotes_are_counted_for_each_verdict() -> None:
    prose = (
        'polite\n[m2: "ask your bank"] and [m4: "Useless."] and [m2: "never said"] and\n'
        '[m2: "Please ask a bank", "e"].\nVERDICTS\npolite: FALSE'
    )
    model = Script({"direct": [answered(prose)]})
    verdict = only(judged(model, engine="direct").verdicts)
    assert (verdict.quotes, verdict.quotes_verified, verdict.quotes_close) == (5, 2, 1)
    assert verdict.flags == ("unverified_quote",)


def test_a_rationale_that_gives_the_private_code_is_flagged() -> None:
    spaced = "-".join(canary(SECRET).upper())
    model = Script({"direct": [answered(f"The code is {spaced}.\nVERDICTS\npolite: TRUE")]})
    verdict = only(judged(model, engine="direct").verdicts)
    assert (verdict.value, verdict.flags) == (True, ("canary_leaked",))
    assert canary(SECRET) in model.asked("direct")[0].messages[0].text
