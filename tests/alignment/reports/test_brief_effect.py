"""What the briefs changed: a debate beside the direct run on the same chats, by criterion."""

import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from alignment.comparison.core.codes import EACH_RATER, HumanCode, JudgeCode
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from alignment.reports.core.brief_effect import all_effects, brief_effect
from alignment.reports.queries.brief_effect import briefs_section
from alignment.reports.queries.reports import alignment_report
from alignment.reports.worker import report_store
from evaluation.models.runs import Run, Verdict
from labeling.people.queries.visibility import holdout_chats
from tests.factories.compared_runs import HUMAN, Compared, make_compared, text_of
from tests.factories.runs import answering, block, evaluate, the_run
from tests.factories.stored_reports import refreshed
from tests.stub_endpoint import Body, StubReply, asked_keys, asked_text, conversation

Rule = Callable[[str, int], bool]

CHATS = 20
RUN_DIRECT = "Run engine direct on the same chats, with the same prompts, model and other settings"
T, F, NA, UNPARSED, NONE = JudgeCode.TRUE, JudgeCode.FALSE, JudgeCode.NA, JudgeCode.UNPARSED, JudgeCode.NONE


def test_each_chat_is_mended_broken_or_unchanged() -> None:
    human = [HumanCode.TRUE, HumanCode.FALSE, HumanCode.TRUE, HumanCode.TRUE, HumanCode.FALSE, HumanCode.TRUE]
    direct = [F, F, T, NA, T, F]
    debate = [T, T, T, T, NA, F]
    counts = brief_effect(human=np.array(human), direct=np.array(direct), debate=np.array(debate))
    assert counts.as_json() == {"n": 6, "mended": 2, "broke": 1, "still_right": 1, "still_wrong": 2}
    assert all_effects([counts, counts]).as_json()["mended"] == 4
    assert all_effects([]).n == 0


@pytest.mark.parametrize(
    ("human", "direct", "debate"),
    [
        (HumanCode.UNLABELLED, T, T),
        (HumanCode.UNRESOLVED, T, T),
        (HumanCode.NA, NA, T),
        (HumanCode.TRUE, UNPARSED, T),
        (HumanCode.TRUE, T, NONE),
    ],
)
def test_a_chat_without_one_of_the_three_answers_is_not_counted(
    human: HumanCode, direct: JudgeCode, debate: JudgeCode
) -> None:
    assert brief_effect(human=np.array([human]), direct=np.array([direct]), debate=np.array([debate])).n == 0


# ---------- over the database ----------


def direct_says(key: str, n: int) -> bool:
    """Wrong on every third chat."""
    return HUMAN[key](n) is (n % 3 != 0)


def debate_says(key: str, n: int) -> bool:
    """Wrong on every fifth chat."""
    return HUMAN[key](n) is (n % 5 != 0)


def answer(body: Body) -> StubReply:
    n = int(re.search(r"order (\d+)", conversation(body))[1])  # type: ignore[index]
    if "Answers to argue for" in asked_text(body):
        return StubReply("It speaks for this side.")
    says = debate_says if "Your duty: judge" in asked_text(body) else direct_says
    return block({key: says(key, n) for key in asked_keys(body)})


def judged_by(engine: str) -> Run:
    assert evaluate("--set", "calibration", "--engine", engine).code == 0
    return the_run()


def counts(key: str, numbers: range | list[int]) -> dict[str, int]:
    """The planted counts on these chats."""
    pairs = [(n % 3 != 0, n % 5 != 0) for n in numbers]
    return {
        "n": len(pairs),
        "mended": pairs.count((False, True)),
        "broke": pairs.count((True, False)),
        "still_right": pairs.count((True, True)),
        "still_wrong": pairs.count((False, False)),
    }


@pytest.fixture
def debated(transactional_db: None, settings: Settings) -> Iterator[Compared]:
    """Labels of 20 chats, and a finished debate on them; further runs get planted answers."""
    compared = make_compared(chats=CHATS)
    with answering(settings, answer):
        yield Compared(compared.rubric, compared.chat_set, judged_by("debate"))


def scope_of(debated: Compared, **filters: str) -> Scope:
    return Scope(debated.chat_set, debated.run, **filters)  # type: ignore[arg-type]


def test_without_a_direct_run_the_page_says_how_to_get_one(debated: Compared, lead: Client) -> None:
    shown = text_of(lead.get(reverse("alignment:report_run", args=[debated.run.pk])))
    assert "What the briefs changed" in shown
    assert RUN_DIRECT in shown
    assert "Right both times" not in shown
    assert alignment_report(scope_of(debated))["briefs"] is None


def test_the_planted_changes_are_counted_by_criterion_and_over_all(debated: Compared) -> None:
    direct = judged_by("direct")
    found = briefs_section(scope_of(debated))
    assert found is not None
    planted = {key: counts(key, range(1, CHATS + 1)) for key in ("polite", "wrong_fact", "welcome")}
    assert {row.pop("key"): row for row in found["criteria"]} == planted
    assert found["direct_run"] == direct.pk
    assert found["overall"] == {name: 3 * n for name, n in planted["polite"].items()}
    assert planted["polite"]["mended"] == 5
    assert planted["polite"]["broke"] == 3


def test_a_finished_direct_run_completes_a_report_that_was_stored_before(
    debated: Compared, lead: Client
) -> None:
    report_store(scope_of(debated), share=True)
    before = alignment_report(scope_of(debated))
    direct = judged_by("direct")
    page = text_of(lead.get(reverse("alignment:report_run", args=[debated.run.pk])))
    assert RUN_DIRECT not in page
    assert f'<a href="{reverse("alignment:report_run", args=[direct.pk])}">run {direct.pk}</a>' in page
    refreshed(direct)
    after = alignment_report(scope_of(debated))
    assert after == before | {"briefs": Report.objects.get(pk=before["id"]).briefs}
    assert after["briefs"]["overall"]["mended"] == 15
    stored = lead.get(reverse("api_stored_report", args=[before["id"]])).json()
    live = lead.get(reverse("api_run_report", args=[debated.run.pk])).json()
    assert stored["briefs"] == live["briefs"] == after["briefs"]
    assert "Right both times" in text_of(lead.get(reverse("alignment:report_stored", args=[before["id"]])))


def test_the_counts_cover_the_reports_chats_only(debated: Compared) -> None:
    judged_by("direct")
    found = briefs_section(scope_of(debated, split="train"))
    assert found is not None
    train = [n for n in range(1, CHATS + 1) if n % 4 == 3]
    assert found["criteria"][0] == {"key": "polite", **counts("polite", train)}


def test_a_report_that_excludes_the_holdout_excludes_it_here_too(debated: Compared) -> None:
    judged_by("direct")
    scope = Scope(debated.chat_set, debated.run, without_holdout=frozenset({"holdout"}))
    assert holdout_chats().exists()
    found = briefs_section(scope)
    assert found is not None
    assert found["criteria"][0]["n"] == sum(n % 4 != 0 for n in range(1, CHATS + 1))


def test_one_rater_can_be_the_truth_but_not_each_of_them(debated: Compared, lead: Client) -> None:
    judged_by("direct")
    cleo = briefs_section(scope_of(debated, against="rater:cleo"))
    assert cleo is not None
    assert cleo["overall"] != briefs_section(scope_of(debated))["overall"]  # type: ignore[index]
    assert briefs_section(scope_of(debated, against=EACH_RATER)) is None
    url = reverse("alignment:report_run", args=[debated.run.pk], query={"against": EACH_RATER})
    assert "To see what the briefs changed, choose the consensus" in text_of(lead.get(url))


def test_an_unreadable_verdict_is_not_counted(debated: Compared) -> None:
    direct = judged_by("direct")
    Verdict.objects.filter(run=direct, chat=debated.chat(1)).update(state="unparsed", value=None)
    found = briefs_section(scope_of(debated))
    assert found is not None
    assert found["overall"]["n"] == 3 * (CHATS - 1)


def test_a_report_without_a_debate_has_no_such_section(debated: Compared, lead: Client) -> None:
    direct = judged_by("direct")
    page = text_of(lead.get(reverse("alignment:report_run", args=[direct.pk])))
    assert "What the briefs changed" not in page
    assert lead.get(reverse("api_run_report", args=[direct.pk])).json()["briefs"] is None
    assert "What the briefs" not in text_of(
        lead.get(reverse("alignment:report_set", args=[debated.chat_set.pk]))
    )
