"""With an embedding model, one problem in two languages is one issue; without its answer, words decide."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from alignment.issues.services import grouping_change
from alignment.issues.worker.retention import embedded_texts_delete
from alignment.issues.worker.scan import issues_find, scan_open, scan_work
from alignment.models.issues import Issue, IssueScan
from common.problems import FieldProblem
from evaluation.models.judges import Judge
from evaluation.models.prompts import TextVector
from evaluation.models.runs import Attempt, TextBlock, Verdict
from labeling.models.people import AuditEvent, User
from labeling.models.rubric import Rubric
from tests.factories.issue_texts import PROBLEMS
from tests.factories.issues import WEEK, failing_week
from tests.factories.rows import make_rubric
from tests.factories.runs import always, answering
from tests.factories.verdicts import make_judge
from tests.files import write_json
from tests.stub_endpoint import StubEndpoint, StubReply

pytestmark = pytest.mark.django_db(transaction=True)
MODEL = "embedder-small"
# The same problem in two languages, and another one.
SAME, OTHER = ("refund_days", "tuikuan"), "voucher"


def meaning(text: str) -> Sequence[float]:
    """Two problems are one thing; all texts have something in common."""
    words = {name: {part for part in parts if part in text} for name, (_, parts) in PROBLEMS.items()}
    vector = [0.5, 0.0, 0.0, 0.001 * (len(text) % 7)]
    vector[1] = 2.0 * any(words[name] for name in SAME)
    vector[2] = 2.0 * bool(words[OTHER])
    return vector


@pytest.fixture
def rubric() -> Rubric:
    return make_rubric("polite", passes_when=False)


@pytest.fixture
def judge(rubric: Rubric) -> Judge:
    return make_judge(rubric)


@pytest.fixture
def stub(settings: Settings, tmp_path: Path) -> Iterator[StubEndpoint]:
    prices = str(write_json(tmp_path / "prices.json", {MODEL: {"input": 1, "output": 0}}))
    with answering(settings, always(True), prices=prices) as endpoint:
        endpoint.embed = meaning
        yield endpoint


def chosen(lead: User, **values: object) -> None:
    grouping_change(values={"embedding_model": MODEL, **values}, by=lead)


def week(judge: Judge, rubric: Rubric) -> None:
    failing_week(0, {**dict.fromkeys(SAME, 20), OTHER: 20}, judge=judge, rubric=rubric, noise=0)


def test_one_problem_in_two_languages_is_one_issue_and_every_text_is_asked_once(
    judge: Judge, rubric: Rubric, lead_user: User, stub: StubEndpoint
) -> None:
    week(judge, rubric)
    issues_find()
    assert Issue.objects.count() == 3  # by words alone, each language has its own
    Issue.objects.all().delete()
    chosen(lead_user)
    scan_work(scan_open(WEEK).pk)
    assert sorted(issue.weeks.get().chats for issue in Issue.objects.all()) == [20, 40]
    assert (IssueScan.objects.get().embedding_model, IssueScan.objects.get().fallback) == (MODEL, "")
    asked = len(stub.embedded)
    assert asked == len(set(stub.embedded)) == TextVector.objects.count()
    scan_work(scan_open(WEEK).pk)
    assert len(stub.embedded) == asked
    assert Issue.objects.count() == 2  # the same ones
    attempts = Attempt.objects.filter(call__role="embedding")
    assert attempts.count() == len(stub.seen)
    assert all(attempt.cost_usd for attempt in attempts)


@pytest.mark.parametrize("reply", [StubReply(status=404, raw=b"{}"), StubReply(raw=b"no JSON")])
def test_without_embeddings_words_decide_and_the_page_says_so(
    judge: Judge, rubric: Rubric, lead_user: User, stub: StubEndpoint, reply: StubReply
) -> None:
    week(judge, rubric)
    chosen(lead_user)
    stub.embed = lambda text: reply
    issues_find()
    assert Issue.objects.count() == 3
    scan = IssueScan.objects.get()
    assert (scan.state, scan.embedding_model) == ("done", "")
    assert f"gave no embeddings of {MODEL} for 60 texts" in scan.fallback
    client = Client()
    client.force_login(lead_user)
    assert "Grouped by words alone." in client.get(reverse("issues:list")).content.decode()


def test_a_week_that_could_cost_more_than_its_budget_asks_nothing(
    judge: Judge, rubric: Rubric, lead_user: User, stub: StubEndpoint
) -> None:
    week(judge, rubric)
    chosen(lead_user, budget_usd=Decimal("0.0001"))
    issues_find()
    assert "could cost more than the budget" in IssueScan.objects.get().fallback
    assert stub.seen == []


def test_deleted_chats_leave_neither_embeddings_nor_their_rationales_in_requests(
    judge: Judge, rubric: Rubric, lead_user: User, stub: StubEndpoint
) -> None:
    week(judge, rubric)
    chosen(lead_user)
    issues_find()
    texts = set(stub.embedded)
    gone = list(Verdict.objects.exclude(rationale="").values_list("chat", flat=True))
    embedded_texts_delete(chats=gone, instead="Deleted.")
    assert not TextVector.objects.exists()
    assert not TextBlock.objects.filter(text__in=texts).exists()


def test_a_wrong_endpoint_or_a_budget_without_a_price_is_refused_and_changes_are_logged(
    lead_user: User, stub: StubEndpoint
) -> None:
    with pytest.raises(FieldProblem, match="gone"):
        chosen(lead_user, endpoint="gone")
    with pytest.raises(FieldProblem, match="price"):
        grouping_change(values={"embedding_model": "unpriced", "budget_usd": Decimal(1)}, by=lead_user)
    client = Client()
    client.force_login(lead_user)
    answer = client.post(reverse("issues:grouping"), {"embedding_model": MODEL}, follow=True)
    assert f"{MODEL} takes part" in answer.content.decode()
    assert AuditEvent.objects.filter(verb="settings changed").count() == 1
    refused = client.post(reverse("issues:grouping"), {"embedding_model": MODEL, "endpoint": "gone"})
    assert "Select a valid choice" in refused.content.decode()
