"""Demo workspace: invented chats, knowledge, labels and verdicts, marked as such."""

import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import transaction

from evaluation.gateway.endpoints import Endpoint
from evaluation.judges.core.spec import EngineName, JudgeSpec
from evaluation.knowledge.services import criterion_articles_set, knowledge_import
from evaluation.models.runs import Run
from evaluation.prompts.services.prompt_files import prompts_import
from evaluation.prompts.services.versions import champions_ensure
from evaluation.runs.services.runs import RunChoice, run_start
from evaluation.runs.services.verdicts import verdicts_import
from evaluation.runs.worker.plan import texts_problem
from labeling.adjudication.services import adjudications_import
from labeling.chats.services.chats import chats_import
from labeling.models.chats import Chat, ChatSet
from labeling.models.labels import Label
from labeling.models.people import Rater, Role, User
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
# The invented raters with labels on every chat.
LABELLED = (
    "Demo rater A (careful)",
    "Demo rater B (skips tools and knowledge)",
    "Demo rater C (strict on tone and length)",
)


# What a second start leaves as it is.
ENDED = (Run.State.DONE, Run.State.CANCELLED)


@dataclass(frozen=True, slots=True)
class DemoRun:
    """A real run of the demo, small enough for the embedded model."""

    engine: EngineName
    criteria: tuple[str, ...]
    chats: int


RUNS = (
    DemoRun(
        "direct",
        (
            "guessed_missing_detail",
            "self_consistent",
            "customer_left_dissatisfied",
            "polite_professional",
        ),
        chats=8,
    ),
    DemoRun("reflection", ("customer_left_dissatisfied", "polite_professional"), chats=1),
    DemoRun("debate", ("customer_left_dissatisfied", "polite_professional"), chats=1),
)


@transaction.atomic
def demo_ensure(*, lead: User | None = None) -> ChatSet:
    """Create or complete the demo workspace; existing rows are kept. `lead` writes the texts for raters."""
    knowledge_import(folder=DEMO / "knowledge")
    rubric_import(path=RUBRIC, articles_set=_articles_set, only_new=True)
    rubric = json.loads(RUBRIC.read_text(encoding="utf-8"))["name"]
    chats_import(path=DEMO / "chats.jsonl", set_name=SET, rubric_name=rubric, origin=Chat.Origin.DEMO)
    chat_set = ChatSet.objects.select_related("rubric").get(name=SET)
    _texts(chat_set.rubric, lead)
    champions_ensure(criteria=list(chat_set.rubric.criteria.all()), by=lead)
    labels_import(path=DEMO / "labels.jsonl", source=Label.Source.DEMO, rater_kind=Rater.Kind.DEMO)
    adjudications_import(path=DEMO / "adjudications.jsonl")
    verdicts_import(path=DEMO / "verdicts.jsonl", set_name=SET, demo=True)
    prompts_import(DEMO / "prompts", reason=REVISED)
    return chat_set


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
    return [_account(role, password) for role in Role]


def _account(role: Role, password: str) -> User:
    user, created = User.objects.get_or_create(username=role.value)
    if created:
        user.set_password(password)
        user.save(update_fields=["password"])
        user.groups.add(Group.objects.get(name=role.value))
    return user


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


def demo_run_ensure(*, chat_set: ChatSet, demo: DemoRun, endpoint: Endpoint) -> Run:
    """Return the demo run with this engine and endpoint, planned if missing or stopped by an upgrade."""
    runs = Run.objects.select_related("judge", "chat_set").filter(
        chat_set=chat_set, judge__engine=demo.engine, judge__config__endpoint=endpoint.id, options__demo=True
    )
    run = runs.order_by("-id").first()
    if run is not None and (run.state in ENDED or not texts_problem(run)):
        return run
    return run_start(
        chat_set=chat_set,
        judge=JudgeSpec(engine=demo.engine, grouping="criterion"),
        run=RunChoice(criteria=demo.criteria, limit=demo.chats, options={"demo": True}),
        endpoint=endpoint,
    )
