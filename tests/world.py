"""A workspace with something behind every route, and the five people who try them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group
from django.db import transaction
from django.test import Client
from django.utils import timezone

from evaluation.models.judges import JudgeProfile
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import ModelCall, Run, Unit, UnitCall, Verdict
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.labels import Adjudication, Assignment, Label, LabelRevision, RaterNote
from labeling.models.people import ApiToken, AuditEvent, Rater, Role, User, Workspace
from labeling.services.audit import audit
from labeling.services.consensus import consensus_refresh
from labeling.services.jobs import job_open
from labeling.services.submitting import assignment_submit
from tests.factories import make_rater, make_user
from tests.labeling.desk import Desk, answer_all, make_desk, user_of
from tests.labeling.judged import judge_desk

CANARY = "CANARY"


@dataclass(frozen=True)
class World:
    """The desk, the people by name, and a value for each argument that a route may have."""

    desk: Desk
    users: dict[str, User]
    args: dict[str, Any]

    def client(self, person: str, *, enforce_csrf_checks: bool = False) -> Client:
        """A browser of that person; `anonymous` has not signed in."""
        client = Client(enforce_csrf_checks=enforce_csrf_checks)
        if person != "anonymous":
            client.force_login(self.users[person])
        return client


@contextmanager
def rolled_back() -> Iterator[None]:
    """What is done in here has not happened."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


# Arguments of routes that name no row of the world.
WORDS = {
    "criterion_key": "polite",
    "key": "polite",
    "cell": "fn",
    "number": 1,
    "what": "labels",
    "kind": "jsonl",
}


def make_world() -> World:
    """Mara, `rater`, has submitted chat 1 and works on chat 2, which `other` has submitted.

    The workspace reveals the judge's view after submitting. Chat 4 is holdout.
    Everything that mara must not read contains the CANARY.
    """
    Workspace.current()
    Workspace.objects.update(reveal_after_submit=True)
    desk = make_desk(chats=4, raters=2, overlap=2)
    other = desk.raters[1]
    submitted = _submitted(desk, desk.rater)
    leased = desk.taken()
    foreign = [_submitted(desk, other) for _ in range(2)][-1]
    assert (leased.chat_id, foreign.chat_id) == (desk.chats[1].pk, desk.chats[1].pk)
    lead = make_user("ines", Role.LEAD)
    users = {
        "rater": user_of(desk.rater),
        "other": user_of(other),
        "author": make_user("otto", Role.AUTHOR),
        "lead": lead,
    }
    run = give_away_judge(desk)
    give_away_people(desk, other=other, lead=lead)
    args = {
        **WORDS,
        "assignment_id": leased.pk,
        "submitted_assignment": submitted.pk,
        "foreign_assignment": foreign.pk,
        "job_id": desk.job.pk,
        "foreign_job": _foreign_job(desk).pk,
        "set_id": desk.chat_set.pk,
        "rubric_id": desk.rubric.pk,
        "chat_id": desk.chats[1].pk,
        "holdout_chat": _holdout(desk, run),
        "run_id": run.pk,
        "profile_id": JudgeProfile.objects.get(is_default=True).pk,
        "rater_id": other.pk,
        "user_id": lead.pk,
        "note_id": RaterNote.objects.filter(rater=other).latest("id").pk,
        "token_id": ApiToken.objects.get().pk,
    }
    return World(desk, users, args)


def _submitted(desk: Desk, rater: Rater) -> Assignment:
    assignment = desk.taken(rater)
    answer_all(assignment)
    return assignment_submit(assignment=assignment, rater=rater)


def _foreign_job(desk: Desk) -> Any:
    """A job of somebody else, on the same chats."""
    stranger = make_rater("stranger")
    return job_open(
        chat_set=desk.chat_set,
        name="Another job",
        criteria=desk.criteria,
        raters=[stranger],
        overlap=1,
        by=None,
    )


def _holdout(desk: Desk, run: Run) -> int:
    ChatSetMember.objects.filter(chat=desk.chats[3]).update(split="holdout")
    run.run_chats.filter(chat=desk.chats[3]).update(split="holdout")
    return desk.chats[3].pk


# ---------- what a rater must not read ----------


def give_away_judge(desk: Desk) -> Run:
    """Verdicts on every chat, with a judge, calls and prompts whose every text holds the canary."""
    run = judge_desk(desk, name=f"{CANARY}-judge", text=f"{CANARY}-rationale")
    judge = run.judge
    judge.config = {"model": f"{CANARY}-model", "endpoint": f"http://{CANARY}-endpoint/v1"}
    judge.save()
    for number, chat in enumerate(desk.chats):
        unit = Unit.objects.create(run=run, chat=chat, group=0, state="done", error=f"{CANARY}-unit")
        call = ModelCall.objects.create(
            key=f"{number:064}",
            endpoint=f"{CANARY}-endpoint",
            model=f"{CANARY}-model",
            role="direct",
            settings={},
            parts=[],
            state="answered",
            reply=f"{CANARY}-reply",
        )
        UnitCall.objects.create(unit=unit, call=call, role="direct", step=0)
        Verdict.objects.filter(run=run, chat=chat, criterion=desk.criteria[0]).update(unit=unit)
    for criterion in desk.criteria:
        PromptVersion.objects.create(
            criterion=criterion, number=1, text=f"{CANARY}-prompt", content_hash="p", reason=f"{CANARY}-why"
        )
    JudgeProfile.objects.create(name=f"{CANARY}-profile", config={"model": f"{CANARY}-model"})
    return run


def give_away_people(desk: Desk, *, other: Rater, lead: User) -> None:
    """Labels, drafts, notes, decisions, gold and names of others, on every chat."""
    third = make_rater(f"{CANARY}-third")
    for chat in desk.chats:
        for criterion in desk.criteria:
            for rater in (third, other):
                _label(desk, chat, criterion, rater)
        RaterNote.objects.create(
            rater=other, chat=chat, kind="comment", text=f"{CANARY}-note", client_id=f"{chat.pk:032x}"
        )
        Adjudication.objects.create(
            chat=chat,
            criterion=desk.criteria[0],
            value=False,
            reason=f"{CANARY}-reason",
            by_name=f"{CANARY}-lead",
            created_at=timezone.now(),
        )
        chat.metadata = {"score": f"{CANARY}-metadata", "title": f"{CANARY}-title"}
        chat.experiment, chat.variant = f"{CANARY}-experiment", f"{CANARY}-variant"
        chat.save()
    _gold(desk)
    User.objects.filter(rater=other).update(first_name=f"{CANARY}-name", email=f"{CANARY}@example.org")
    Rater.objects.filter(pk=other.pk).update(name=f"{CANARY}-other")
    Group.objects.create(name=f"{CANARY}-group")
    ApiToken.objects.create(user=lead, name=f"{CANARY}-token", digest="d" * 64, scopes=["see_judge"])
    audit(actor=lead, verb="label adjudicated", obj=desk.chats[0], reason=f"{CANARY}-audit")
    assert AuditEvent.objects.exists()
    consensus_refresh(
        criterion_ids=[row.pk for row in desk.criteria], chat_ids=[row.pk for row in desk.chats]
    )


def _label(desk: Desk, chat: Any, criterion: Any, rater: Rater) -> None:
    """A submitted label with its history; where the rater has one, it only gets the canary's words."""
    words = {
        "value": False,
        "rationale": f"{CANARY}-label",
        "evidence": [{"n": 2, "start": 0, "end": 5, "quote": f"{CANARY}-quote"}],
        "version": criterion.versions.get(),
        "state": "submitted",
    }
    now = timezone.now()
    label, _ = Label.objects.update_or_create(
        chat=chat, criterion=criterion, rater=rater, defaults=words | {"given_at": now}
    )
    number = LabelRevision.objects.filter(label=label).count() + 1
    LabelRevision.objects.create(
        label=label, number=number, client_id=f"{label.pk:032x}", created_at=now, **words
    )
    Label.objects.filter(pk=label.pk).update(revision=number)


def _gold(desk: Desk) -> None:
    """The chat in work is a gold chat; the set with the known answers has a telling name."""
    gold = ChatSet.objects.create(name=f"{CANARY}-answers", kind="gold", rubric=desk.rubric)
    ChatSetMember.objects.create(chat_set=gold, chat=desk.chats[1], position=1, stratum=f"{CANARY}-stratum")
    desk.job.gold_set, desk.job.gold_rate = gold, 0.25
    desk.job.save()
    Assignment.objects.filter(chat=desk.chats[1], state="leased").update(kind="gold")
