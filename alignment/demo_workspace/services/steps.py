"""The steps that build the demo, each with its day in the demo's history."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from functools import partial

from django.db import transaction
from django.utils import timezone

from alignment.demo_workspace.core.production import WEEKS
from alignment.demo_workspace.services import follow_up, history, production, team, topics
from alignment.demo_workspace.services.demo_workspace import (
    BEGAN,
    clock,
    demo_ensure,
    draft_ensure,
    raters_ensure,
)
from alignment.demo_workspace.services.history import People
from alignment.demo_workspace.services.labelling import labelling_ensure
from alignment.demo_workspace.services.production import Production
from alignment.demo_workspace.services.team import Team
from alignment.models.regressions import RegressionTest
from alignment.monitoring.services import audits_work
from common.problems import InputProblem
from evaluation.models.runs import Run
from labeling.models.people import AuditEvent, User, Workspace
from labeling.people.services.audit import audit
from labeling.people.services.roles import rater_for

STEP = "demo step"
DAY = timedelta(days=1)
# A demo of fewer chats has this part of them on a day in production.
CHATS_A_DAY = 5
# The first week in which failing chats are clustered, with those of the weeks before.
ISSUES_FROM = 4
PASSED = "No fixed chat was lost and the bound is inside the limit."
REFUSAL = "It fails chats for being brief. Please find words that leave a short, correct answer alone."


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its words for the command line, how many days ago it happened, and what it does."""

    name: str
    days_ago: float
    act: Callable[[], object]


@dataclass(slots=True)
class Demo:
    """A demo in the making."""

    first_day: datetime
    rater: User
    author: User
    lead: User
    password: str
    chats: int | None = None
    team: Team = field(init=False)

    def __post_init__(self) -> None:
        self.team = team.team(first_day=self.first_day, count=self.chats)

    @property
    def today(self) -> datetime:
        """When the demo was begun."""
        return self.first_day + timedelta(days=BEGAN)

    @property
    def show(self) -> Production:
        """The weeks in production."""
        most = None if self.chats is None else max(1, self.chats // CHATS_A_DAY)
        return Production(self.team, self.lead, self.today, most=most)

    @property
    def people(self) -> People:
        """Author and lead."""
        return People(lead=self.lead, author=self.author)

    def labelling(self) -> list[Step]:
        """Return the steps up to the labels."""
        lead = self.lead
        return [
            Step("rubric, knowledge and hand-written chats", 105, self._written),
            Step("composed chats", 104, partial(team.chats_ensure, self.team)),
            Step("labels of five invented raters", 88, partial(team.labels_ensure, self.team)),
            Step("calibration, jobs and gold", 87.9, partial(team.jobs_ensure, self.team, lead=lead)),
            Step("decisions of the lead", 87, partial(team.decisions_ensure, self.team, lead=lead)),
            Step("accounts of the raters", 86.9, self._accounts),
            Step("notes of the raters", 5.6, partial(team.notes_ensure, self.team, lead=lead)),
        ]

    def judging(self) -> list[Step]:
        """Return the steps with the simulated judge."""
        lead, people = self.lead, self.people
        return [
            Step("prompts v1, direct engine", 86, partial(self._run, "v1")),
            Step("certificate on v1", 85.5, partial(self._certificate, "v1")),
            Step("report on v1, first triage", 85, partial(self._report, "v1", triage=18)),
            Step("a revision that passes", 83, partial(self._released, "contextual_relevancy", 2)),
            Step("a revision that fails", 82, self._refused),
            Step("another one that passes", 80, partial(self._released, "stated_wrong_fact", 2)),
            Step("prompts v2", 79, partial(self._run, "v2", criteria=history.REVISED)),
            Step("report on v2", 78.5, partial(self._report, "v2", triage=8)),
            Step(
                "decisions revised, the rest decided",
                77,
                partial(team.decisions_finish, self.team, lead=lead),
            ),
            Step("engines side by side", 75, partial(history.league_ensure, lead)),
            Step("a third version that passes", 69, partial(self._released, "stated_wrong_fact", 3)),
            Step("prompts v3", 68, partial(self._run, "v3")),
            Step("certificate on v3", 67, partial(self._certificate, "v3")),
            Step("report on v3", 66.5, partial(self._report, "v3", triage=10)),
            Step("a judge for every night", 64, self._nightly),
            *self._production(),
            Step("a revision with too few labels", 4, self._inconclusive),
            Step("the judge looked at again", 3, self._again),
            Step("a release that waits for the lead", 2, self._asked),
            Step("an untested draft", 1.5, draft_ensure),
            Step("triage of this week", 1, partial(history.triage_ensure, people=people, count=16, every=4)),
        ]

    def _production(self) -> list[Step]:
        """Return the steps of the weeks in production."""
        show, today = self.show, self.today
        begins = production.moment(show.first, time(9))
        steps = [Step("a sample plan", (today - begins) / DAY, partial(production.plan_ensure, show))]
        for week in range(1, WEEKS + 1):
            ago = (today - show.ends(week)) / DAY
            steps.append(Step(f"production, week {week}", ago, partial(production.week_ensure, show, week)))
            if week >= ISSUES_FROM:
                found = partial(follow_up.issues_ensure, self.people, week)
                steps.append(Step(f"issues up to week {week}", ago, found))
        return [
            *steps,
            Step("labels of the random audit, counted", ago, audits_work),
            Step("the experiment, counted", ago, partial(follow_up.experiment_ensure, self.people)),
            Step("an alert acknowledged", ago, partial(follow_up.alerts_ensure, self.people)),
            Step("topics by a model, measured", ago, partial(topics.topic_prompt_ensure, self.lead)),
        ]

    def _written(self) -> None:
        chat_set = demo_ensure(first_day=self.first_day, lead=self.lead)
        labelling_ensure(chat_set=chat_set, rater=rater_for(user=self.rater), lead=self.lead)

    def _accounts(self) -> None:
        accounts = {rater.name: rater.account for rater in self.team.raters}
        raters_ensure(password=self.password, accounts=accounts)

    def _run(self, name: str, *, criteria: tuple[str, ...] = ()) -> Run:
        return history.run_ensure(name, chat_set=history.support_set(), by=self.lead, criteria=criteria)

    def _report(self, name: str, *, triage: int) -> None:
        history.report_ensure(self._run(name))
        history.triage_ensure(people=self.people, count=triage, every=5)

    def _certificate(self, name: str) -> None:
        try:
            history.certificate_ensure(self._run(name), by=self.lead)
        except InputProblem:
            if self.chats is None:
                raise  # a smaller demo has too few labels for a certificate

    def _nightly(self) -> None:
        production.nightly_judge_run(self.lead)

    def _again(self) -> None:
        """Let the lead look at the judge again, after the alert: its model has changed."""
        changed = self.show.answers(WEEKS)
        run = history.run_ensure("v3 again", chat_set=history.support_set(), by=self.lead, anew=changed)
        history.report_ensure(run)
        history.triage_ensure(people=self.people, count=8, every=5)

    def _released(self, criterion: str, version: int) -> None:
        test = history.test_ensure(criterion, version, "holdout", by=self.author)
        history.release_ensure(test, by=self.lead, reason=PASSED)

    def _refused(self) -> None:
        test = history.test_ensure("polite_professional", 2, "dev", by=self.author)
        note = "Cold replies annoy customers, I think it is worth the false alarms."
        history.request_ensure(test, people=self.people, note=note, refusal=REFUSAL)

    def _inconclusive(self) -> RegressionTest:
        return history.test_ensure("actionable_answer", 2, "train", by=self.author)

    def _asked(self) -> None:
        test = history.test_ensure("self_consistent", 2, "dev", by=self.author)
        note = "Quoting both messages cures most of the false alarms. May it go live?"
        history.request_ensure(test, people=self.people, note=note)


def steps_run(steps: list[Step], *, first_day: datetime) -> Iterator[tuple[Step, bool]]:
    """Run steps at their days; yield each one, and whether an earlier start had finished it."""
    done = set(AuditEvent.objects.filter(verb=STEP).values_list("detail__step", flat=True))
    today = first_day + timedelta(days=BEGAN)
    for number, step in enumerate(steps):
        if step.name not in done:
            # Not every step at the same time of day.
            ago = timedelta(days=step.days_ago, minutes=53 * number % 97)
            moment = min(today - ago, timezone.now())
            with clock(moment):
                step.act()
                with transaction.atomic():
                    audit(actor=None, verb=STEP, obj=Workspace.current(), step=step.name)
        yield step, step.name in done
