"""Raters at work: next chat and submit at 1,000 and 10,000 chats, and fifty raters at once.

NB: the fifty ask again as soon as they are answered, by as many threads as the server has, here in one
process. These share one interpreter lock, so p95 is at least fifty times the processor time of a call,
whatever the database does: 200 ms are 4 ms a call. That time is measured beside it.
"""

import os
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median, quantiles
from threading import Barrier
from time import perf_counter, process_time
from typing import Any

from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from bench import Figure
from bench._child import in_child
from labeling.jobs.services import job_open
from labeling.models.chats import Chat, ChatSet, ChatSetMember, Topic
from labeling.models.labels import Adjudication, Assignment, LabelingJob
from labeling.models.people import Rater, Role, User
from labeling.models.rubric import Criterion, CriterionVersion, Dimension, Rubric
from labeling.people.services.roles import roles_ensure
from labeling.rating.services.leases import assignment_next
from tests.factories.rows import analyze
from tests.with_postgres import postgres

CRITERIA, TOPICS, OVERLAP = 10, 20, 2
FEW, MANY = 1_000, 10_000
CHATS_TIMED = 40
CROWD, CROWD_CHATS, EACH = 50, 1_000, 10
THREADS = 8  # two processes of four, as `serve` starts them
GOLD_CHATS, GOLD_RATE = 200, 0.1
NEXT_MS, SUBMIT_MS, CROWD_MS, CALL_MS = 50.0, 100.0, 200.0, 3.0
FLAT = 2.0  # times as long at 10,000 chats as at 1,000; the noise of a busy machine included


def figures() -> Iterator[Figure]:
    """One rater after another over HTTP, then fifty at once; each database new."""
    yield from one_after_another("SQLite", {})
    with postgres() as url:
        yield from one_after_another("PostgreSQL", {"DATABASE_URL": url})
    yield from all_at_once("SQLite", {})
    with postgres() as url:
        yield from all_at_once("PostgreSQL", {"DATABASE_URL": url})
    print("fifty at once: a closed loop, answered by eight threads that share one GIL", file=sys.stderr)
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"load average {load}, {os.cpu_count()} cores", file=sys.stderr, flush=True)


def one_after_another(database: str, environment: dict[str, str]) -> Iterator[Figure]:
    """p95 of next chat and submit, as the rating screen asks for them."""
    times = {
        chats: in_child("raters", "timed_by_http", {"chats": chats}, environment) for chats in (FEW, MANY)
    }
    for chats, found in times.items():
        yield Figure(f"{database}, next of {chats:,} chats, p95", found["next"], NEXT_MS, "ms")
        yield Figure(f"{database}, next of {chats:,} chats, half done, p95", found["late"], NEXT_MS, "ms")
        yield Figure(f"{database}, next of {chats:,} chats, gold at 10%, p95", found["gold"], NEXT_MS, "ms")
        yield Figure(f"{database}, nothing left of {chats:,} chats, p95", found["none"], NEXT_MS, "ms")
        yield Figure(f"{database}, submit of {CRITERIA} answers, p95", found["submit"], SUBMIT_MS, "ms")
    growth = times[MANY]["next"] / times[FEW]["next"]
    yield Figure(f"{database}, next at {MANY:,} chats against {FEW:,}", growth, FLAT, "times")


def all_at_once(database: str, environment: dict[str, str]) -> Iterator[Figure]:
    """Fifty raters, each asking for ten chats as fast as they come, answered by eight threads."""
    found = in_child("raters", "crowded", {}, environment)
    name = f"{database}, {CROWD} raters at once"
    yield Figure(f"{name}, next, p95", found["next"], CROWD_MS, "ms")
    yield Figure(f"{database}, next, CPU of one call", found["call"], CALL_MS, "ms")
    yield Figure(f"{name}, chats over their overlap", found["over"], 0, "chats")
    yield Figure(f"{name}, raters sent away empty", found["empty"], 0, "raters")


# ---------- in a process of their own ----------


def timed_by_http(chats: int) -> dict[str, float]:
    """p95 in ms over Django's test client: submit; next at the start, half way, at the end, with gold."""
    job = filled_job(chats=chats, raters=2, name=f"of {chats}")
    analyze()  # as PostgreSQL does by itself within a minute
    rater = job.raters.order_by("pk")[0]
    client = client_of(rater)
    ask = partial(post, client, "api_job_next", job.pk, ahead=False)
    next_ms, submit_ms = [], []
    for _ in range(CHATS_TIMED):
        spent, taken = spent_on(ask)
        next_ms.append(spent)
        for criterion in job.criteria.all():
            body = {"client_id": str(uuid.uuid4()), "value": True}
            url = reverse("api_label", args=[taken["assignment"], criterion.key])
            assert client.put(url, body, content_type="application/json").status_code == 200
        submit_ms.append(spent_on(partial(post, client, "api_submit", taken["assignment"]))[0])
    done_to(job, rater, job.chat_set.members.count() // 2)
    late = [_worked(ask) for _ in range(CHATS_TIMED)]
    done_to(job, rater, chats)
    analyze()
    none = [spent_on(ask) for _ in range(CHATS_TIMED)]
    assert not any(answer["assignment"] for _, answer in none)
    mixed = with_gold(job)
    analyze()
    gold = partial(post, client, "api_job_next", mixed.pk, ahead=False)
    return {
        "next": p95(next_ms),
        "submit": p95(submit_ms),
        "late": p95(late),
        "none": p95([spent for spent, _ in none]),
        "gold": p95([_worked(gold) for _ in range(CHATS_TIMED)]),
    }


def _worked(ask: Callable[[], Any]) -> float:
    """Milliseconds until the chat is there; then it is submitted."""
    spent, taken = spent_on(ask)
    submitted(taken["assignment"])
    return spent


def submitted(assignment: int) -> None:
    """Submit without labels."""
    rows = Assignment.objects.filter(pk=assignment)
    rows.update(state="submitted", lease_token=None, lease_expires_at=None)


def done_to(job: LabelingJob, rater: Rater, position: int) -> None:
    """The rater alone has labelled so far: every chat of it still has a slot that is not theirs."""
    rows = job.assignments.filter(state="open", slot=1, position__lte=position)
    rows = rows.exclude(chat__in=job.assignments.filter(rater=rater).values("chat"))
    rows.update(rater=rater, state="submitted")


def with_gold(job: LabelingJob) -> LabelingJob:
    """A job of the same chats and raters with gold chats mixed in."""
    gold = _chat_set(job.chat_set.rubric, GOLD_CHATS, f"gold of {job.name}")
    ChatSet.objects.filter(pk=gold.pk).update(kind=ChatSet.Kind.GOLD)
    criteria = list(job.criteria.all())
    known = {"criterion": criteria[0], "value": True, "reason": "Known.", "by_name": "bench"}
    Adjudication.objects.bulk_create(
        Adjudication(chat_id=chat, created_at=timezone.now(), **known)
        for chat in gold.members.values_list("chat", flat=True)
    )
    return job_open(
        chat_set=job.chat_set,
        name="gold",
        criteria=criteria,
        raters=list(job.raters.all()),
        overlap=OVERLAP,
        gold_set=gold,
        gold_rate=GOLD_RATE,
        by=None,
    )


def crowded() -> dict[str, float]:
    """p95 in ms of fifty raters' next chats at once, chats over their overlap, raters who got none.

    `call` is the processor time of one call while nobody else asks.
    """
    job = filled_job(chats=CROWD_CHATS, raters=CROWD, name="crowd")
    raters = list(job.raters.all())
    call = _processor_ms(job, raters[0])
    ready, start = Barrier(THREADS), Barrier(CROWD)

    def work(rater: Rater) -> list[float]:
        start.wait()
        spent = []
        for _ in range(EACH):
            one, taken = spent_on(lambda: server.submit(assignment_next, rater=rater, job=job).result())
            if taken is not None:
                spent.append(one)
                server.submit(submitted, taken.pk).result()
        return spent

    with ThreadPoolExecutor(THREADS, initializer=connection.ensure_connection) as server:
        list(server.map(lambda _: ready.wait(), range(THREADS)))  # a server keeps its connections
        with ThreadPoolExecutor(CROWD) as people:
            found = list(people.map(work, raters))
    taken = Counter(job.assignments.filter(state="submitted").values_list("chat", flat=True))
    return {
        "next": p95([one for spent in found for one in spent]),
        "over": sum(count > OVERLAP for count in taken.values()),
        "empty": sum(len(spent) < EACH for spent in found),
        "call": call,
    }


def _processor_ms(job: LabelingJob, rater: Rater) -> float:
    """The median of this process's processor time for a chat."""
    spent = []
    for _ in range(CHATS_TIMED):
        before = process_time()
        taken = assignment_next(rater=rater, job=job)
        spent.append(1000 * (process_time() - before))
        assert taken is not None
        submitted(taken.pk)
    return median(spent)


def p95(spent: list[float]) -> float:
    """The 95th percentile."""
    return quantiles(spent, n=20)[-1]


def spent_on(work: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds on the clock, and the result."""
    start = perf_counter()
    result = work()
    return 1000 * (perf_counter() - start), result


def client_of(rater: Rater) -> Client:
    """Signed in as the rater."""
    client = Client(SERVER_NAME="localhost")
    assert rater.user is not None
    client.force_login(rater.user)
    return client


def post(client: Client, route: str, pk: int, **body: Any) -> Any:
    """The answer's JSON; anything but 200 is a fault."""
    answer = client.post(reverse(route, args=[pk]), body, content_type="application/json")
    if answer.status_code != 200:
        raise RuntimeError(f"{route} answered {answer.status_code}: {answer.content!r}")
    return answer.json()


def filled_job(*, chats: int, raters: int, name: str) -> LabelingJob:
    """A job of so many chats and raters, two labels a chat, in a database that may be new."""
    call_command("migrate", verbosity=0)
    roles_ensure()
    rubric = Rubric.objects.create(name=name)
    criteria = [_criterion(rubric, f"{name.replace(' ', '_')}_{n}") for n in range(CRITERIA)]
    people = [_rater(f"{name} {n}") for n in range(raters)]
    return job_open(
        chat_set=_chat_set(rubric, chats, name),
        name=name,
        criteria=criteria,
        raters=people,
        overlap=OVERLAP,
        by=None,
    )


def _criterion(rubric: Rubric, key: str) -> Criterion:
    dimension, _ = Dimension.objects.get_or_create(key="all", defaults={"name": "All"})
    criterion = Criterion.objects.create(
        key=key, rubric=rubric, dimension=dimension, tier="simple", position=1
    )
    CriterionVersion.objects.create(
        criterion=criterion, number=1, question=f"{key}?", definition=f"True when {key}.", content_hash=key
    )
    return criterion


def _rater(name: str) -> Rater:
    user = User.objects.create(username=name)
    user.groups.set(user.groups.model.objects.filter(name=Role.RATER))
    return Rater.objects.create(name=name, user=user)


def _chat_set(rubric: Rubric, chats: int, name: str) -> ChatSet:
    topics = [Topic.objects.get_or_create(key=f"t{n}", defaults={"name": f"t{n}"})[0] for n in range(TOPICS)]
    rows = Chat.objects.bulk_create(
        Chat(
            external_id=f"{name}-{n}",
            topic=topics[n % TOPICS],
            messages=[
                {"n": turn, "role": "user", "content": "Where is my order? " * 5} for turn in range(1, 11)
            ],
            content_hash=f"{name}-{n}",
            message_count=10,
            char_count=950,
        )
        for n in range(chats)
    )
    chat_set = ChatSet.objects.create(name=name, rubric=rubric)
    ChatSetMember.objects.bulk_create(
        ChatSetMember(chat_set=chat_set, chat=chat, position=n) for n, chat in enumerate(rows, 1)
    )
    return chat_set
