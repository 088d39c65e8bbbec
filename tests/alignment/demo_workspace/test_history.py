"""The demo's history: built once, at full size, it shows every state that a newcomer should meet."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from alignment.certificates.queries.certificates import judge_changes
from alignment.certificates.queries.drifts import judge_drifts
from alignment.models.alerts import Alert
from alignment.models.certificates import Certificate
from alignment.models.issues import Issue, IssueScan
from alignment.models.misalignments import Misalignment
from alignment.models.regressions import RegressionTest, ReleaseRequest
from evaluation.models.judges import Judge
from evaluation.models.runs import ModelCall, Run, Verdict
from evaluation.runs.queries.runs import run_notices
from labeling.models.labels import Adjudication, Consensus
from tests.files import run

Row = dict[str, object]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Settings) -> Path:
    """Where the demo's password and the certificates' key are kept."""
    settings.VAR_DIR = tmp_path
    settings.LACE_CERTIFICATE_KEY = tmp_path / "key.pem"
    return tmp_path


@pytest.mark.heavy
@pytest.mark.timeout(900)
@pytest.mark.django_db(transaction=True)
def test_the_demo_shows_each_state_and_a_second_start_changes_nothing() -> None:
    first = run("create_demo", "--evaluate")
    checks: tuple[Callable[[], None], ...] = (
        criteria_of_each_status,
        revisions_of_each_result,
        certificates_in_force_and_ended,
        disagreements_of_each_state,
        engines_with_cost,
        decisions_with_history,
        weeks_of_history,
        simulated_is_marked,
        no_truth_in_prompts,
        alerts_with_their_causes,
        issues_of_each_state,
    )
    for check in checks:
        check()
    pages_have_something(first.document["password"])
    before = {model: model._default_manager.count() for model in (Run, Verdict, ModelCall, Certificate)}
    assert run("create_demo", "--evaluate").document == first.document
    assert before == {model: model._default_manager.count() for model in before}


def newest() -> Run:
    """The run with the prompts of today over all chats."""
    return Run.objects.filter(chat_set__name="Support chats", purpose="evaluation").latest("pk")


def criteria_of_each_status() -> None:
    rows = run("alignment_report", "--run", newest().pk).document["criteria"]
    statuses = Counter(row["status"] for row in rows if row["tier"] != "subjective")
    assert statuses["aligned"] >= 5
    assert statuses["not_aligned"] >= 2
    assert any("directional" in " ".join(row["reasons"]) for row in rows)
    ceilings = [row["human"]["ceiling"]["value"] for row in rows]
    assert all(0.7 < ceiling < 1 for ceiling in ceilings)


def revisions_of_each_result() -> None:
    every = RegressionTest.objects.select_related("candidate__criterion").exclude(candidate=None)
    tests = {(one.candidate.criterion.key, one.candidate.number): one for one in every if one.candidate}
    assert tests["contextual_relevancy", 2].released_at
    assert tests["stated_wrong_fact", 3].released_at
    refused = tests["polite_professional", 2]
    assert (refused.result, refused.released_at) == ("fail", None)
    waiting = tests["actionable_answer", 2]
    assert waiting.result == "inconclusive"
    assert "more_labels" in str(waiting.body)
    assert set(ReleaseRequest.objects.values_list("answer", flat=True)) >= {"refused", "open"}


def certificates_in_force_and_ended() -> None:
    rows = list(Certificate.objects.order_by("pk"))
    ended, in_force = (judge_changes([(row.judge, row.body)])[0] for row in rows)
    assert any("another prompt has been released" in cause for cause in ended)
    assert not in_force


def disagreements_of_each_state() -> None:
    states = Counter(Misalignment.objects.values_list("state", flat=True))
    assert all(states[state] >= 10 for state in ("open", "triaged", "closed"))
    assert Misalignment.objects.exclude(owner=None).count() >= 10
    assert Misalignment.objects.filter(cause="knowledge").exists()


def engines_with_cost() -> None:
    runs = Run.objects.filter(chat_set__name="League of engines", state="done")
    assert set(runs.values_list("judge__engine", flat=True)) == {"direct", "reflection", "debate"}
    costs = {one.judge.engine: one.cost_usd or 0 for one in runs}
    assert costs["debate"] > costs["reflection"]


def decisions_with_history() -> None:
    assert Adjudication.objects.exclude(replaced_at=None).exists()
    assert Consensus.objects.filter(state="unresolved").exists()


def weeks_of_history() -> None:
    times = [run.finished_at for run in Run.objects.all() if run.finished_at]
    assert (max(times) - min(times)).days > 20


def simulated_is_marked() -> None:
    judged = Run.objects.exclude(purpose="import").select_related("judge")
    simulated = [one for one in judged if one.judge.simulated]
    assert len(simulated) >= 15
    assert all("simulated judge" in " ".join(run_notices(one)) for one in simulated)
    assert {j.model for j in Judge.objects.all() if j.simulated} == {"Simulated judge"}
    assert Verdict.objects.filter(run__in=simulated, state="unparsed").exists()


def no_truth_in_prompts() -> None:
    call = ModelCall.objects.filter(endpoint="simulated:").first()
    assert call is not None
    assert "evidence" not in str(call.settings)


def alerts_with_their_causes() -> None:
    found = dict(Alert.objects.values_list("criterion__key", "cause"))
    assert found["reasked_known_information"] == "bot"
    assert found["understood_every_request"] == "judge"
    certificates = list(Certificate.objects.order_by("pk"))
    assert "drifted" in str(judge_drifts(certificates)[certificates[-1].pk])


def issues_of_each_state() -> None:
    assert set(Issue.objects.values_list("state", flat=True)) >= {"open", "acknowledged", "ignored"}
    assert Issue.objects.filter(returned=True).exists()
    assert Issue.objects.exclude(owner=None).exclude(note="").count() >= 3
    assert IssueScan.objects.filter(state="done").count() == 8


def pages_have_something(password: str) -> None:
    lead, shown = Client(), newest()
    assert lead.login(username="lead", password=password)
    league = Run.objects.filter(chat_set__name="League of engines").latest("pk")
    assert league.chat_set is not None
    pages = [
        reverse("alignment:report_list"),
        reverse("alignment:report_run", args=[shown.pk]),
        reverse("alignment:league", args=[league.chat_set.pk]),
        reverse("alignment:criterion_detail", args=["stated_wrong_fact"]),
        reverse("alignment:regression_list"),
        reverse("evaluation:run_list"),
    ]
    for url in pages:
        body = lead.get(url).content.decode()
        assert 'class="empty"' not in body, url
        assert "imulated judge" in body or url == reverse("alignment:regression_list"), url
