"""The demo's history with the simulated judge: runs, revisions, releases, certificates, triage; invented."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from alignment.certificates.services.certificates import certificate_issue
from alignment.comparison.queries.scope import Scope
from alignment.demo_workspace.queries import DemoAnswers, demo_answers
from alignment.demo_workspace.services.demo_workspace import DEMO
from alignment.demo_workspace.services.simulated_runs import Memory, run_simulate
from alignment.demo_workspace.services.team import SUPPORT
from alignment.misalignments.services import Triage, misalignment_triage
from alignment.misalignments.worker import misalignments_refresh
from alignment.models.certificates import Certificate
from alignment.models.misalignments import Misalignment
from alignment.models.regressions import RegressionTest
from alignment.prompts.queries.version_metrics import version_counts_store
from alignment.regression.services.policies import policy_in_force
from alignment.regression.services.releases import release, release_answer, release_ask
from alignment.regression.services.tests import RegressionChoice, prompt_test_start
from alignment.regression.worker import regression_advance
from alignment.reports.worker import report_store
from common.problems import InputProblem
from evaluation.gateway.current import current_endpoint
from evaluation.gateway.endpoints import resolve_endpoint
from evaluation.judges.core.spec import EngineName, JudgeSpec
from evaluation.judges.queries.profiles import default_profile
from evaluation.judges.services.profiles import profiles_ensure
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import FINISHED, ON_WORKER, Run
from evaluation.prompts.queries.versions import champions
from evaluation.prompts.services.examples import prompt_version_add
from evaluation.runs.services.runs import RunChoice, run_start
from labeling.models.chats import ChatSet, ChatSetMember, Split
from labeling.models.people import User
from labeling.models.rubric import Criterion

LEAGUE, LEAGUE_CHATS = "League of engines", 60
COMPARED = (
    *("contextual_relevancy", "stated_wrong_fact", "actionable_answer", "self_consistent"),
    "followed_required_procedure",
)
# Those that revisions were about when v2 ran.
REVISED = ("contextual_relevancy", "stated_wrong_fact")
# The embedded model judges this much live, in the worker.
LIVE, LIVE_CHATS = ("customer_left_dissatisfied", "polite_professional"), 4
_SILENCE = "- **Silence:**"
# Most prompts of a run are those of an earlier one.
_MEMORY: Memory = {}


@dataclass(frozen=True, slots=True)
class People:
    """Who acts in the history."""

    lead: User
    author: User


def run_ensure(
    name: str,
    *,
    chat_set: ChatSet,
    by: User,
    judge: JudgeSpec | None = None,
    criteria: Sequence[str] = (),
    limit: int | None = None,
    anew: DemoAnswers | None = None,
) -> Run:
    """Run the simulated judge over a set, once under this name.

    With `anew` every question is asked anew, and this is what the judge answers now.
    """
    key = _hash(name)
    run = Run.objects.filter(source_hash=key).first() or run_start(
        chat_set=chat_set,
        judge=judge or JudgeSpec("direct"),
        run=RunChoice(
            criteria=criteria,
            limit=limit,
            replicate=int(anew is not None),
            source_hash=key,
            options={"demo": True},
        ),
        endpoint=current_endpoint(),
        by=by,
    )
    if run.state not in FINISHED and anew is not None:
        run_simulate(run, answers=anew)
    elif run.state not in FINISHED:
        _execute(run)
    return run


def support_set() -> ChatSet:
    """Return the set of all support chats."""
    return ChatSet.objects.select_related("rubric").get(name=SUPPORT)


def report_ensure(run: Run) -> None:
    """Store a run's disagreements, its report, and the figures of its prompt versions."""
    misalignments_refresh(run)
    report_store(Scope(run.chat_set, run), share=True)
    version_counts_store(run)


def league_ensure(by: User) -> None:
    """Run three engines over a small set of dev chats."""
    chat_set, created = ChatSet.objects.get_or_create(name=LEAGUE, defaults={"rubric": support_set().rubric})
    if created:
        members = support_set().members.filter(split=Split.DEV).order_by("position")[:LEAGUE_CHATS]
        ChatSetMember.objects.bulk_create(
            ChatSetMember(chat_set=chat_set, chat_id=row.chat_id, split=row.split, position=row.position)
            for row in members
        )
    engines: tuple[EngineName, ...] = ("direct", "reflection", "debate")
    for engine in engines:
        run_ensure(f"league {engine}", chat_set=chat_set, by=by, judge=JudgeSpec(engine), criteria=COMPARED)


# ---------- revisions ----------


def revision_ensure(criterion: str, version: int, *, by: User) -> PromptVersion:
    """Add a revision of a prompt: the champion's text with one more rule before its rule on silence."""
    rows = json.loads((DEMO / "revisions.json").read_text(encoding="utf-8"))
    revision = next(row for row in rows if (row["criterion"], row["version"]) == (criterion, version))
    found = Criterion.objects.get(key=criterion)
    champion = champions(criteria=[found])[found.pk]
    if (champion.number or 0) >= version:
        return champion
    text = champion.text.replace(_SILENCE, f"{revision['rule']}\n{_SILENCE}", 1)
    return prompt_version_add(criterion=found, text=text, reason=revision["reason"], author=by, base=champion)


def test_ensure(criterion: str, version: int, split: str, *, by: User) -> RegressionTest:
    """Test a revision on a split, with the simulated judge, to its result."""
    key = _hash(f"test {criterion} {version}")
    test = RegressionTest.objects.filter(candidate_run__source_hash=key).first()
    if test is None:
        candidate = revision_ensure(criterion, version, by=by)
        profiles_ensure()
        choice = RegressionChoice(
            chat_set=support_set(),
            split=split,
            judge=JudgeSpec("direct"),
            policy=policy_in_force(),
            on_worker=False,
            profile=default_profile(),
            source_hash=key,
        )
        test = prompt_test_start(candidate=candidate, choice=choice, by=by)
    while test.is_open:
        for run in (test.baseline_run, test.candidate_run, test.confirm_run):
            if run is not None and run.state not in FINISHED:
                _execute(run)
        test = regression_advance(test.pk)
    return test


def release_ensure(test: RegressionTest, *, by: User, reason: str) -> None:
    """Release a passed test's candidate."""
    if test.released_at is None and test.result == RegressionTest.Result.PASS:
        release(test=test, by=by, reason=reason)


@transaction.atomic
def request_ensure(test: RegressionTest, *, people: People, note: str, refusal: str = "") -> None:
    """Let the author ask for a release; the lead refuses it with a reason, or has not answered yet."""
    if test.released_at is not None or test.state != RegressionTest.State.DONE:
        return
    try:
        row = release_ask(test=test, note=note, by=people.author)
    except InputProblem:
        return  # asked by an earlier start
    if refusal:
        release_answer(request=row, answer="refused", reason=refusal, by=people.lead)


def certificate_ensure(run: Run, *, by: User) -> None:
    """Certify the judge of a run, if a criterion of its report qualifies."""
    if not Certificate.objects.filter(judge=run.judge).exists():
        certificate_issue(run=run, by=by)


# ---------- triage ----------

NOTES = {
    "judge": "The rationale quotes the right message and draws the wrong conclusion.",
    "label": "I'd answer like the judge here. Please look at the label again.",
    "criterion": "The definition leaves this open: is a promise a fact?",
    "knowledge": "No article says this. We need one on what happens after a cancelled slot.",
    "other": "Two customers in one chat.",
}


@transaction.atomic
def triage_ensure(*, people: People, count: int, every: int = 1) -> None:
    """Let author and lead name causes and take open disagreements, `count` of them, in turn."""
    items = Misalignment.objects.filter(state=Misalignment.State.OPEN, revision=0)
    shown = items.exclude(chat__memberships__split=Split.HOLDOUT).order_by("criterion", "pk").distinct()
    causes = ("judge", "judge", "knowledge", "judge", "label", "criterion", "judge", "knowledge", "other")
    for number, item in enumerate(list(shown)[::every][:count]):
        cause = causes[number % len(causes)]
        owner = people.lead if cause in ("label", "criterion") else people.author
        by = people.author if number % 3 else people.lead
        change = Triage(
            cause=cause if number % 7 else None,
            note=NOTES[cause] if number % 4 == 0 else None,
            owner=owner.username if number % 5 else None,
        )
        misalignment_triage(misalignment_id=item.pk, change=change, seen=item.revision, by=by)


# ---------- the embedded model ----------


def live_run_ensure(*, by: User) -> Run:
    """Plan a small run of the embedded model, a weak judge, and leave it to the worker."""
    key = _hash("live")
    return Run.objects.filter(source_hash=key).first() or run_start(
        chat_set=ChatSet.objects.get(name=LEAGUE),
        judge=JudgeSpec("direct", grouping="criterion"),
        run=RunChoice(criteria=LIVE, limit=LIVE_CHATS, source_hash=key, options={ON_WORKER: True}),
        endpoint=resolve_endpoint(base_url=None, api_key=None),
        by=by,
    )


def _execute(run: Run) -> None:
    run_simulate(run, answers=demo_answers(), memory=_MEMORY)


def _hash(name: str) -> str:
    return hashlib.sha256(f"demo {name}".encode()).hexdigest()
