"""Old chats lose their text in every copy; curated chats and all figures stay."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import models
from django.utils import timezone

from alignment.archive.queries import TABLES
from alignment.archive.worker import archive_path
from alignment.models.archives import WorkspaceArchive
from alignment.retention.services import DELETIONS, ELSEWHERE, retention_sweep, texts_delete
from evaluation.models.outbox import Delivery, EventKind, OutboxEvent
from evaluation.models.runs import ModelCall, Run, TextBlock, Unit, Verdict
from evaluation.outbox.services import StoredVerdicts, run_publish, stored_verdict, verdicts_publish
from labeling.ingest.core.retention import COPIES
from labeling.models.chats import Chat, ChatSet
from labeling.models.ingest import IngestSettings
from labeling.models.labels import Adjudication, Label, LabelRevision, RaterNote
from labeling.models.people import Role
from labeling.transfer.queries.exports import label_line
from tests.factories.rows import make_rater, make_user
from tests.factories.runs import always, answering, block, evaluate, workspace
from tests.factories.webhooks import make_webhook

pytestmark = pytest.mark.django_db(transaction=True)
WORD = "Xylophone"  # in every text about the chats
DAYS = 30


@pytest.fixture
def sample(settings: Any) -> ChatSet:
    """Three chats of a sample, judged, labelled and commented on; all 40 days old."""
    chosen = workspace("polite", chats=3)
    chosen.kind = ChatSet.Kind.SAMPLE
    chosen.save()
    for chat in Chat.objects.all():
        chat.messages[0]["content"] += f" {WORD}"
        chat.metadata = {"title": WORD}
        chat.content_hash = f"{chat.pk:064}"
        chat.save()
    with answering(settings, lambda body: block({"polite": True}, prose=f"{WORD} it says.")):
        assert evaluate("--set", chosen.name, "--engine", "debate").code == 0
    Verdict.objects.update(rationale=WORD, explanation=WORD)
    Chat.objects.update(last_at=timezone.now() - timedelta(days=40))
    comment_on_chats(chosen)
    return chosen


def comment_on_chats(chosen: ChatSet) -> None:
    """A label with a revision, a decision and a note on each chat."""
    old = timezone.now() - timedelta(days=40)
    criterion = chosen.rubric.criteria.get()
    version = criterion.versions.get()
    rater = make_rater("mara")
    for chat in Chat.objects.all():
        evidence = [{"n": 1, "start": 0, "end": 3, "quote": WORD}]
        about = {"chat": chat, "criterion": criterion}
        label = Label.objects.create(
            **about,
            rater=rater,
            version=version,
            value=True,
            rationale=WORD,
            evidence=evidence,
            state=Label.State.SUBMITTED,
            given_at=old,
        )
        LabelRevision.objects.create(
            label=label,
            number=1,
            client_id="00000000-0000-0000-0000-000000000001",
            value=True,
            rationale=WORD,
            evidence=evidence,
            version=version,
            state=Label.State.SUBMITTED,
            created_at=old,
        )
        Adjudication.objects.create(**about, value=True, reason=WORD, by_name="ines", created_at=old)
        RaterNote.objects.create(
            **about,
            rater=rater,
            kind="comment",
            text=WORD,
            client_id=f"00000000-0000-0000-0000-{chat.pk:012}",
        )


def tables_with(word: str) -> set[str]:
    """The tables that an archive would hold with this word in any column."""
    found = set()
    for table in TABLES:
        model: type[models.Model] = apps.get_model(table.name)
        if any(word in json.dumps(row, default=str) for row in model._base_manager.values()):
            found.add(table.name)
    return found


def delete_all() -> int:
    return texts_delete(days=DAYS, now=timezone.now())


def test_no_copy_of_an_old_text_is_left_and_every_figure_stays(sample: ChatSet) -> None:
    before = tables_with(WORD)
    assert {"labeling.Chat", "evaluation.ModelCall", "evaluation.TextBlock", "labeling.Label"} <= before
    figures = list(Verdict.objects.order_by("pk").values_list("chat", "criterion", "state", "value"))
    tokens = list(ModelCall.objects.order_by("pk").values_list("prompt_tokens", "cost_usd", "latency_ms"))
    counts = list(Chat.objects.order_by("pk").values_list("message_count", "char_count", "content_hash"))
    assert delete_all() == 3
    assert tables_with(WORD) == set()
    assert list(Verdict.objects.order_by("pk").values_list("chat", "criterion", "state", "value")) == figures
    assert (
        list(ModelCall.objects.order_by("pk").values_list("prompt_tokens", "cost_usd", "latency_ms"))
        == tokens
    )
    assert (
        list(Chat.objects.order_by("pk").values_list("message_count", "char_count", "content_hash")) == counts
    )
    assert Label.objects.filter(value=True, evidence=[{"n": 1, "start": 0, "end": 3}]).count() == 3
    line = label_line(Label.objects.select_related("rater", "version").latest("pk"), "c", "polite")
    assert line["evidence"] == [{"message": 1, "start": 0, "end": 3, "quote": ""}]
    assert not Chat.objects.with_words([WORD.lower()]).exists()
    assert delete_all() == 0


def test_events_hold_no_text_and_lose_what_their_receivers_answered(sample: ChatSet) -> None:
    make_webhook()
    chat, run = Chat.objects.order_by("pk")[0], Run.objects.get()
    told = stored_verdict("polite", state="read", value=True, p_true=None)
    verdicts_publish([StoredVerdicts(run.pk, chat.pk, (told,))])
    run_publish(run)
    assert OutboxEvent.objects.count() == 2
    assert WORD not in json.dumps(list(OutboxEvent.objects.values_list("payload", flat=True)))
    Delivery.objects.update(response=f"{WORD}?")
    delete_all()
    answers = dict(Delivery.objects.values_list("event__kind", "response"))
    assert answers == {EventKind.VERDICTS: "", EventKind.RUN: f"{WORD}?"}


def test_prompts_that_are_not_about_the_chat_stay(sample: ChatSet) -> None:
    texts = set(TextBlock.objects.exclude(text__startswith="<<").values_list("text", flat=True))
    delete_all()
    assert texts <= set(TextBlock.objects.values_list("text", flat=True))


def test_a_curated_chat_keeps_its_text(sample: ChatSet) -> None:
    ChatSet.objects.update(kind=ChatSet.Kind.CURATED)
    assert delete_all() == 0
    assert "labeling.Chat" in tables_with(WORD)


def test_a_call_that_a_younger_chat_shares_stays_until_that_is_due(sample: ChatSet) -> None:
    one, two, _ = Chat.objects.order_by("pk")
    Chat.objects.filter(pk=two.pk).update(content_hash=one.content_hash, last_at=timezone.now())
    assert delete_all() == 2
    assert ModelCall.objects.exclude(reply="").count() == 6  # of two advocates and the judge
    Chat.objects.filter(pk=two.pk).update(last_at=one.last_at)
    assert delete_all() == 1
    assert not ModelCall.objects.exclude(reply="").exists()


def test_the_same_question_is_asked_anew_after_its_answer_was_deleted(sample: ChatSet) -> None:
    keys = set(ModelCall.objects.values_list("key", flat=True))
    delete_all()
    assert keys.isdisjoint(ModelCall.objects.values_list("key", flat=True))


def test_a_run_at_work_keeps_its_chats_and_a_paused_one_loses_them(sample: ChatSet, settings: Any) -> None:
    unit = Unit.objects.order_by("pk").first()
    assert unit is not None
    Unit.objects.filter(pk=unit.pk).update(state=Unit.State.OPEN)
    Run.objects.update(state=Run.State.RUNNING)
    assert delete_all() == 2
    Run.objects.update(state=Run.State.PAUSED)
    assert delete_all() == 1
    unit.refresh_from_db()
    assert unit.state == Unit.State.FAILED
    with answering(settings, always(True)):
        assert "no chats" in evaluate("--set", sample.name, "--engine", "direct").err


def test_archives_and_files_of_imports_go_with_the_first_of_their_chats(
    sample: ChatSet, settings: Any, tmp_path: Path
) -> None:
    settings.LACE_ARCHIVE_DIR = tmp_path
    lead = make_user("ines", Role.LEAD)
    archive = WorkspaceArchive.objects.create(by=lead, state="done", finished_at=timezone.now())
    archive_path(archive.pk).write_text(WORD)
    delete_all()
    assert not archive_path(archive.pk).exists() and not WorkspaceArchive.objects.exists()


def test_the_sweep_follows_the_setting(sample: ChatSet) -> None:
    retention_sweep()
    assert Chat.objects.filter(text_deleted_at=None).count() == 3
    IngestSettings.objects.create(retention_days=DAYS)
    retention_sweep()
    retention_sweep()
    row = IngestSettings.current()
    assert (row.texts_deleted, row.retention_done_at is None) == (3, False)


def test_every_kind_of_copy_is_accounted_for() -> None:
    assert DELETIONS.keys() | ELSEWHERE.keys() == COPIES.keys()
