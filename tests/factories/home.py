"""A workspace in which something of each kind waits for somebody."""

import uuid
from datetime import timedelta
from typing import Any

from django.utils import timezone

from alignment.misalignments.worker import disagreements_sweep
from alignment.models.regressions import ReleaseRequest
from alignment.models.requests import RedesignProposal
from alignment.prompts.queries.version_metrics import version_counts_store
from evaluation.models.judges import Judge, JudgePrompt
from evaluation.models.prompts import Promotion, PromptDraft
from evaluation.models.runs import Run, RunChat, Unit, Verdict
from labeling.models.labels import Assignment, Consensus, LabelingJob, RaterNote
from labeling.models.people import Rater, Role, User
from labeling.models.rubric import Criterion, CriterionVersion
from tests.factories.certificates import stored_certificate
from tests.factories.compared_runs import Compared, make_compared
from tests.factories.prompt_versions import CONFIG, a_test, a_version, promote, run_of
from tests.factories.rater_quality import job_of, polite
from tests.factories.rows import make_user


def measured(key: str, compared: Compared, *wrong: int, models: tuple[str, ...] = ()) -> Run:
    """Released versions of a criterion, each with a run that is wrong on every so-manieth chat; stored."""
    criterion = Criterion.objects.get(key=key)
    runs = []
    for n, every in enumerate(wrong):
        version = a_version(criterion)
        config = {"model": models[n]} if models else {}
        runs.append(run_of(version, compared.chat_set, wrong=every, config=config))
        promote(version)
    for run in runs:
        version_counts_store(run)
    return runs[-1]


def run_of_all(compared: Compared) -> Run:
    """A run over the whole set with the released version of every criterion, whose dev split is small."""
    name = "direct, all released versions"
    judge = Judge.objects.create(fingerprint="a" * 64, name=name, engine="direct", config=CONFIG)
    run = Run.objects.create(
        judge=judge, chat_set=compared.chat_set, state="done", finished_at=timezone.now()
    )
    for criterion in compared.criteria:
        newest = Promotion.objects.filter(criterion=criterion).latest("pk")
        JudgePrompt.objects.create(
            judge=judge,
            criterion=criterion,
            criterion_version=criterion.versions.latest("number"),
            prompt_version=newest.version,
            group=0,
        )
    members = list(compared.chat_set.members.order_by("position"))
    RunChat.objects.bulk_create(
        RunChat(run=run, chat_id=row.chat_id, split=row.split if n <= 40 or n % 8 == 0 else "train")
        for n, row in enumerate(members, 1)
    )
    verdicts = list(Verdict.objects.filter(run=compared.run))
    for one in verdicts:
        one.pk, one.run = None, run
    Verdict.objects.bulk_create(verdicts)
    version_counts_store(run)
    return run


def make_busy(*, chats: int = 248) -> Compared:
    """Polite is aligned after three versions, wrong_fact is critical and not aligned; welcome lacks False.

    Every eighth chat is holdout, the others dev.

    A run is paused, a version passed its test, an author asks for another one's release, texts wait to be
    confirmed, a redesign is proposed, notes are open, a certificate ends in ten days, two raters are tied.
    """
    compared = make_compared(chats=chats)
    for rows in (compared.chat_set.members, compared.run.run_chats):
        rows.exclude(chat__external_id__in=[f"chat-{n}" for n in range(8, chats + 1, 8)]).update(split="dev")
    lead, author = make_user("ines", Role.LEAD), make_user("otto", Role.AUTHOR)
    Criterion.objects.filter(key="wrong_fact").update(critical=True)
    newest = measured("polite", compared, 4, 7, 20, models=("m0", "m1", "m1"))
    measured("wrong_fact", compared, 6, 3)
    measured("welcome", compared, 30)
    disagreements_sweep()
    _tests(compared, newest, author)
    _texts_and_notes(compared, author)
    _paused(compared)
    certificate = stored_certificate(newest, by=lead)
    type(certificate).objects.filter(pk=certificate.pk).update(expires_at=timezone.now() + timedelta(days=10))
    job_of(compared)
    Consensus.objects.filter(criterion=polite(), chat=compared.chat(3)).update(
        state="unresolved", n_true=1, n_false=1
    )
    return compared


def _tests(compared: Compared, run: Run, author: User) -> None:
    done = {"result": "pass", "finished_at": timezone.now(), "created_by": author}
    for key in ("polite", "wrong_fact"):
        version = a_version(Criterion.objects.get(key=key), author=author)
        test = a_test(version, run, body={"criteria": []}, **done)
    ReleaseRequest.objects.create(regression=test, by=author, note="Fewer false alarms.")
    base = JudgePrompt.objects.filter(criterion=polite()).latest("pk").prompt_version
    PromptDraft.objects.create(criterion=polite(), author=author, base=base, text="# Objective\nSo?")


def _texts_and_notes(compared: Compared, author: User) -> None:
    text = polite().versions.get()
    CriterionVersion.objects.filter(pk=text.pk).update(wording="asked", created_by=author)
    RedesignProposal.objects.create(criterion=Criterion.objects.get(key="welcome"), by=author, note="Two.")
    a_note("anna", compared, 2)


def _paused(compared: Compared) -> None:
    judge = compared.run.judge
    run = Run.objects.create(
        judge=judge,
        chat_set=compared.chat_set,
        state="paused",
        error="the budget of $5 is reached",
        units_total=40,
        units_done=10,
    )
    at = timezone.now() - timedelta(days=4)
    Unit.objects.create(run=run, chat=compared.chat(1), group=0, state="done", finished_at=at)


def a_note(rater: str, compared: Compared, n: int, text: str = "Is thanks enough?") -> RaterNote:
    """An open note that a criterion is unclear, on chat n, which is dev where n modulo 4 is 1 or 2."""
    return RaterNote.objects.create(
        rater=Rater.objects.get(name=rater),
        chat=compared.chat(n),
        criterion=polite(),
        version=polite().versions.latest("number"),
        kind="unclear",
        text=text,
        client_id=uuid.uuid4(),
    )


def as_rater(compared: Compared, name: str = "anna", *, chats: int = 12) -> User:
    """An account for a rater, with an open job: some chats submitted on working days, others left."""
    user = make_user(name, Role.RATER)
    rater = Rater.objects.get(name=name)
    Rater.objects.filter(pk=rater.pk).update(user=user)
    job = LabelingJob.objects.create(chat_set=compared.chat_set, name="November", overlap=1)
    job.criteria.set(compared.criteria)
    job.raters.add(rater)
    now = timezone.now()
    for n in range(1, 2 * chats + 1):
        fields: dict[str, Any] = {"state": "open"}
        if n <= chats:
            at = now - timedelta(days=n % 5)
            fields = {"state": "submitted", "rater": rater, "submitted_at": at, "active_ms": 160_000}
        Assignment.objects.create(job=job, chat=compared.chat(n + 4), slot=1, position=n, **fields)
    return user
