"""Labels sampled by verdict: statistics are weighted to all chats with a verdict."""

import numpy as np
import pytest
from django.db import connection
from django.db.models import F as Column
from django.test import Client
from django.test.utils import CaptureQueriesContext

from alignment.comparison.core.codes import CriterionData, ReportData
from alignment.comparison.core.data_hash import answers_hash
from alignment.comparison.queries.answers import report_data
from alignment.comparison.queries.disclosure import SMALL_COUNTS_HIDDEN
from alignment.comparison.queries.scope import Scope
from alignment.label_planning.services.sample import create_sample
from alignment.label_planning.services.sample_preview import SampleRequest
from alignment.prompts.queries.version_metrics import VersionMetrics, version_metrics
from alignment.reports.core import build_report
from alignment.reports.core.status import StatusPolicy
from bench.coverage import Drawn, drawn_by_verdict
from evaluation.models.judges import JudgePrompt
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run
from labeling.models.chats import ChatSet
from labeling.models.people import User
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import JUDGE, Compared, add_chats, text_of
from tests.factories.label_samples import strip
from tests.factories.prompt_versions import a_version, promote
from tests.factories.report_data import NA, UNLABELLED, F, T, criterion
from tests.factories.rows import make_set
from tests.factories.sampled_labels import answer, entry, polite_of, sampled


def liver_scans() -> CriterionData:
    """Drum & Christacopoulos (1972), J Nucl Med 13:908: 650 scans, of which 344 were verified."""
    cells = [(T, T, 231), (F, T, 32), (UNLABELLED, T, 166), (T, F, 27), (F, F, 54), (UNLABELLED, F, 140)]
    human = [code for code, _, n in cells for _ in range(n)]
    judge = [code for _, code, n in cells for _ in range(n)]
    return sampled(human, judge, [float(code != UNLABELLED) for code in human])


def test_sensitivity_and_specificity_are_those_of_begg_and_greenes() -> None:
    # Begg & Greenes (1983), Biometrics 39:207: .90 and .63 among the verified, .84 and .74 of all.
    found = entry(liver_scans())
    assert (round(found["tpr"]["value"], 2), round(found["tnr"]["value"], 2)) == (0.84, 0.74)
    assert found["tpr"]["low"] < 0.84 < found["tpr"]["high"]


def test_the_matrix_holds_the_labels_and_a_caution_that_figures_do_not_follow_from_it() -> None:
    found = entry(liver_scans())
    assert found["confusion"] == {"tp": 231, "fn": 27, "fp": 32, "tn": 54}
    assert found["drawn_by_verdict"] == found["n"] == 344
    assert "344 of the 344 compared chats were sampled by verdict" in found["cautions"][0]


def test_the_share_of_true_is_that_of_all_chats_judged_and_needs_no_further_correction() -> None:
    found = entry(liver_scans())
    expected = (429 * 231 / 263 + 221 * 27 / 81) / 650
    assert found["prevalence"] == pytest.approx(expected)
    assert found["pass_rate"]["human"] == found["pass_rate"]["judge_corrected"]
    assert found["pass_rate"]["human"]["value"] == pytest.approx(expected)


def test_within_a_verdict_sampled_chats_weigh_the_inverse_of_their_probability() -> None:
    # Judged True: one chat of a probability of 1/3 whom people call True, one of 1 whom they call False.
    found = entry(sampled([T, F, F, UNLABELLED], [T, T, F, F], [3, 1, 1, 0]))
    true, false = 2 * 3 / 4, 2 * 1 / 4
    assert found["tpr"]["value"] == 1 and found["tnr"]["value"] == pytest.approx(2 / (2 + false))
    assert found["prevalence"] == pytest.approx(true / 4)


def test_chats_labelled_not_applicable_represent_others_of_their_verdict() -> None:
    found = entry(sampled([T, NA, F, F], [T, T, F, F], [1, 1, 1, 1]))
    assert found["prevalence"] == pytest.approx(1 / 3)  # one of two judged True is neither True nor False


def test_without_labels_on_a_verdict_nothing_is_said_of_all_chats() -> None:
    found = entry(sampled([T] * 40 + [F] * 40 + [UNLABELLED], [F] * 80 + [T], [1] * 80 + [0]))
    assert found["tnr"]["value"] is None
    assert "no labelled chat has the verdict True" in found["undefined"]["tnr"]
    assert (
        found["status"] == "not_enough_labels"
        and "no labelled chat has the verdict True" in found["reasons"][0]
    )


def test_without_a_human_class_its_rate_says_so() -> None:
    found = entry(
        sampled([T] * 30 + [UNLABELLED] * 10, [T] * 20 + [F] * 10 + [T] * 10, [2.0] * 30 + [0.0] * 10)
    )
    assert found["undefined"]["tnr"] == "no chat with a human False"
    assert found["undefined"]["balanced_accuracy"] == "no chat with a human False"


def test_figures_over_several_criteria_leave_those_labels_out() -> None:
    plain = criterion([T, F, T, F], [T, F, F, F])
    some = sampled([T, F, T, F], [T, F, F, F], [0, 2, 2, 0])
    report = ReportData([f"chat-{n}" for n in range(4)], (plain, some))
    assert build_report(report, policy=StatusPolicy(), seed=1)["overall"]["n"] == 6


def test_a_report_of_other_probabilities_is_another_report() -> None:
    one, two = (ReportData(["a", "b"], (sampled([T, F], [T, F], [1, weight]),)) for weight in (2, 3))
    assert answers_hash(one, key=b"k") != answers_hash(two, key=b"k")


@pytest.mark.heavy
@pytest.mark.parametrize("labelled", [Drawn(60, 40, 10), Drawn(60, 40, 0), Drawn(0, 60, 30)])
def test_nineteen_of_twenty_intervals_hold_what_was_planted(labelled: Drawn) -> None:
    found = drawn_by_verdict(labelled, tpr=0.9, tnr=0.7, share=0.8, sets=120)
    assert np.mean(list(found.values())) > 0.915
    assert min(found.values()) > 0.85


# ---------- through the product ----------

MORE = range(9, 201)


@pytest.fixture
def labelled_draw(compared: Compared, lead_user: User) -> ChatSet:
    """200 chats, 8 labelled. Samples 40 of the others with the verdict False on `polite`, and 10 others."""
    add_chats(compared, to=200)
    strip(compared, MORE)
    scope = Scope(compared.chat_set, compared.run)
    polite = tuple(row for row in scope.criteria if row.key == "polite")
    drawn_set = create_sample(
        SampleRequest(scope=scope, criteria=polite, name="More", chats=50, suspect=40, seed=3), by=lead_user
    ).chat_set
    answer(drawn_set, compared)
    return drawn_set


@pytest.mark.django_db
@pytest.mark.usefixtures("labelled_draw")
def test_a_sample_by_verdict_does_not_bias_the_judges_rates(compared: Compared) -> None:
    found = polite_of(compared)
    table = found["confusion"]
    judged = [JUDGE["polite"](n) for n in range(1, 201)]
    fp = table["fp"] / (table["tp"] + table["fp"]) * sum(judged)
    tn = table["tn"] / (table["fn"] + table["tn"]) * (200 - sum(judged))
    assert found["tnr"]["value"] == pytest.approx(tn / (tn + fp), abs=0.02)
    unweighted = table["tn"] / (table["tn"] + table["fp"])
    assert unweighted > found["tnr"]["value"] or not fp  # the chats drawn depend on their row numbers
    assert found["drawn_by_verdict"] == 50


@pytest.mark.django_db
@pytest.mark.usefixtures("labelled_draw")
def test_what_was_labelled_anyway_is_not_weighted(compared: Compared) -> None:
    data = report_data(Scope(compared.chat_set, compared.run))
    weighted = {one.spec.key: one.inverse for one in data.criteria}
    assert weighted["wrong_fact"] is None and weighted["polite"] is not None
    assert np.count_nonzero(weighted["polite"]) == 50
    assert not weighted["polite"][:8].any()


@pytest.mark.django_db
def test_a_random_sample_needs_no_weights(compared: Compared, labelled_draw: ChatSet) -> None:
    labelled_draw.sampling = (labelled_draw.sampling or {}) | {"oversampled": False}
    labelled_draw.save()
    assert polite_of(compared)["drawn_by_verdict"] == 0


@pytest.mark.heavy
@pytest.mark.django_db
@pytest.mark.usefixtures("labelled_draw")
def test_queries_depend_on_neither_samples_nor_chats(compared: Compared) -> None:
    scope = Scope(compared.chat_set, compared.run)
    with CaptureQueriesContext(connection) as some:
        report_data(scope)
    add_chats(compared, to=260)
    with CaptureQueriesContext(connection) as more:
        report_data(Scope(compared.chat_set, compared.run))
    assert len(some) == len(more)


# ---------- what versions were measured to be ----------


@pytest.fixture
def version(compared: Compared, labelled_draw: ChatSet) -> PromptVersion:
    """Of `polite`, released; the run's judge asks it."""
    criterion = next(row for row in compared.criteria if row.key == "polite")
    found = a_version(criterion)
    promote(found)
    JudgePrompt.objects.create(
        judge=compared.run.judge,
        criterion=criterion,
        criterion_version=criterion.versions.get(),
        prompt_version=found,
        group=0,
    )
    compared.run.purpose = Run.Purpose.EVALUATION
    compared.run.save()
    return found


def measured_for(version: PromptVersion, user: User) -> tuple[VersionMetrics, ...]:
    (found,) = version_metrics([version.criterion], user=user).values()
    return found.rows


@pytest.mark.django_db
def test_a_version_has_the_figures_and_the_status_of_the_report(
    compared: Compared, version: PromptVersion, lead_user: User
) -> None:
    rows = measured_for(version, lead_user)
    assert {one.split for one in rows} == {"dev", "train", "holdout"}
    for one in rows:
        found = polite_of(compared, one.split)
        assert {name: rate.as_json() for name, rate in one.rates.items()} == {
            name: found[name] for name in one.rates
        }
        assert (one.decision.status, list(one.decision.reasons)) == (found["status"], found["reasons"])
        assert one.sampled == found["drawn_by_verdict"] > 0
    dev = rows[0]
    assert dev.rates["tpr"].value != dev.table.tpr  # what the labels alone would say


@pytest.mark.django_db
@pytest.mark.usefixtures("version")
def test_the_criterion_page_says_that_its_figures_are_weighted(lead: Client) -> None:
    assert "labelled chats were sampled by verdict" in text_of(lead.get("/criteria/polite/"))


@pytest.mark.django_db
def test_over_few_holdout_chats_authors_see_neither_figures_nor_status(
    compared: Compared, version: PromptVersion, lead_user: User, author_user: User, author: Client
) -> None:
    make_set(compared.rubric, compared.chat(1), name="gold", split="holdout")
    dev = measured_for(version, author_user)[0]
    assert (dev.split, dev.decision.status, dev.decision.reasons) == ("dev", None, (SMALL_COUNTS_HIDDEN,))
    assert {(rate.value, rate.reason) for rate in dev.rates.values()} == {(None, SMALL_COUNTS_HIDDEN)}
    assert dev.table.n == measured_for(version, lead_user)[0].table.n - 1
    for url in ("/criteria/", "/criteria/polite/", "/criteria/polite/versions/1/"):
        assert SMALL_COUNTS_HIDDEN in text_of(author.get(url)).lower()


@pytest.mark.heavy
@pytest.mark.django_db
def test_versions_are_read_back_with_no_more_queries_than_without_samples(
    version: PromptVersion, labelled_draw: ChatSet, lead_user: User
) -> None:
    def queries() -> int:
        measured_for(version, lead_user)
        with CaptureQueriesContext(connection) as asked:
            measured_for(version, lead_user)
        return len(asked)

    weighted = queries()
    labelled_draw.sampling = (labelled_draw.sampling or {}) | {"oversampled": False}
    labelled_draw.save()
    Criterion.objects.update(labels_seq=Column("labels_seq") + 1)
    version.criterion.refresh_from_db()
    assert {one.sampled for one in measured_for(version, lead_user)} == {0}
    assert queries() == weighted
