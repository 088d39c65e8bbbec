"""A decided regression test over the chats of `compared`, with a known cell for every chat."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils import timezone

from alignment.models.regressions import RegressionTest
from alignment.regression.core import decide, regression_body
from alignment.regression.queries.tests import evidence_of, gate_policy
from alignment.regression.services.policies import policy_in_force
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run, RunChat, Verdict
from tests.factories.compared_runs import HUMAN, JUDGE, SPLITS, Compared
from tests.factories.rater_quality import polite

Rule = Callable[[int], bool]
FAILED = (3,)  # here the candidate's calls failed


def candidate_says(n: int) -> bool:
    """Right but on every seventh chat; the champion errs on every fifth."""
    return HUMAN["polite"](n) is (n % 7 != 0)


def cell_of(n: int) -> str:
    """The cell of the chat at this position."""
    if n in FAILED:
        return "no_verdict"
    right = {JUDGE["polite"](n) is HUMAN["polite"](n), candidate_says(n) is HUMAN["polite"](n)}
    if len(right) == 1:
        return "still_right" if right == {True} else "still_wrong"
    return "fixed" if candidate_says(n) is HUMAN["polite"](n) else "broken"


@dataclass(frozen=True)
class DecidedTest:
    """The test, and the positions of the chats it covers."""

    compared: Compared
    test: RegressionTest
    places: tuple[int, ...]

    def of(self, cell: str, *, held: bool | None = None) -> list[int]:
        """The positions of a cell's chats: of all, of the held-out ones, or of the others."""
        found = [n for n in self.places if cell_of(n) == cell]
        return [n for n in found if held is None or (SPLITS[n % 4] == "holdout") is held]

    def cell_url(self, cell: str, query: str = "", key: str = "polite") -> str:
        return reverse("alignment:regression_cell", args=[self.test.pk, key, cell]) + query

    def chat_url(self, n: int, query: str = "", key: str = "polite") -> str:
        chat = self.compared.chat(n).pk
        return reverse("alignment:regression_chat", args=[self.test.pk, key, chat]) + query

    def topics_url(self, key: str = "polite") -> str:
        return reverse("alignment:regression_topics", args=[self.test.pk]) + f"?criterion={key}"


def make_tested(
    compared: Compared, *, split: str = "", confirm: Rule | None = None, noise: Rule | None = None
) -> DecidedTest:
    """Champion and candidate over the set or a split of it; `confirm` and `noise` are asked again."""
    members = compared.chat_set.members.filter(**{"split": split} if split else {})
    places = tuple(members.order_by("position").values_list("position", flat=True))
    test = RegressionTest.objects.create(
        chat_set=compared.chat_set,
        split=split,
        policy=policy_in_force(),
        candidate=_version_2(),
        baseline_run=run_over(compared, places, JUDGE["polite"]),
        candidate_run=run_over(compared, places, candidate_says, failed=FAILED),
        confirm_run=run_over(compared, places, confirm) if confirm else None,
        noise_run=run_over(compared, places, noise) if noise else None,
    )
    decided(test)
    return DecidedTest(compared, test, places)


def decided(test: RegressionTest) -> None:
    """Let the gate decide on what the runs say now."""
    evidence = evidence_of(test, candidate=test.candidate_run)
    decision = decide(evidence, policy=gate_policy(test.policy))
    test.state, test.result = "done", decision.gate.value
    test.reasons, test.body = list(decision.reasons), regression_body(evidence, decision, seed=1)
    test.finished_at = timezone.now()
    test.save()


def run_over(compared: Compared, places: Collection[int], says: Rule, failed: Collection[int] = ()) -> Run:
    """A finished run that answers `polite` alone, by the outside judge."""
    run = Run.objects.create(
        judge=compared.run.judge,
        chat_set=compared.chat_set,
        purpose=Run.Purpose.REGRESSION,
        state=Run.State.DONE,
        finished_at=timezone.now(),
    )
    chats = [(n, compared.chat(n)) for n in places]
    RunChat.objects.bulk_create(RunChat(run=run, chat=chat, split=SPLITS[n % 4]) for n, chat in chats)
    Verdict.objects.bulk_create(_verdict(run, n, chat, says, failed=n in failed) for n, chat in chats)
    return run


def _verdict(run: Run, n: int, chat: Any, says: Rule, *, failed: bool) -> Verdict:
    return Verdict(
        run=run,
        chat=chat,
        criterion=polite(),
        state=Verdict.State.FAILED if failed else Verdict.State.READ,
        value=None if failed else says(n),
        rationale="" if failed else f'Run {run.pk} on chat {n}: [m2: "Order {n} is on its way."]',
        read_by=Verdict.ReadBy.IMPORT,
        stored_at=timezone.now(),
    )


def _version_2() -> PromptVersion:
    given = {"text": "# Objective\nq", "content_hash": "c"}
    return PromptVersion.objects.get_or_create(criterion=polite(), number=2, defaults=given)[0]
