"""A draft tried on a few chats of train and dev: real HTTP, carried out as the workers do."""

from decimal import Decimal
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from alignment.comparison.queries.latest_verdicts import latest_verdicts
from alignment.prompts.tries.queries.results import TRY_OPTIONS, tries_of
from alignment.prompts.tries.services import TryRefused, tries_cancel, try_estimate, try_start
from common.problems import InputProblem
from evaluation.judges.core.spec import JudgeSpec
from evaluation.models.prompts import FewShotExample, Promotion, PromptVersion
from evaluation.models.runs import Attempt, Run, Unit, Verdict
from evaluation.prompts.queries.versions import next_number
from evaluation.prompts.services.examples import PromptRefused, prompt_version_add
from labeling.models.chats import ChatSet
from labeling.models.people import User
from tests.factories.runs import answering, point_at
from tests.factories.tries import (
    ANSWER,
    CASES,
    DRAFT,
    HOLDOUT,
    MARK,
    OPEN_AND_WRONG,
    STILL_WRONG,
    TRAIN,
    WRONG,
    carried_out,
    cases,
    champion,
    drafted,
    labelled,
    on_chat,
    on_disagreements,
    polite,
    profile,
    result,
)
from tests.factories.workers import ended, workers_with
from tests.files import run as command_run
from tests.files import verdict, write_jsonl
from tests.stub_endpoint import StubEndpoint, StubReply, conversation

pytestmark = pytest.mark.django_db(transaction=True)

# ---------- what is tried ----------


def test_the_draft_is_asked_about_the_newest_disagreements(
    try_set: ChatSet, try_stub: StubEndpoint, author_user: User
) -> None:
    drafted(author_user)
    before = try_stub.count
    run = carried_out(try_start(criterion=polite(), author=author_user, choice=on_disagreements()))
    found = result(run, author_user)
    assert (run.state, run.purpose, run.mode, run.started_by) == ("done", "try", "live", author_user)
    assert cases(found) == OPEN_AND_WRONG
    assert try_stub.count - before == len(OPEN_AND_WRONG)
    assert all(MARK in conversation(body) for body in try_stub.requests[before:])
    changes = {one.chat.external_id: one.change for one in found.chats}
    assert changes.pop(STILL_WRONG) == "still_wrong"
    assert set(changes.values()) == {"fixed"}
    assert (found.tally.fixed, found.tally.broken, found.tally.of) == (6, 0, 7)


def test_at_most_so_many_are_taken(try_set: ChatSet, author_user: User) -> None:
    drafted(author_user)
    run = try_start(criterion=polite(), author=author_user, choice=on_disagreements(3))
    newest = latest_verdicts(criterion=polite(), champion=champion()).disagreements.values_list(
        "chat__external_id", flat=True
    )
    expected = [case for case in newest if case in OPEN_AND_WRONG][:3]
    assert cases(result(run, author_user)) == sorted(expected)
    for n in (0, 51):
        with pytest.raises(TryRefused, match="1 to 50"):
            try_start(criterion=polite(), author=author_user, choice=on_disagreements(n))


def test_one_chat_shows_the_verdict_before_and_after(try_set: ChatSet, author_user: User) -> None:
    drafted(author_user)
    run = carried_out(try_start(criterion=polite(), author=author_user, choice=on_chat("c-02")))
    (one,) = result(run, author_user).chats
    assert one.before is not None
    assert one.after is not None
    assert (one.consensus, one.before.value, one.after.value, one.change) == ("true", False, True, "fixed")


def test_what_was_right_and_is_wrong_now_is_broken(
    try_set: ChatSet, try_stub: StubEndpoint, author_user: User
) -> None:
    drafted(author_user)
    try_stub.answer = lambda body: StubReply("No.\n\nVERDICTS\npolite: FALSE\nexact: TRUE")
    run = carried_out(try_start(criterion=polite(), author=author_user, choice=on_chat("c-08")))
    assert [one.change for one in result(run, author_user).chats] == ["broken"]


def test_criteria_of_the_same_call_are_asked_with_it(try_set: ChatSet, author_user: User) -> None:
    drafted(author_user)
    run = try_start(criterion=polite(), author=author_user, choice=on_chat("c-02"))
    assert sorted(run.judge.prompts.values_list("criterion__key", flat=True)) == ["exact", "polite"]


def test_without_disagreements_there_is_nothing_to_try(try_set: ChatSet, author_user: User) -> None:
    Run.objects.get().verdicts.filter(chat__external_id__in=WRONG).delete()
    with pytest.raises(TryRefused, match="try one chat"):
        try_start(criterion=polite(), author=author_user, choice=on_disagreements())


def test_imported_verdicts_are_the_ones_before_if_the_champion_was_never_run(
    tmp_path: Path, try_stub: StubEndpoint, author_user: User
) -> None:
    labelled(tmp_path, judged=False)
    lines = [verdict(case, "polite", value=True) for case in CASES]
    command_run("import_verdicts", write_jsonl(tmp_path / "verdicts.jsonl", *lines), "--set", "golden")
    run = carried_out(try_start(criterion=polite(), author=author_user, choice=on_disagreements()))
    found = result(run, author_user)
    assert found.options["by_champion"] is False
    assert len(found.chats) == len([case for case in CASES[:12] if case not in CASES[0:12:2]])


# ---------- the draft is no version ----------


def test_a_draft_that_is_tried_gets_no_number_and_no_release(try_set: ChatSet, author_user: User) -> None:
    drafted(author_user)
    number = next_number(polite())
    releases = Promotion.objects.count()
    run = try_start(criterion=polite(), author=author_user, choice=on_chat("c-02"))
    row = run.judge.prompts.get(criterion=polite()).prompt_version
    assert (row.number, row.text, row.author, row.base) == (None, DRAFT, author_user, champion())
    assert not PromptVersion.objects.filter(text=DRAFT).exists()
    assert (next_number(polite()), Promotion.objects.count()) == (number, releases)


def test_the_same_draft_tried_again_is_the_same_row_and_asks_nothing(
    try_set: ChatSet, try_stub: StubEndpoint, author_user: User
) -> None:
    drafted(author_user)
    first = carried_out(try_start(criterion=polite(), author=author_user, choice=on_disagreements()))
    asked = try_stub.count
    drafted(author_user)  # saved once more, as it is
    second = carried_out(try_start(criterion=polite(), author=author_user, choice=on_disagreements()))
    assert try_stub.count == asked
    assert (second.calls, second.reused) == (0, len(OPEN_AND_WRONG))
    assert second.judge == first.judge
    assert PromptVersion._base_manager.filter(text=DRAFT).count() == 1


def test_a_draft_that_is_saved_later_becomes_a_version_in_its_place(
    try_set: ChatSet, author_user: User
) -> None:
    """What asked it points at the version then, and a test of that asks nothing twice."""
    drafted(author_user)
    run = try_start(criterion=polite(), author=author_user, choice=on_chat("c-02"))
    number = next_number(polite())
    saved = prompt_version_add(criterion=polite(), text=DRAFT, reason="Looks twice.", author=author_user)
    assert (saved.number, saved.reason) == (number, "Looks twice.")
    assert run.judge.prompts.get(criterion=polite()).prompt_version == saved
    assert PromptVersion._base_manager.filter(text=DRAFT).count() == 1


def test_without_a_draft_the_champion_is_tried_and_pays_nothing_again(
    try_set: ChatSet, try_stub: StubEndpoint, author_user: User
) -> None:
    asked = try_stub.count
    run = carried_out(try_start(criterion=polite(), author=author_user, choice=on_disagreements()))
    assert try_stub.count == asked
    assert {one.change for one in result(run, author_user).chats} == {"still_wrong"}


def test_another_version_may_be_the_base(try_set: ChatSet, author_user: User) -> None:
    version = prompt_version_add(criterion=polite(), text=DRAFT, author=author_user)
    run = try_start(criterion=polite(), author=author_user, choice=on_chat("c-02", base=version))
    assert run.judge.prompts.get(criterion=polite()).prompt_version == version


def test_examples_are_checked_as_for_a_version(try_set: ChatSet, author_user: User) -> None:
    example = {"turns": [1, 2], "value": True, "rationale": "Because."}
    for chat, reason in (
        ("c-03", "is dev in a set"),
        (HOLDOUT[0], "you cannot read this example's chat"),
        ("no", "you cannot read this example's chat"),
    ):
        drafted(
            author_user, examples=[example | {"chat": chat}, example | {"chat": TRAIN[0], "value": False}]
        )
        with pytest.raises(PromptRefused, match=reason):
            try_start(criterion=polite(), author=author_user, choice=on_chat("c-02"))
    assert not PromptVersion._base_manager.filter(text=DRAFT).exists()


def test_examples_are_tried_with_the_text(
    try_set: ChatSet, try_stub: StubEndpoint, author_user: User
) -> None:
    rows = [
        {"chat": case, "turns": [1, 2], "value": value, "rationale": f"Example {case}."}
        for case, value in zip(TRAIN, (True, False), strict=True)
    ]
    drafted(author_user, examples=rows)
    carried_out(try_start(criterion=polite(), author=author_user, choice=on_chat("c-02")))
    assert f"Example {TRAIN[1]}." in conversation(try_stub.requests[-1])
    assert FewShotExample.objects.filter(prompt_version__number=None).count() == 2


# ---------- on the workers ----------


@pytest.mark.flow
@pytest.mark.heavy
def test_workers_carry_a_try_to_its_end(tmp_path: Path, settings: Settings, author_user: User) -> None:
    with answering(settings, ANSWER) as stub:
        labelled(tmp_path)
        drafted(author_user)
        run = try_start(criterion=polite(), author=author_user, choice=on_disagreements())
        Run.objects.filter(pk=run.pk).update(rung_at=None)
        with workers_with("filesystem", stub.base_url, tmp_path) as workers:
            ended(run, log=workers.log)
    assert run.state == "done"
    assert result(run, author_user).tally.fixed == 6


def test_a_new_try_ends_the_one_that_goes_on(try_set: ChatSet, author_user: User, lead_user: User) -> None:
    drafted(author_user)
    first = try_start(criterion=polite(), author=author_user, choice=on_disagreements())
    other = try_start(criterion=polite(), author=lead_user, choice=on_disagreements())
    second = try_start(criterion=polite(), author=author_user, choice=on_chat("c-02"))
    for run in (first, other, second):
        run.refresh_from_db()
    assert (first.state, other.state, second.state) == ("cancelled", "running", "running")
    assert tries_of(criterion=polite(), author=author_user).first() == second


def test_a_try_can_be_cancelled(try_set: ChatSet, author_user: User) -> None:
    run = try_start(criterion=polite(), author=author_user, choice=on_disagreements())
    tries_cancel(criterion=polite(), author=author_user)
    run.refresh_from_db()
    assert (run.state, run.error) == ("cancelled", "cancelled by otto")
    tries_cancel(criterion=polite(), author=author_user)


def test_a_budget_needs_a_price(try_set: ChatSet, author_user: User) -> None:
    with pytest.raises(InputProblem, match="a budget needs a price"):
        try_start(criterion=polite(), author=author_user, choice=on_chat("c-02", budget_usd=Decimal(1)))
    assert not Run.objects.filter(purpose="try").exists()


def test_the_estimate_says_what_a_try_would_ask_and_keeps_nothing(
    try_set: ChatSet, author_user: User
) -> None:
    drafted(author_user)
    found = try_estimate(criterion=polite(), author=author_user, choice=on_disagreements())
    assert (found.chats, found.calls, found.reused) == (7, 7, 0)
    assert not PromptVersion._base_manager.filter(text=DRAFT).exists()
    carried_out(try_start(criterion=polite(), author=author_user, choice=on_disagreements()))
    again = try_estimate(criterion=polite(), author=author_user, choice=on_disagreements())
    assert (again.calls, again.reused) == (0, 7)


def test_another_profile_asks_otherwise(try_set: ChatSet, author_user: User) -> None:
    careful = profile("careful", choice=JudgeSpec("debate"))
    run = carried_out(
        try_start(criterion=polite(), author=author_user, choice=on_chat("c-02", profile=careful))
    )
    assert (run.judge.engine, run.calls, run.judge.profile) == ("debate", 3, None)


# ---------- reading ----------


@pytest.mark.heavy
def test_reading_a_try_takes_the_same_queries_for_few_chats_and_many(
    try_set: ChatSet, author_user: User
) -> None:
    drafted(author_user)
    counts = []
    for choice in (on_chat("c-02"), on_disagreements()):
        run = carried_out(try_start(criterion=polite(), author=author_user, choice=choice))
        with CaptureQueriesContext(connection) as queries:
            found = result(run, author_user)
            assert [one.excerpt for one in found.chats]
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_steps_are_seen_while_a_chat_is_in_work(
    try_set: ChatSet, try_stub: StubEndpoint, author_user: User
) -> None:
    """A debate whose Judge has not answered: both briefs are stored, with their tokens."""
    drafted(author_user)
    choice = on_chat("c-02", profile=profile("debating", choice=JudgeSpec("debate")))
    run = carried_out(try_start(criterion=polite(), author=author_user, choice=choice))
    Verdict.objects.filter(run=run).delete()
    Unit.objects.filter(run=run).update(state="leased")
    judge_call = Attempt.objects.get(run=run, call__role="judge").call
    judge_call.state, judge_call.reply, judge_call.latency_ms = "claimed", "", None
    judge_call.save()
    (one,) = result(run, author_user).chats
    assert [(step.title, step.state) for step in one.steps] == [
        ("Customer critic", "Answered"),
        ("Support defender", "Answered"),
        ("Judge", "Asked, no answer yet"),
    ]
    assert all(step.text for step in one.steps[:2])
    assert run.options[TRY_OPTIONS]["what"] == "chat"


def test_without_an_endpoint_that_can_be_named_there_is_no_try(
    try_set: ChatSet, settings: Settings, author_user: User
) -> None:
    point_at(settings, "ftp://nowhere")
    with pytest.raises(InputProblem, match="address must start with http"):
        try_start(criterion=polite(), author=author_user, choice=on_chat("c-02"))
