"""Demo workspace: invented chats, knowledge, labels and verdicts, marked as such."""

import json
import os
import re
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group
from django.db import transaction
from django.utils import timezone

from common.problems import InputProblem
from evaluation.knowledge.services import criterion_articles_set, knowledge_import
from evaluation.prompts.services.prompt_files import prompts_import
from evaluation.prompts.services.versions import champions_ensure
from evaluation.runs.services.verdicts import verdicts_import
from labeling.adjudication.services import adjudications_import
from labeling.chats.services.chats import chats_import
from labeling.models.chats import Chat, ChatSet
from labeling.models.labels import Label
from labeling.models.people import Rater, Role, User, Workspace
from labeling.models.rubric import Criterion, Rubric
from labeling.rubric.queries.guidelines import guideline_in_force
from labeling.rubric.services.guidelines import CriterionWords, criterion_write, guideline_write
from labeling.rubric.services.rubric import rubric_import
from labeling.transfer.services.labels import labels_import

DEMO = Path(__file__).resolve().parent.parent / "demo"
RUBRIC = settings.BASE_DIR / "labeling" / "rubric" / "default_rubric.json"
SET = "demo"
GUIDELINES = (("1", "The first one."), ("2", "Tool turns and evidence were missing."))
# Simple criteria whose prompts refer to business knowledge.
ARTICLES = {
    "exposed_sensitive_data": ("refunds", "shopper_privacy"),
    "reasked_known_information": ("address_change",),
}
REVISED = "On demo-13 the judge assumed the plan that most members have"
# The invented raters with labels on every hand-written chat.
LABELLED = (
    "Demo rater A (careful)",
    "Demo rater B (skips tools and knowledge)",
    "Demo rater C (strict on tone and length)",
)
NO_DEMO = (
    "this database holds a workspace that is no demo: use another one, such as `make demo` does "
    "(DATABASE_URL=sqlite:///var/demo.sqlite3)"
)
# When the labels in the files were written, and how many days ago the demo's history says so.
WRITTEN, BEGAN = date(2026, 11, 21), 105
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:\d\d)")


@transaction.atomic
def demo_begin() -> datetime:
    """Mark an empty workspace as a demo, and return its first day; the same day at a later start.

    Raises InputProblem for a database with a workspace that is no demo.
    """
    workspace = Workspace.current()
    if not workspace.demo:
        if any(model._default_manager.exists() for model in (User, Rubric, Chat)):
            raise InputProblem(NO_DEMO)
        workspace.demo = True
        workspace.save(update_fields=["demo"])
    first = Chat.objects.order_by("created_at").values_list("created_at", flat=True).first()
    return first or timezone.now() - timedelta(days=BEGAN)


@contextmanager
def clock(moment: datetime) -> Iterator[None]:
    """Let this process's clock begin at a moment, so that everything stored meanwhile has its time.

    NB: replaces `timezone.now`, for a command that does nothing else.
    """
    real, begun = timezone.now, timezone.now()
    timezone.now = lambda: moment + (real() - begun)
    try:
        yield
    finally:
        timezone.now = real


@contextmanager
def moved(path: Path, first_day: datetime) -> Iterator[Path]:
    """Yield a copy of a file of the demo with its times moved into the demo's history."""
    days = timedelta(days=(first_day.date() - WRITTEN).days + 3)

    def later(match: re.Match[str]) -> str:
        return (datetime.fromisoformat(match[0]) + days).isoformat()

    with jsonl(_TIME.sub(later, path.read_text(encoding="utf-8")), name=path.name) as copy:
        yield copy


@contextmanager
def jsonl(rows: str | Sequence[Mapping[str, Any]], *, name: str) -> Iterator[Path]:
    """Yield a file with these rows, or this text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        text = rows if isinstance(rows, str) else "".join(f"{json.dumps(row)}\n" for row in rows)
        path.write_text(text, encoding="utf-8")
        yield path


@transaction.atomic
def demo_ensure(*, first_day: datetime, lead: User | None = None) -> ChatSet:
    """Create or complete what is hand-written: rubric, knowledge, chats, labels, decisions and verdicts.

    Existing rows are kept. `lead` writes the texts for raters.
    """
    knowledge_import(folder=DEMO / "knowledge")
    rubric_import(path=RUBRIC, articles_set=_articles_set, only_new=True)
    name = rubric_name()
    with moved(DEMO / "chats.jsonl", first_day) as chats:
        chats_import(path=chats, set_name=SET, rubric_name=name, origin=Chat.Origin.DEMO)
    chat_set = ChatSet.objects.select_related("rubric").get(name=SET)
    _texts(chat_set.rubric, lead)
    champions_ensure(criteria=list(chat_set.rubric.criteria.all()), by=lead)
    with moved(DEMO / "labels.jsonl", first_day) as labels:
        labels_import(path=labels, source=Label.Source.DEMO, rater_kind=Rater.Kind.DEMO)
    adjudications_import(path=DEMO / "adjudications.jsonl")
    verdicts_import(path=DEMO / "verdicts.jsonl", set_name=SET, demo=True)
    return chat_set


def draft_ensure() -> None:
    """Add the untested revision of one prompt, as an author might write it."""
    prompts_import(DEMO / "prompts", reason=REVISED)


def rubric_name() -> str:
    """Return the name of the default rubric."""
    return str(json.loads(RUBRIC.read_text(encoding="utf-8"))["name"])


def _texts(rubric: Rubric, lead: User | None) -> None:
    """Write two versions of the guideline and examples for criteria, unless there is a guideline."""
    if guideline_in_force(rubric_id=rubric.pk) is not None:
        return
    for base, (name, reason) in enumerate(GUIDELINES):
        text = (DEMO / "guideline" / f"{name}.md").read_text(encoding="utf-8")
        guideline_write(rubric=rubric, text=text, reason=reason, base=base, by=lead)
    for text_row in json.loads((DEMO / "texts.json").read_text(encoding="utf-8")):
        criterion = rubric.criteria.get(key=text_row.pop("criterion"))
        newest = criterion.versions.latest("number")
        words = {"question": newest.question, "definition": newest.definition} | text_row
        reason = words.pop("reason")
        criterion_write(
            criterion=criterion, words=CriterionWords(**words), reason=reason, base=newest.number, by=lead
        )


def _articles_set(criterion: Criterion, keys: Sequence[str]) -> bool:
    return criterion_articles_set(criterion, ARTICLES.get(criterion.key, keys))


@transaction.atomic
def people_ensure(*, password: str) -> list[User]:
    """Create one account for each role; existing accounts keep their password."""
    return [_account(role, role.value, password) for role in Role]


@transaction.atomic
def raters_ensure(*, password: str, accounts: Mapping[str, str]) -> list[User]:
    """Create an account for each invented rater, by name, so that their side can be looked at."""
    users = []
    for name, account in accounts.items():
        user = _account(Role.RATER, account, password)
        rater, _ = Rater.objects.get_or_create(name=name, defaults={"kind": Rater.Kind.DEMO})
        if rater.user_id is None:
            rater.user = user
            rater.save(update_fields=["user"])
        users.append(user)
    return users


def _account(role: Role, name: str, password: str) -> User:
    user, created = User.objects.get_or_create(username=name)
    if created:
        user.password = _hashed(password)
        user.save(update_fields=["password"])
        user.groups.add(Group.objects.get(name=role.value))
    return user


@cache  # takes a third of a second, and the accounts of a demo share a printed password
def _hashed(password: str) -> str:
    return make_password(password)


def demo_password() -> str:
    """Return the password of the demo accounts, stored in var/demo_password (mode 600)."""
    path = settings.VAR_DIR / "demo_password"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text(encoding="utf-8").strip()
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(password := secrets.token_urlsafe(9))
    return password
