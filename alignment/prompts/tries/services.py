"""Preview and tries: the exact messages of a draft, and its verdicts on a few chats."""

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from alignment.comparison.queries.latest_verdicts import LatestVerdicts, latest_verdicts
from alignment.prompts.queries.sections import hides_examples
from alignment.prompts.services import example_choices_for
from alignment.prompts.tries.queries import TRY_OPTIONS, members_to_try, tries_of
from common.problems import FieldProblem, InputProblem
from evaluation.gateway.current import current_endpoint
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.queries.profiles import profile_choice
from evaluation.judges.services.judges import judge_ensure
from evaluation.models.judges import JudgeProfile
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run, Verdict
from evaluation.prompts.queries.drafts import WorkingPrompt, working_prompt
from evaluation.prompts.services.drafts import try_ensure
from evaluation.prompts.services.versions import champions_ensure
from evaluation.runs.services.control import CANCELLABLE, run_cancel, run_launch
from evaluation.runs.services.estimates import estimate_for
from evaluation.runs.services.runs import RunChoice, asked_together, chosen_criteria
from evaluation.runs.worker.estimate import Estimate, asking_of
from evaluation.runs.worker.preview import Preview, preview
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.people import User, Workspace
from labeling.models.rubric import Criterion

# Authors may try without the right to start runs: a few chats, one try of a criterion at a time.
MOST_CHATS, USUAL_CHATS = 50, 10
CHAT, DISAGREEMENTS = "chat", "disagreements"


class TryRefused(InputProblem):
    """The try is not possible; the message says why."""


@dataclass(frozen=True, slots=True)
class TryChoice:
    """The object of a try: one chat by id, or (None) the `n` newest disagreements, with the profile's judge.

    Without a draft the version `base` is tried, by default the champion. `budget_usd` limits the cost.
    """

    profile: JudgeProfile
    chat_id: int | None = None
    n: int = USUAL_CHATS
    base: PromptVersion | None = None
    budget_usd: Decimal | None = None

    @property
    def what(self) -> str:
        """The kind of try, as pages and API name it."""
        return DISAGREEMENTS if self.chat_id is None else CHAT


@dataclass(frozen=True, slots=True)
class _Plan:
    """A prepared try; `before` is the current verdict on each chat that has one."""

    prompt: WorkingPrompt
    judge: JudgeSpec
    chat_set: ChatSet
    keys: tuple[str, ...]
    chat_ids: tuple[int, ...]
    before: dict[int, int]
    by_champion: bool

    def run(self, choice: TryChoice, tried: dict[str, Any]) -> RunChoice:
        """Return the run's choice; `tried` is stored in its options."""
        return RunChoice(
            criteria=self.keys,
            chats=self.chat_ids,
            purpose=Run.Purpose.TRY,
            budget_usd=choice.budget_usd,
            options={TRY_OPTIONS: tried, "profile": choice.profile.name},
        )


def prompt_preview(*, criterion: Criterion, author: User, choice: TryChoice) -> Preview:
    """Return the messages to each role about one chat, without sending or storing anything.

    Raises InputProblem for an invalid draft, profile or endpoint, without a chat, and if a prompt of the call
    has an example on a chat that the author cannot see.
    """
    member = _member(criterion, author, choice.chat_id)
    # NB: created before the transaction: the secret of the fences must survive the rollback.
    Workspace.current()
    with transaction.atomic():
        judge = _judge(choice.profile)
        tried_prompt = _tried_prompt(criterion, author, _working_prompt(criterion, author, choice))
        keys = _criteria_in_call(member.chat_set, criterion, judge)
        criteria = chosen_criteria(member.chat_set, keys)
        row = judge_ensure(
            choice=judge,
            criteria=criteria,
            endpoint=current_endpoint(),
            prompts=[tried_prompt],
            by=author,
        )
        if hides_examples(row, user=author):
            raise TryRefused("a prompt of this call has an example on a chat that you cannot see")
        asking = asking_of(row, replicate=0, audit=0.0)
        transaction.set_rollback(True)
    return preview(asking=asking, key=criterion.key, chat=member.chat)


def try_estimate(*, criterion: Criterion, author: User, choice: TryChoice) -> Estimate:
    """Return calls and cost of a try without storing anything. Raises as try_start does."""
    with transaction.atomic():
        plan = _plan(criterion, author, choice)
        tried_prompt = _tried_prompt(criterion, author, plan.prompt)
        estimate = estimate_for(
            chat_set=plan.chat_set,
            judge=plan.judge,
            run=plan.run(choice, {}),
            endpoint=current_endpoint(),
            prompts=[tried_prompt],
        )
        transaction.set_rollback(True)
    return estimate


@transaction.atomic
def try_start(*, criterion: Criterion, author: User, choice: TryChoice) -> Run:
    """Start a try of the author's prompt and cancel the author's earlier open try of this criterion.

    Raises InputProblem as prompt_preview does, without a chat to try, and for an invalid budget.
    """
    plan = _plan(criterion, author, choice)
    tried_prompt = _tried_prompt(criterion, author, plan.prompt)
    tried = {
        "criterion": criterion.key,
        "what": choice.what,
        "n": choice.n,
        "prompt": tried_prompt.pk,
        "before": {str(chat): verdict for chat, verdict in plan.before.items()},
        "by_champion": plan.by_champion,
    }
    run = run_launch(
        chat_set=plan.chat_set,
        judge=plan.judge,
        run=plan.run(choice, tried),
        endpoint=current_endpoint(),
        by=author,
        prompts=[tried_prompt],
    )
    for earlier in tries_of(criterion=criterion, author=author).filter(state__in=CANCELLABLE, pk__lt=run.pk):
        run_cancel(run=earlier, by=author)
    return run


def try_cancel(*, run: Run, author: User) -> None:
    """Cancel a try unless it is finished. Stored answers are kept."""
    if run.state in CANCELLABLE:
        run_cancel(run=run, by=author)


def _plan(criterion: Criterion, author: User, choice: TryChoice) -> _Plan:
    judge, prompt = _judge(choice.profile), _working_prompt(criterion, author, choice)
    champion = champions_ensure(criteria=[criterion], by=author)[criterion.pk]
    latest = latest_verdicts(criterion=criterion, champion=champion)
    if choice.chat_id is None:
        chat_set, before = _disagreements(criterion, author, latest, choice.n)
        chat_ids = tuple(before)
    else:
        member = _member(criterion, author, choice.chat_id)
        chat_set, chat_ids = member.chat_set, (member.chat_id,)
        before = dict(latest.verdicts.filter(chat=member.chat_id).values_list("chat_id", "pk"))
    keys = _criteria_in_call(chat_set, criterion, judge)
    return _Plan(prompt, judge, chat_set, keys, chat_ids, before, latest.by_champion)


def _disagreements(
    criterion: Criterion, author: User, latest: LatestVerdicts, n: int
) -> tuple[ChatSet, dict[int, int]]:
    """Return the set with most of the newest disagreements, and its newest ones with their verdicts."""
    if not 1 <= n <= MOST_CHATS:
        raise TryRefused(f"a try can have 1 to {MOST_CHATS} chats, not {n:,}")
    members = members_to_try(criterion=criterion, user=author)
    newest = list(_pairs(latest, members)[:n])
    if not newest:
        raise TryRefused(
            "there is no disagreement on a train or dev chat that you can see: try one chat instead"
        )
    sets = members.filter(chat__in=[chat for chat, _ in newest]).values_list("chat_set", flat=True)
    set_id, _ = max(Counter(sets).items(), key=lambda item: (item[1], item[0]))
    chat_set = ChatSet.objects.select_related("rubric").get(pk=set_id)
    return chat_set, dict(_pairs(latest, members.filter(chat_set=set_id))[:n])


def _pairs(latest: LatestVerdicts, members: QuerySet[ChatSetMember]) -> QuerySet[Verdict, tuple[int, int]]:
    """Return the disagreements on these members' chats as pairs of chat and verdict id."""
    disagreements = latest.disagreements.filter(chat__in=members.values("chat"))
    return disagreements.values_list("chat_id", "pk")


def _member(criterion: Criterion, author: User, chat_id: int | None) -> ChatSetMember:
    members = members_to_try(criterion=criterion, user=author).filter(chat=chat_id)
    member = members.select_related("chat", "chat_set__rubric").order_by("-chat_set_id").first()
    if member is None:
        raise TryRefused("the chat is not in train or dev of a set of this rubric")
    return member


def _judge(profile: JudgeProfile) -> JudgeSpec:
    try:
        return profile_choice(profile)
    except FieldProblem as problem:
        raise TryRefused(f"the recipe of the profile {profile.name} cannot be read: {problem}") from problem


def _working_prompt(criterion: Criterion, author: User, choice: TryChoice) -> WorkingPrompt:
    base = choice.base or champions_ensure(criteria=[criterion], by=author)[criterion.pk]
    return working_prompt(criterion=criterion, author=author, base=base)


def _tried_prompt(criterion: Criterion, author: User, prompt: WorkingPrompt) -> PromptVersion:
    examples = example_choices_for(author, prompt.examples) if prompt.revision else ()
    return try_ensure(criterion=criterion, prompt=prompt, examples=examples, author=author)


def _criteria_in_call(chat_set: ChatSet, criterion: Criterion, judge: JudgeSpec) -> tuple[str, ...]:
    return asked_together(chat_set=chat_set, criterion=criterion, judge=judge, endpoint=current_endpoint())
