"""The set-up steps of a workspace, with their state from the data, and where each one is done."""

from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.urls import reverse

from alignment.models.reports import Report
from evaluation.models.endpoints import ConnectedEndpoint
from evaluation.models.runs import EVALUATIONS, ModelCall, Run
from labeling.models.chats import Chat, ChatSet
from labeling.models.labels import LabelingJob
from labeling.models.people import Role, User
from labeling.models.rubric import Criterion
from labeling.people.queries.workspace import set_up_hidden

# Where each step is done: the route, and what follows its address. A chat set needs a rubric: it comes first.
TARGETS = {
    "rubric": ("labeling:rubric_new", ""),
    "chats": ("labeling:import_new", "?kind=chats"),
    "raters": ("labeling:people", "#invite"),
    "job": ("labeling:job_new", ""),
    "model": ("evaluation:endpoint_new", ""),
    "run": ("evaluation:run_new", ""),
    "report": ("alignment:report_list", ""),
}
# Where a step that is done can be looked at.
PLACES = {
    "rubric": "labeling:rubric_list",
    "chats": "labeling:set_list",
    "raters": "labeling:people",
    "job": "labeling:job_list",
    "model": "evaluation:endpoint_list",
    "run": "evaluation:run_list",
    "report": "alignment:report_list",
}
# key → title, what it is for, button
WORDS = {
    "rubric": ("Choose a rubric", "The yes/no questions that raters and judge answer.", "Create rubric"),
    "chats": (
        "Import chats",
        "A file of conversations of your chatbot, into a chat set: CSV, Excel, JSON or JSONL.",
        "Import",
    ),
    "raters": (
        "Invite raters",
        "With two raters or more, the report measures how far raters agree.",
        "Invite",
    ),
    "job": ("Open a labelling job", "It hands the chats to the raters.", "Open job"),
    "model": ("Connect a model", "The endpoint that the judge asks.", "Connect"),
    "run": ("Run the judge", "The judge answers the same questions about the same chats.", "Start run"),
    "report": ("Read the report", "How far the judge agrees with the raters.", "Open reports"),
}


@dataclass(frozen=True, slots=True)
class SetUpStep:
    """A step; `state` is done, next (the first open one) or later."""

    key: str
    state: str

    @property
    def title(self) -> str:
        """What to do."""
        return WORDS[self.key][0]

    @property
    def purpose(self) -> str:
        """What it is for, in a sentence."""
        return WORDS[self.key][1]

    @property
    def button(self) -> str:
        """The words on its button."""
        return "Open" if self.state == "done" else WORDS[self.key][2]

    @property
    def url(self) -> str:
        """The page that does it, or shows what is done."""
        if self.state == "done":
            return reverse(PLACES[self.key])
        route, after = TARGETS[self.key]
        return reverse(route) + after


@dataclass(frozen=True, slots=True)
class SetUp:
    """The steps in order; `empty`: the workspace has no chats or no criteria."""

    steps: tuple[SetUpStep, ...]
    hidden: bool
    empty: bool

    @property
    def done(self) -> int:
        """Number of steps done."""
        return sum(step.state == "done" for step in self.steps)

    @property
    def finished(self) -> bool:
        """Whether the workspace has a report, the last step; imported verdicts get there without a model."""
        return self.steps[-1].state == "done"

    @property
    def shown(self) -> bool:
        """Whether Home lists the steps."""
        return not self.hidden and not self.finished


def set_up() -> SetUp:
    """Return the steps of this workspace; a constant number of queries."""
    done = {key: check() for key, check in DONE.items()}
    steps: list[SetUpStep] = []
    for key in TARGETS:
        following = all(step.state == "done" for step in steps)
        steps.append(SetUpStep(key, "done" if done[key] else "next" if following else "later"))
    return SetUp(tuple(steps), set_up_hidden(), empty=not (done["rubric"] and Chat.objects.exists()))


def _model_connected() -> bool:
    """Whether the settings or a lead name an endpoint, or any model has answered."""
    named = settings.OPENAI_BASE_URL or settings.OPENAI_API_KEY
    return bool(named) or ConnectedEndpoint.objects.exists() or ModelCall.objects.exists()


DONE: dict[str, Callable[[], bool]] = {
    "rubric": Criterion.objects.filter(state=Criterion.State.ACTIVE).exists,
    "chats": ChatSet.objects.exists,
    "raters": User.objects.filter(groups__name=Role.RATER, is_active=True).exists,
    "job": LabelingJob.objects.exists,
    "model": _model_connected,
    "run": Run.objects.filter(purpose__in=EVALUATIONS).exists,
    "report": Report.objects.filter(kind=Report.Kind.REPORT, run__isnull=False).exists,
}
