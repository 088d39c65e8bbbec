"""What a run may be asked besides is asked the same live and in batches, and estimated as it is asked."""

import pytest
from pytest_django import Settings

from evaluation.core.hashing import text_hash
from evaluation.models.runs import Run
from tests.factories.runs import block, evaluate, point_at, the_run, workspace
from tests.stub_batches import StubBatches
from tests.stub_endpoint import Body, StubReply, asked_text, conversation

pytestmark = pytest.mark.django_db(transaction=True)

OPTIONS = {
    "placebo briefs": ("debate", "--ablation", "placebo_briefs"),
    "no briefs": ("debate", "--ablation", "no_briefs"),
    "swapped order": ("debate", "--ablation", "swapped_order"),
    "samples": ("reflection", "--samples", "3"),
    "an audit": ("direct", "--audit", "0.5"),
    "all of it": ("debate", "--ablation", "placebo_briefs", "--samples", "2", "--audit", "1"),
}


def answer(body: Body) -> StubReply:
    """A brief, a rationale with its block, or the formatter's copy of it."""
    text = asked_text(body)
    if "response_format" in body:
        return StubReply('{"verdicts": {"polite": {"explanation": "Kind.", "value": "true"}}}')
    if "'s brief" in text:
        return StubReply("It was kind.")
    # Each chat has a rationale of its own: the formatter is asked about the same one only once.
    return block({"polite": True}, prose=f"It was kind, as {text_hash(conversation(body))} shows.")


def what_came_of(run: Run) -> list[dict[str, object]]:
    columns = ("chat", "state", "value", "first_value", "sided_with", "first_brief", "votes_true", "flags")
    return list(run.verdicts.order_by("chat", "criterion").values(*columns))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=list(OPTIONS))
def test_batch_live_and_estimate_agree(settings: Settings, options: tuple[str, ...]) -> None:
    workspace("polite", chats=3)
    args = ("--set", "calibration", "--engine", *options)
    with StubBatches(answer) as stub:
        point_at(settings, stub.base_url)
        settings.LACE_BATCH_POLL_SECONDS = 0.01
        planned = evaluate(*args, "--dry-run").answer["calls"]
        batch = evaluate(*args, "--batch")
        assert (batch.code, stub.count) == (0, 0)
        batched = what_came_of(the_run())
        live = evaluate(*args, "--replicate", "1")
        assert live.code == 0
    assert what_came_of(the_run()) == batched
    assert live.answer["calls"] == batch.answer["calls"] == stub.count
    if "0.5" not in options:  # which answers are drawn goes by their text
        assert planned == stub.count
