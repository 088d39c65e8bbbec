"""A workspace of many label-verdict pairs, written straight into its tables: imports would take an hour."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import islice
from typing import Any

import numpy as np
from django.core.management import call_command
from django.db import connection, models, transaction
from django.utils import timezone

from evaluation.core.hashing import text_hash
from evaluation.models.judges import Judge, JudgePrompt
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run, RunChat, Verdict
from labeling.models.chats import Chat, ChatSet, ChatSetMember, Topic
from labeling.models.labels import Consensus, Label
from labeling.models.people import Rater
from labeling.models.rubric import Criterion
from labeling.people.services.roles import roles_ensure
from tests.factories.rows import analyze, make_criterion, make_rubric

TOPICS, DIMENSIONS, RATERS = 20, 5, 4
TIERS = ("simple", "context", "subjective")
SPLITS = ("holdout", "holdout", "train", "train", "dev", "dev", "dev", "dev", "dev", "dev")
SHARED = 10  # every so manieth chat has a second rater
AT_ONCE = 5_000


def filled_workspace(*, chats: int, criteria: int) -> list[Run]:
    """
    Two finished runs over one set, each with a verdict on every chat and criterion, all of them labelled.

    A tenth of the chats has two raters, a fifth is held out. The judge of the first run reflects, the other
    is an outside one.
    """
    call_command("migrate", verbosity=0)
    roles_ensure()
    rubric = make_rubric(name="pairs")
    asked = [
        make_criterion(
            f"c{n}", rubric=rubric, tier=TIERS[n % len(TIERS)], dimension=f"dimension_{n % DIMENSIONS}"
        )
        for n in range(criteria)
    ]
    with transaction.atomic():
        chat_set = _filled_set(ChatSet.objects.create(name="pairs", rubric=rubric), chats)
        people = _labelled(chat_set, asked)
        runs = [_judged(chat_set, judge, asked, people) for judge in (_reflecting(asked), _outside())]
    analyze()
    return runs


def write(like: models.Model, varying: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Rows like this one but for some columns; faster than bulk_create, which makes each a model."""
    fields = [field for field in like._meta.concrete_fields if not field.primary_key]
    fixed = {one.attname: one.get_db_prep_save(one.pre_save(like, add=True), connection) for one in fields}
    kept = [name for name in fixed if name not in varying]
    columns = {one.attname: connection.ops.quote_name(one.column or "") for one in fields}
    names = [columns[name] for name in (*varying, *kept)]
    table, marks = connection.ops.quote_name(like._meta.db_table), ", ".join(["%s"] * len(names))
    statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608
    tail = [fixed[name] for name in kept]
    waiting = iter(rows)
    with connection.cursor() as cursor:
        while batch := [(*row, *tail) for row in islice(waiting, AT_ONCE)]:
            cursor.executemany(statement, batch)


def _filled_set(chat_set: ChatSet, chats: int) -> ChatSet:
    topics = [Topic.objects.create(key=f"t{n}", name=f"Topic {n}").pk for n in range(TOPICS)]
    started = timezone.now() - timedelta(days=365)
    words = ["Where is my order? It should be here.", "It is on its way.", "Since when?", "Since Monday."]
    texts = [{"n": n, "role": ("user", "assistant")[n % 2 - 1], "content": t} for n, t in enumerate(words, 1)]
    like = Chat(topic_id=topics[0], messages=texts, message_count=4, char_count=80)
    write(
        like,
        ("external_id", "content_hash", "topic_id", "started_at"),
        (
            (f"chat-{n}", f"{n:064}", topics[n % TOPICS], started + timedelta(minutes=10 * n))
            for n in range(chats)
        ),
    )
    placed = enumerate(Chat.objects.order_by("pk").values_list("pk", flat=True))
    rows = ((pk, n, SPLITS[n % len(SPLITS)]) for n, pk in placed)
    write(ChatSetMember(chat_set=chat_set), ("chat_id", "position", "split"), rows)
    return chat_set


def _chats(chat_set: ChatSet) -> list[int]:
    return list(chat_set.members.order_by("position").values_list("chat_id", flat=True))


def _labelled(chat_set: ChatSet, criteria: Sequence[Criterion]) -> list[Any]:
    """Labels and what they amount to; returns what people say by criterion, True for 80% of the chats."""
    draw, chats = np.random.default_rng(2), _chats(chat_set)
    raters = [Rater.objects.create(name=f"rater {n}").pk for n in range(RATERS)]
    found = []
    for row in criteria:
        says = draw.random(len(chats)) < 0.8
        second = np.where(draw.random(len(chats)) < 0.9, says, ~says)
        shared = np.arange(len(chats)) % SHARED == 0
        like = Label(
            criterion=row,
            version=row.versions.get(),
            state=Label.State.SUBMITTED,
            source=Label.Source.IMPORT,
            given_at=timezone.now(),
        )
        write(like, ("chat_id", "rater_id", "value"), _given(chats, raters, says, second, shared))
        states = np.where(shared & (says != second), "unresolved", np.where(says, "true", "false"))
        counts = [says + (shared & second), ~says + (shared & ~second).astype(int)]
        columns = (chats, states.tolist(), counts[0].astype(int).tolist(), counts[1].tolist())
        write(Consensus(criterion=row), ("chat_id", "state", "n_true", "n_false"), zip(*columns, strict=True))
        found.append(says)
    return found


def _given(chats: Sequence[int], raters: Sequence[int], *said: Any) -> Iterator[tuple[int, int, bool]]:
    for n, (chat, first, second, shared) in enumerate(
        zip(chats, *(one.tolist() for one in said), strict=True)
    ):
        yield chat, raters[n % RATERS], first
        if shared:
            yield chat, raters[(n + 1) % RATERS], second


def _reflecting(criteria: Sequence[Criterion]) -> Judge:
    judge = Judge.objects.create(
        fingerprint="r" * 64,
        name="reflecting",
        engine="reflection",
        config={"model": "bench", "groups": [{"engine": "reflection"}] * len(criteria)},
    )
    for group, row in enumerate(criteria):
        text = f"Is {row.key} so?"
        prompt = PromptVersion.objects.create(
            criterion=row, number=1, text=text, content_hash=text_hash(text)
        )
        JudgePrompt.objects.create(
            judge=judge,
            criterion=row,
            criterion_version=row.versions.get(),
            prompt_version=prompt,
            group=group,
        )
    return judge


def _outside() -> Judge:
    return Judge.objects.create(fingerprint="o" * 64, name="outside", kind=Judge.Kind.IMPORTED, config={})


def _judged(chat_set: ChatSet, judge: Judge, criteria: Sequence[Criterion], people: Sequence[Any]) -> Run:
    """A run whose judge is right on nine chats of ten, and gives no answer on one of a hundred."""
    run = Run.objects.create(judge=judge, chat_set=chat_set, state=Run.State.DONE, finished_at=timezone.now())
    members = chat_set.members.order_by("position").values_list("chat_id", "split")
    write(RunChat(run=run), ("chat_id", "split"), members)
    draw, chats = np.random.default_rng(run.pk), _chats(chat_set)
    reflects = judge.engine == "reflection"
    for row, says in zip(criteria, people, strict=True):
        value = np.where(draw.random(len(chats)) < 0.9, says, ~says).tolist()
        first = np.where(draw.random(len(chats)) < 0.95, value, ~np.array(value)).tolist()
        read = (draw.random(len(chats)) > 0.01).tolist()
        like = Verdict(
            run=run, criterion=row, first_state="read" if reflects else "", stored_at=timezone.now()
        )
        rows = (
            (chat, "read" if ok else "unparsed", v if ok else None, f if reflects else None)
            for chat, ok, v, f in zip(chats, read, value, first, strict=True)
        )
        write(like, ("chat_id", "state", "value", "first_value"), rows)
    return run
