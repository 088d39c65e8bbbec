"""Reports on labels from repeated samples, from samples by another judge, and with abstentions."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from alignment.comparison.core.codes import JudgeCode
from alignment.comparison.queries.answers import report_data
from alignment.comparison.queries.scope import Scope
from alignment.label_planning.services.sample import create_sample
from alignment.label_planning.services.sample_preview import SampleRequest
from alignment.reports.queries.reports import alignment_report
from evaluation.models.runs import Run
from labeling.models.chats import ChatSet
from labeling.models.people import User
from tests.factories.compared_runs import JUDGE, Compared, add_chats
from tests.factories.judge_comparison import judged
from tests.factories.label_samples import strip
from tests.factories.report_data import UNLABELLED, F, T
from tests.factories.sampled_labels import answer, entry, sampled

CHATS = 200


@pytest.fixture
def bare(compared: Compared) -> Compared:
    """200 chats without a label on `polite`."""
    add_chats(compared, to=CHATS)
    strip(compared, range(1, CHATS + 1))
    return compared


def draw(
    compared: Compared, by: User, *, name: str, chats: int, suspect: int, run: Run | None = None
) -> ChatSet:
    scope = Scope(compared.chat_set, run or compared.run)
    polite = tuple(row for row in scope.criteria if row.key == "polite")
    wish = SampleRequest(scope=scope, criteria=polite, name=name, chats=chats, suspect=suspect, seed=3)
    chat_set = create_sample(wish, by=by).chat_set
    answer(chat_set, compared)
    return chat_set


def polite_of(compared: Compared, run: Run | None = None) -> dict[str, Any]:
    report = alignment_report(Scope(compared.chat_set, run or compared.run))
    found: dict[str, Any] = next(row for row in report["criteria"] if row["key"] == "polite")
    return found


@pytest.mark.django_db
def test_chats_of_two_samples_from_one_run_weigh_the_same_within_a_verdict(
    bare: Compared, lead_user: User
) -> None:
    for name in ("first", "second"):
        draw(bare, lead_user, name=name, chats=30, suspect=20)
    polite = next(
        row for row in report_data(Scope(bare.chat_set, bare.run)).criteria if row.spec.key == "polite"
    )
    assert polite.inverse is not None and polite.judge is not None
    sizes = {JudgeCode(code): int((polite.judge == code).sum()) for code in (0, 1)}
    for verdict, n in ((JudgeCode.FALSE, 40), (JudgeCode.TRUE, 20)):
        weights = polite.inverse[(polite.judge == verdict) & (polite.inverse > 0)]
        # Both draws together are a sample of so many of the verdict's chats.
        assert weights.tolist() == pytest.approx([sizes[verdict] / n] * n)


@pytest.mark.django_db
def test_chats_sampled_by_another_judges_verdict_are_counted_in_no_figure(
    bare: Compared, lead_user: User
) -> None:
    other = judged(bare, "another", lambda key, n: not JUDGE[key](n) if n % 3 == 0 else JUDGE[key](n))
    false = sum(not JUDGE["polite"](n) for n in range(1, CHATS + 1))
    draw(bare, lead_user, name="one verdict", chats=false, suspect=false)
    found = polite_of(bare, other)
    assert (found["n"], found["drawn_by_verdict"], found["status"]) == (0, 0, "not_enough_labels")
    caution, _ = found["cautions"]
    assert caution.startswith(
        f"labels of {false} chats are excluded: the chats were sampled by topic or by another"
    )


def test_abstentions_are_weighted_by_the_inclusion_probability() -> None:
    # 1 in 2 of the chats judged False was sampled, of the others 1 in 10: each abstention represents ten.
    human = [T] * 60 + [F] * 60 + [T] * 40 + [F] * 6 + [UNLABELLED] * 400
    judge = [F] * 10 + [T] * 50 + [F] * 60 + [T] * 40 + [JudgeCode.REFUSED] * 6 + [T] * 400
    inverse = [2.0] * 10 + [10.0] * 50 + [2.0] * 60 + [10.0] * 46 + [0.0] * 400
    found = entry(sampled(human, judge, inverse))
    assert found["unjudged"] == {"true": 0, "false": 6}
    words = "the judge gave no True or False on 6 of 66 chats with a human False, 33% when weighted"
    assert words in found["reasons"]


def test_the_human_rate_covers_the_chats_on_which_the_judge_abstained() -> None:
    # All chats judged False were sampled, a tenth of the others, half of the abstentions.
    human = [F] * 30 + [T] * 40 + [F] * 20 + [UNLABELLED] * 380
    judge = [F] * 30 + [T] * 40 + [JudgeCode.REFUSED] * 20 + [T] * 360 + [JudgeCode.REFUSED] * 20
    inverse = [1.0] * 30 + [10.0] * 40 + [2.0] * 20 + [0.0] * 380
    found = entry(sampled(human, judge, inverse))
    assert found["pass_rate"]["human"]["value"] == pytest.approx(400 / (400 + 30 + 40))
    assert found["corrected_by"] == "weighting"


def test_with_every_chat_labelled_nothing_is_corrected() -> None:
    human, judge = [F] * 30 + [T] * 40, [F] * 30 + [T] * 30 + [JudgeCode.REFUSED] * 10
    found = entry(sampled(human, judge, [1.0] * 70))
    assert found["pass_rate"]["judge_corrected"] is None and found["corrected_by"] is None
    assert found["pass_rate"]["human"]["value"] == pytest.approx(40 / 70)
    assert (found["drawn_by_verdict"], found["cautions"][1:]) == (0, [])


def test_chats_without_an_inclusion_probability_are_not_represented() -> None:
    human = [F] * 40 + [T] * 40 + [UNLABELLED] * 200
    judge = [F] * 40 + [T] * 40 + [T] * 100 + [F] * 100
    data = sampled(human, judge, [2.0] * 80 + [0.0] * 200)
    chance = np.where(np.arange(280) < 180, 0.5, 0.0)
    assert entry(replace(data, chance=np.full(280, 0.5)))["drawn_by_verdict"] == 80
    assert entry(replace(data, chance=chance))["drawn_by_verdict"] == 0
