"""Disagreements of finished runs: inserted by a scan, closed when settled, reopened when they return."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from alignment.misalignments import worker
from alignment.misalignments.queries.runs import runs_waiting
from alignment.misalignments.worker import disagreements_sweep, misalignments_refresh
from alignment.models.misalignments import Misalignment, MisalignmentCount, Sighting
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run, Verdict
from labeling.models.chats import Chat
from labeling.models.labels import Consensus
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import HUMAN, JUDGE, Compared, add_chats, make_compared, text_of
from tests.factories.prompt_versions import a_version, run_of
from tests.factories.rater_quality import polite

pytestmark = pytest.mark.django_db


def differing(to: int = 40) -> set[tuple[str, str]]:
    return {(f"chat-{n}", key) for n in range(1, to + 1) for key in HUMAN if HUMAN[key](n) != JUDGE[key](n)}


def stored(state: str = "") -> set[tuple[str, str]]:
    rows = Misalignment.objects.filter(state=state) if state else Misalignment.objects.all()
    return set(rows.values_list("chat__external_id", "criterion__key"))


def on(chat: str) -> Misalignment:
    return Misalignment.objects.get(criterion__key="polite", chat__external_id=chat)


def people_say(chat: str, state: str) -> None:
    """Their consensus changes, as by an adjudication."""
    Consensus.objects.filter(chat__external_id=chat, criterion__key="polite").update(state=state)
    Criterion.objects.filter(key="polite").update(labels_seq=1000)


def rerun(compared: Compared, number: int, *wrong: str) -> Run:
    """A finished run of this version of the prompt, wrong on these chats alone."""
    version = PromptVersion.objects.filter(criterion=polite(), number=number).first()
    run = run_of(version or a_version(polite()), compared.chat_set, wrong=10_000)
    for row in Verdict.objects.filter(run=run, chat__external_id__in=wrong):
        row.value = not row.value
        row.save()
    misalignments_refresh(run)
    return run


def test_every_disagreement_of_a_finished_run_is_an_item_with_its_sighting(compared: Compared) -> None:
    misalignments_refresh(compared.run)
    assert stored("open") == differing()
    rows = Sighting.objects.values_list("misalignment__chat__external_id", "misalignment__criterion__key")
    assert set(rows) == differing()
    for one in Sighting.objects.select_related("misalignment__chat", "misalignment__criterion"):
        n = int(one.misalignment.chat.external_id.removeprefix("chat-"))
        key = one.misalignment.criterion.key
        assert (one.human, one.judge) == (HUMAN[key](n), JUDGE[key](n))


def test_a_repeated_scan_changes_nothing(compared: Compared) -> None:
    misalignments_refresh(compared.run)
    before = (
        list(Misalignment.objects.order_by("pk").values()),
        list(Sighting.objects.order_by("pk").values()),
    )
    misalignments_refresh(compared.run)
    after = list(Misalignment.objects.order_by("pk").values()), list(Sighting.objects.order_by("pk").values())
    assert before == after


@pytest.mark.heavy
def test_the_queries_do_not_grow_with_the_chats(compared: Compared) -> None:
    with CaptureQueriesContext(connection) as few:
        misalignments_refresh(compared.run)
    add_chats(compared, to=200)
    with CaptureQueriesContext(connection) as many:
        misalignments_refresh(compared.run)
    assert stored() == differing(200)
    assert len(many) <= len(few) <= 21


class Killed(BaseException):
    """The worker is gone."""


def killed_at(write: int, work: Callable[[], object], *, after: Callable[[], object]) -> bool:
    """Whether the work had come to its write of this number, from 0 on, when it was killed there."""
    after()
    seen = 0

    def execute(run: Callable[..., Any], sql: str, *rest: Any) -> Any:
        nonlocal seen
        if sql.startswith(("INSERT", "UPDATE", "DELETE")):
            if seen == write:
                raise Killed
            seen += 1
        return run(sql, *rest)

    try:
        with connection.execute_wrapper(execute):
            work()
    except Killed:
        return True
    return False


def as_stored() -> tuple[set[Any], set[Any]]:
    """All that a refresh writes, by what it is about."""
    about = ("chat", "criterion", "state", "closed_by", "returned", "newest_run", "closed_by_version")
    seen = ("misalignment__chat", "misalignment__criterion", "run", "human", "judge")
    return set(Misalignment.objects.values_list(*about)), set(Sighting.objects.values_list(*seen))


def forget() -> None:
    """As before any run was looked through."""
    for model in (Sighting, MisalignmentCount, Misalignment):
        model._default_manager.all().delete()


@pytest.fixture
def in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "SCAN_BATCH", 15)
    monkeypatch.setattr(worker, "UPDATE_BATCH", 3)


@pytest.mark.flow
@pytest.mark.heavy
@pytest.mark.django_db(transaction=True)
def test_a_scan_killed_between_batches_is_repeated_later(
    in_small_pieces: None,
) -> None:
    compared = make_compared()
    second = run_of(a_version(polite()), compared.chat_set, wrong=4)
    Verdict.objects.filter(run=second, chat__external_id="chat-10").delete()

    def first_run_looked_through() -> None:
        forget()
        people_say("chat-10", str(HUMAN["polite"](10)).lower())
        misalignments_refresh(compared.run)
        people_say("chat-10", str(JUDGE["polite"](10)).lower())

    first_run_looked_through()
    before = as_stored()
    misalignments_refresh(second)
    whole = as_stored()
    assert {row[2:4] for row in whole[0]} == {("open", ""), ("closed", "version"), ("closed", "label")}
    kills = 0
    while killed_at(kills, lambda: misalignments_refresh(second), after=first_run_looked_through):
        assert second in runs_waiting()
        assert kills < 2 or as_stored() != before  # a piece that is done stays done
        misalignments_refresh(second)
        assert as_stored() == whole
        kills += 1
    assert kills > 8


def test_a_version_closes_an_item_and_a_later_run_reopens_it_with_its_triage(
    compared: Compared,
) -> None:
    first = rerun(compared, 0, "chat-1", "chat-2")
    Misalignment.objects.filter(chat__external_id="chat-1").update(cause="judge", state="triaged", note="So.")
    second = rerun(compared, 0, "chat-2")
    closed = on("chat-1")
    assert (closed.state, closed.newest_run) == ("closed", second)
    assert (closed.closed_by, closed.closed_at is None) == ("version", False)
    assert closed.closed_by_version is not None and closed.closed_by_version.number == 2
    assert on("chat-2").state == "open"
    third = rerun(compared, 0, "chat-1")
    returned = on("chat-1")
    assert (returned.state, returned.cause, returned.note) == ("triaged", "judge", "So.")
    assert returned.returned and returned.closed_by_version is None
    assert (returned.closed_by, returned.closed_at) == ("", None)
    assert [row.run for row in returned.sightings.order_by("run")] == [first, third]
    assert on("chat-2").closed_by_version.number == 3  # type: ignore[union-attr]


def test_the_same_judge_and_an_older_version_close_nothing(compared: Compared) -> None:
    rerun(compared, 0)
    rerun(compared, 0, "chat-1")
    rerun(compared, 2)  # asked again, it happens to agree
    rerun(compared, 1)
    assert on("chat-1").state == "open"


def test_a_label_changed_to_the_verdict_closes_an_item(compared: Compared) -> None:
    misalignments_refresh(compared.run)
    item = on("chat-5")
    Misalignment.objects.filter(pk=on("chat-10").pk).update(cause="judge", state="triaged")
    for chat, judge in (("chat-5", JUDGE["polite"](5)), ("chat-10", JUDGE["polite"](10))):
        people_say(chat, str(judge).lower())
    misalignments_refresh(compared.run)
    item = on("chat-5")
    assert (item.state, item.closed_by, item.closed_by_version) == ("closed", "label", None)
    assert (on("chat-10").closed_by, on("chat-10").cause) == ("label", "judge")  # what a person said stays
    assert item.cause == ""  # nobody gave one
    people_say("chat-5", str(HUMAN["polite"](5)).lower())
    misalignments_refresh(compared.run)
    assert on("chat-5").state == "open" and on("chat-5").returned


def test_a_changed_label_closes_an_item_that_only_an_older_run_has_seen(compared: Compared) -> None:
    misalignments_refresh(compared.run)
    people_say("chat-5", str(JUDGE["polite"](5)).lower())
    newest = run_of(a_version(polite()), compared.chat_set)
    Verdict.objects.filter(run=newest, chat__external_id="chat-5").delete()
    misalignments_refresh(newest)
    assert (on("chat-5").state, on("chat-5").closed_by) == ("closed", "label")


def test_an_imported_judge_that_agrees_closes_it_as_another_judge(compared: Compared) -> None:
    rerun(compared, 0, "chat-1")
    outside = Run.objects.create(
        judge=compared.run.judge, chat_set=compared.chat_set, state="done", finished_at=timezone.now()
    )
    says = HUMAN["polite"](1)
    stamp = {"state": "read", "stored_at": timezone.now()}
    Verdict.objects.create(run=outside, chat=compared.chat(1), criterion=polite(), value=says, **stamp)
    misalignments_refresh(outside)
    assert (on("chat-1").closed_by, on("chat-1").closed_by_version) == ("judge", None)


def test_an_older_run_does_not_overrule_a_newer_one(compared: Compared) -> None:
    misalignments_refresh(compared.run)
    newer = rerun(compared, 0)
    assert {chat for chat, key in stored("closed") if key == "polite"}
    misalignments_refresh(compared.run)
    assert not {chat for chat, key in stored("open") if key == "polite"}
    assert on("chat-5").newest_run == newer


def test_the_sweep_scans_waiting_runs_and_rescans_when_labels_change(compared: Compared) -> None:
    disagreements_sweep()
    assert stored() == differing()
    assert not runs_waiting().exists()
    people_say("chat-5", str(JUDGE["polite"](5)).lower())
    assert not runs_waiting().exists()  # not for each label at once
    MisalignmentCount.objects.update(at="2026-01-01T00:00:00Z")
    disagreements_sweep()
    assert on("chat-5").state == "closed"


def a_minute_later() -> None:
    """Labels that change are looked at once a minute."""
    MisalignmentCount.objects.update(at="2026-01-01T00:00:00Z")
    disagreements_sweep()


def unlabelled(*chats: str) -> None:
    Consensus.objects.filter(chat__external_id__in=chats, criterion__key="polite").delete()


def labelled(chat: Chat, state: str) -> None:
    Consensus.objects.create(chat=chat, criterion=polite(), state=state)
    Criterion.objects.filter(key="polite").update(labels_seq=F("labels_seq") + 1)


def test_a_late_label_on_a_chat_that_only_an_older_run_covers_makes_an_item(compared: Compared) -> None:
    unlabelled("chat-5")
    misalignments_refresh(compared.run)
    newer = rerun(compared, 0)
    Verdict.objects.filter(run=newer, chat__external_id="chat-5").delete()  # it was of another split
    labelled(compared.chat(5), str(HUMAN["polite"](5)).lower())
    a_minute_later()
    assert (on("chat-5").state, on("chat-5").newest_run) == ("open", compared.run)
    assert on("chat-10").state == "closed"  # the newer one has the last word there
    assert not runs_waiting().exists()


def test_a_late_label_is_compared_with_the_latest_verdict_on_its_chat_only(compared: Compared) -> None:
    unlabelled("chat-5", "chat-10")
    misalignments_refresh(compared.run)
    newer = rerun(compared, 0)
    Verdict.objects.filter(run=newer, chat__external_id="chat-10").delete()
    Verdict.objects.filter(run=newer, chat__external_id="chat-5").update(value=HUMAN["polite"](5))
    for n in (5, 10):
        labelled(compared.chat(n), str(HUMAN["polite"](n)).lower())
    a_minute_later()
    assert ("chat-10", "polite") in stored("open")
    assert ("chat-5", "polite") not in stored()


def test_a_run_is_not_rescanned_once_newer_runs_cover_all_its_verdicts(
    compared: Compared,
) -> None:
    Verdict.objects.filter(run=compared.run).exclude(criterion=polite()).delete()
    misalignments_refresh(compared.run)
    newer = rerun(compared, 0)
    looked: list[list[Run]] = []
    for _ in range(2):
        Criterion.objects.filter(key="polite").update(labels_seq=F("labels_seq") + 1)
        MisalignmentCount.objects.update(at="2026-01-01T00:00:00Z")
        looked.append(list(runs_waiting()))
        disagreements_sweep()
    assert looked == [[compared.run, newer], [newer]]


@pytest.mark.parametrize("purpose", ["try", "regression", "confirm", "noise"])
def test_tries_and_regression_tests_are_not_scanned(compared: Compared, purpose: str) -> None:
    Run.objects.update(purpose=purpose)
    disagreements_sweep()
    assert not Misalignment.objects.exists()
    with pytest.raises(ValueError, match="is not scanned"):
        misalignments_refresh(compared.run)


def test_an_unfinished_run_is_not_scanned(compared: Compared) -> None:
    Run.objects.update(state="running")
    disagreements_sweep()
    assert not Misalignment.objects.exists()


def test_an_empty_page_says_why_and_links_on(lead: Client, compared: Compared) -> None:
    misalignments_refresh(compared.run)
    assert "No disagreements in this filter" in text_of(lead.get("/misalignments/", {"cause": "other"}))
    Misalignment.objects.update(state="closed", closed_by="label")
    assert "All disagreements are closed" in text_of(lead.get("/misalignments/"))
    Sighting.objects.all().delete()
    Misalignment.objects.all().delete()
    assert "<h2>No disagreements</h2>" in text_of(lead.get("/misalignments/"))
    Run.objects.update(state="cancelled")
    assert "No finished run yet" in text_of(lead.get("/misalignments/"))
