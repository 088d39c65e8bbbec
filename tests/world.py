"""A workspace with something behind every route, and the people who try them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group
from django.db import transaction
from django.test import Client
from django.utils import timezone

from alignment.models.regressions import RegressionTest, ReleaseRequest
from alignment.models.requests import RedesignProposal
from alignment.regression.core import Decision, Gate, regression_body
from alignment.regression.queries.tests import evidence_of
from alignment.regression.services.policies import policy_in_force
from common.models import Comment, InboxItem
from evaluation.day_counts.queries import counted_runs
from evaluation.day_counts.services import days_recount
from evaluation.models.endpoints import ConnectedEndpoint
from evaluation.models.judges import EndpointModel, Judge, JudgeProfile
from evaluation.models.prompts import Promotion, PromptVersion
from evaluation.models.runs import ModelCall, Run, RunChat, Unit, UnitCall, Verdict
from labeling.consensus.services.consensus import consensus_refresh
from labeling.jobs.services import job_close
from labeling.models.chats import Chat, ChatSet, ChatSetMember
from labeling.models.labels import (
    Adjudication,
    Assignment,
    Consensus,
    Label,
    LabelingJob,
    LabelRevision,
    RaterNote,
)
from labeling.models.people import ApiToken, AuditEvent, Rater, Role, User, Workspace
from labeling.models.rubric import Dimension
from labeling.people.services.audit import audit
from labeling.rating.services.leases import assignment_skip
from labeling.rating.services.submission import assignment_submit
from labeling.rubric.services.guidelines import guideline_write
from tests.factories.accounts import stored_people, stored_session
from tests.factories.alerts import stored_alert
from tests.factories.archives import stored_archive
from tests.factories.certificates import stored_certificate
from tests.factories.experiments import stored_experiment
from tests.factories.imports import stored_imports
from tests.factories.issues import stored_issue
from tests.factories.judged_job import judge_desk
from tests.factories.labelling_job import Desk, answer_all, expire, make_desk, user_of
from tests.factories.misalignments import stored_misalignment
from tests.factories.nights import stored_night
from tests.factories.rows import make_chat, make_rater, make_set, make_user
from tests.factories.stored_reports import stored_reports
from tests.factories.suggestions import stored_suggestion
from tests.factories.webhooks import stored_webhook

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
    "older_prompt": 2,
    "newest_prompt": 3,
    "index": 0,
    "what": "labels",
    "kind": "jsonl",
    "no_set": "none",
    "import_kind": "chats",
    "form": "csv",
}


def make_world() -> World:
    """Mara, `rater`, has submitted chat 1 and works on chat 2, which `other` has submitted.

    The workspace reveals the judge's view after submitting. Chat 4 is holdout. `both` labels in mara's job
    and writes prompts. Chats 5 to 8 are in every other state that a chat can be in for mara: `_states`.
    Everything that mara must not read contains the CANARY.
    """
    Workspace.current()
    Workspace.objects.update(reveal_after_submit=True)
    desk = make_desk(chats=8, raters=3, overlap=2)
    guideline_write(rubric=desk.rubric, text="Read all of it.", reason=CANARY, base=0, by=None)
    other = desk.raters[1]
    submitted, leased = _submitted(desk, desk.rater), desk.taken()
    foreign = [_submitted(desk, other) for _ in range(2)][-1]
    assert (leased.chat_id, foreign.chat_id) == (desk.chats[1].pk, desk.chats[1].pk)
    lead = make_user("ines", Role.LEAD)
    users = {
        "rater": user_of(desk.rater),
        "other": user_of(other),
        "both": user_of(desk.raters[2]),
        "author": make_user("otto", Role.AUTHOR),
        "lead": lead,
    }
    users["both"].groups.add(Group.objects.get(name=Role.AUTHOR))
    _gave_back(desk, desk.raters[2])
    states = _states(desk, other=other)
    judge_desk(desk, name=f"{CANARY}-older", text=f"{CANARY}-rationale")
    run = give_away_judge(desk)
    give_away_people(desk, other=other, lead=lead)
    paused = judge_desk(desk, name=f"{CANARY}-judge", text=f"{CANARY}-rationale", state="paused")
    Judge.objects.update(kind="lace")
    args = {
        **WORDS,
        "assignment_id": leased.pk,
        "submitted_assignment": submitted.pk,
        "foreign_assignment": foreign.pk,
        "run_id": run.pk,
        "paused_run": paused.pk,
        **_prompt_work(desk, run, lead),
        "holdout_chat": _holdout(desk),
        "train_chat": _training(desk),
        **states,
        **_rows(desk, users),
        **stored_reports(run, users),
    }
    return World(desk, users, args)


def count_days() -> None:
    """Count the verdicts of all runs by day, for the pages of production."""
    for run in counted_runs():
        days_recount(run.pk)


def _prompt_work(desk: Desk, run: Run, lead: User) -> dict[str, int]:
    """The ids of tests, a try, imports and what production has; its pages read counts by day."""
    ids = {
        **stored_imports(lead, f"{CANARY}-import"),
        **stored_night(desk.rubric, by=lead, text=CANARY),
        **stored_alert(desk.rubric, run, text=CANARY),
        **stored_webhook(CANARY),
        **stored_experiment(run, desk.chats, text=CANARY),
        "test_id": _regression(desk, run, lead),
        "try_id": _try(desk),
        "issue_id": stored_issue(desk.criteria[0], desk.chats[1], run, text=CANARY),
        "running_test": _going(desk, run, lead),
    }
    count_days()
    return ids


def _rows(desk: Desk, users: dict[str, User]) -> dict[str, Any]:
    """The ids of what stands at the desk, and of what `other` and the lead have."""
    other, chat = desk.raters[1], desk.chats[1]
    run, lead = Run.objects.earliest("id"), users["lead"]
    test = RegressionTest.objects.earliest("id")
    asked = ReleaseRequest.objects.create(regression=test, note=f"{CANARY}-request", by=users["author"])
    row = stored_misalignment(desk.criteria[0], chat, run, by=lead, text=CANARY)
    held = stored_misalignment(desk.criteria[0], desk.chats[3], run, by=lead, text=CANARY)
    for subject in (f"disagreement:{row}", f"disagreement:{held}"):
        Comment.objects.create(subject=subject, text=f"{CANARY}-comment", by=lead, at=timezone.now())
    return {
        "archive_id": stored_archive(by=lead),
        "subject": f"disagreement:{row}",
        "held_thread": f"disagreement:{held}",
        "item_id": _inbox_item(lead, f"disagreement:{row}", by=users["author"]).pk,
        "request_id": asked.pk,
        "proposal_id": _proposal(desk, users["author"]).pk,
        "certificate_id": stored_certificate(run, by=lead, split="dev").pk,
        "misalignment_id": row,
        "held_misalignment": held,
        "suggestion_id": stored_suggestion(desk.criteria[0], chat, run, by=lead, text=CANARY).pk,
        "job_id": desk.job.pk,
        "foreign_job": _foreign_job(desk).pk,
        "set_id": desk.chat_set.pk,
        "rubric_id": desk.rubric.pk,
        **_dimensions(desk),
        "criterion_id": desk.criteria[0].pk,
        **dict.fromkeys(("chat_id", "chat_number"), chat.pk),
        "profile_id": JudgeProfile.objects.get(is_default=True).pk,
        "model_id": EndpointModel.objects.get().pk,
        "endpoint_id": ConnectedEndpoint.objects.get().pk,
        "rater_id": other.pk,
        "rater_account": users["rater"].pk,
        "user_id": users["lead"].pk,
        **_notes(desk, chat),
        "decision": Adjudication.objects.get(chat=chat).pk,
        "token_id": ApiToken.objects.get(user=users["lead"]).pk,
        "foreign_token": _token(users["other"]).pk,
        **stored_people(lead, CANARY),
        "session_id": stored_session(users["rater"], CANARY),
    }


def _notes(desk: Desk, chat: Chat) -> dict[str, Any]:
    notes = RaterNote.objects.filter(rater=desk.raters[1])
    return {
        "note_id": notes.get(chat=chat, criterion=None).pk,
        "unclear_note": notes.get(chat=chat, kind="unclear").pk,
        "holdout_note": notes.get(chat=desk.chats[3], kind="unclear").pk,
    }


def _dimensions(desk: Desk) -> dict[str, int]:
    """The ids of a dimension with criteria and of one without."""
    empty = Dimension.objects.create(key="empty", name="Empty", position=9)
    return {"dimension_id": desk.criteria[0].dimension_id, "empty_dimension": empty.pk}


def _proposal(desk: Desk, author: User) -> RedesignProposal:
    note = f"{CANARY}-proposal"
    return RedesignProposal.objects.create(criterion=desk.criteria[0], note=note, by=author)


def _inbox_item(user: User, subject: str, *, by: User) -> InboxItem:
    return InboxItem.objects.create(user=user, kind="assigned", subject=subject, by=by, at=timezone.now())


def _submitted(desk: Desk, rater: Rater, *, job: LabelingJob | None = None) -> Assignment:
    assignment = desk.taken(rater, job=job)
    answer_all(assignment)
    return assignment_submit(assignment=assignment, rater=rater)


def _foreign_job(desk: Desk) -> Any:
    """A job of somebody else, on the same chats."""
    return desk.opened(name=f"{CANARY}-job", raters=[make_rater(f"{CANARY}-stranger")])


def _states(desk: Desk, *, other: Rater) -> dict[str, int]:
    """By name: what mara skipped, lost and has in a closed job and in a calibration round; others' jobs."""
    second = make_set(desk.rubric, *desk.chats[4:6], name="second")
    job = desk.opened(chat_set=second, name="Second")
    skipped = desk.taken(job=job)
    assignment_skip(assignment=skipped, rater=desk.rater, reason="too_long")
    lost = desk.taken(job=job)
    expire(lost)
    for _ in range(2):
        _changed_after_reveal(_submitted(desk, other, job=job))
    closed = desk.opened(chat_set=make_set(desk.rubric, desk.chats[6], name="third"), name="Closed")
    done = _submitted(desk, desk.rater, job=closed)
    job_close(job=closed, by=None)
    round_set = make_set(desk.rubric, desk.chats[7], name="round")
    round_set.kind = ChatSet.Kind.CALIBRATION
    round_set.save()
    waiting = desk.opened(chat_set=second, name="Waiting", calibration_set=round_set)
    assert waiting.calibration is not None
    _submitted(desk, other, job=waiting.calibration)
    group = Group.objects.create(name=f"{CANARY}-group")
    user_of(other).groups.add(group)
    group_job = desk.opened(name=f"{CANARY}-group-job", raters=[], group=group)
    return {
        "skipped_assignment": skipped.pk,
        "lost_assignment": lost.pk,
        "closed_assignment": done.pk,
        "closed_job": closed.pk,
        "calibration_assignment": desk.taken(job=waiting.calibration).pk,
        "waiting_job": waiting.pk,
        "group_job": group_job.pk,
    }


def _changed_after_reveal(assignment: Assignment) -> None:
    Assignment.objects.filter(pk=assignment.pk).update(revealed_at=timezone.now())
    answer_all(assignment, value=False)


def _token(user: User) -> ApiToken:
    return ApiToken.objects.create(user=user, name="own", digest="e" * 64, scopes=["label_chats"])


def _holdout(desk: Desk) -> int:
    """Held out in its set and in every run there is."""
    for rows in (ChatSetMember.objects, RunChat.objects):
        rows.filter(chat=desk.chats[3]).update(split="holdout")
    return desk.chats[3].pk


def _training(desk: Desk) -> int:
    """A chat for training alone, on which people have decided."""
    chat = make_chat(f"{CANARY}-train", messages=[("user", f"{CANARY}-said"), ("assistant", "Sorry.")])
    make_set(desk.rubric, chat, name=f"{CANARY}-training", split="train")
    Consensus.objects.create(chat=chat, criterion=desk.criteria[0], state="true", n_true=1)
    return chat.pk


def _regression(desk: Desk, run: Run, lead: User) -> int:
    """A finished regression test, whose reasons hold the canary."""
    test = RegressionTest(
        kind="judge",
        chat_set=desk.chat_set,
        split="holdout",
        policy=policy_in_force(),
        baseline_run=run,
        candidate_run=run,
        state="done",
        result="fail",
        reasons=[f"{CANARY}-reason"],
        created_by=lead,
    )
    evidence = evidence_of(test, candidate=run)
    test.body = regression_body(evidence, Decision(Gate.FAIL, tuple(test.reasons)), seed=1)
    test.save()
    return test.pk


def _try(desk: Desk) -> int:
    """What an author who is none of the people has tried."""
    run = judge_desk(desk, name=f"{CANARY}-judge", text=f"{CANARY}-rationale")
    run.purpose, run.started_by = Run.Purpose.TRY, make_user("ada", Role.AUTHOR)
    prompt = PromptVersion.objects.create(
        criterion=desk.criteria[0], text=f"{CANARY}-tried", content_hash="t", author=run.started_by
    )
    tried = {"criterion": "polite", "what": "disagreements", "n": 10, "by_champion": False}
    run.options = {"try": tried | {"prompt": prompt.pk, "before": {}}, "profile": f"{CANARY}-profile"}
    run.save()
    Unit.objects.bulk_create(Unit(run=run, chat=chat, group=0, state="done") for chat in desk.chats)
    return run.pk


def _going(desk: Desk, baseline: Run, by: User) -> int:
    """A regression test of this person whose candidate is still asked."""
    run = judge_desk(desk, name=f"{CANARY}-candidate", text=f"{CANARY}-rationale", state="running")
    run.purpose, run.finished_at = Run.Purpose.REGRESSION, None
    run.save()
    return RegressionTest.objects.create(
        kind="judge",
        chat_set=desk.chat_set,
        split="dev",
        policy=policy_in_force(),
        baseline_run=baseline,
        candidate_run=run,
        created_by=by,
    ).pk


def _gave_back(desk: Desk, rater: Rater) -> None:
    """Every chat of the job, or what they are still to label would not exist for them as an author."""
    Assignment.objects.bulk_create(
        Assignment(
            job=desk.job, chat=chat, rater=rater, slot=9, position=n, state="skipped", skip_reason="too_long"
        )
        for n, chat in enumerate(desk.chats, start=1)
    )


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
        _prompts(criterion)
    JudgeProfile.objects.create(name=f"{CANARY}-profile", config={"model": f"{CANARY}-model"})
    EndpointModel.objects.create(endpoint="https://api.test/v1", model=f"{CANARY}-model")
    ConnectedEndpoint.objects.create(name=f"{CANARY}-endpoint", address="https://office.test/v1")
    return run


def _prompts(criterion: Any) -> None:
    """A champion and two drafts."""
    for number in (1, 2, 3):
        PromptVersion.objects.create(
            criterion=criterion,
            number=number,
            text=f"# Objective\n{CANARY}-prompt {number}",
            content_hash=f"p{number}",
            reason=f"{CANARY}-why",
        )
    champion = PromptVersion.objects.get(criterion=criterion, number=1)
    Promotion.objects.create(criterion=criterion, version=champion, reason=f"{CANARY}-release")


def give_away_people(desk: Desk, *, other: Rater, lead: User) -> None:
    """Labels, drafts, notes, decisions, gold and names of others, on every chat."""
    third = make_rater(f"{CANARY}-third")
    for chat in desk.chats:
        for criterion in desk.criteria:
            for rater in (third, other):
                _label(desk, chat, criterion, rater)
        said = {"rater": other, "chat": chat, "text": f"{CANARY}-note"}
        unclear = {"criterion": desk.criteria[0], "version": desk.criteria[0].versions.get()}
        RaterNote.objects.create(kind="comment", client_id=f"{chat.pk:032x}", **said)
        RaterNote.objects.create(kind="unclear", client_id=f"{chat.pk + 1000:032x}", **said, **unclear)
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
