"""Preview and tries: the exact messages of a draft, and its verdicts on a few chats."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from alignment.comparison.queries.latest_verdicts import LatestVerdicts, latest_verdicts
from alignment.models.pins import PinnedChat
from alignment.prompts.queries.sections import hides_examples
from alignment.prompts.services import example_choices_for
from alignment.prompts.tries.queries.bench import verdicts_before
from alignment.prompts.tries.queries.results import TRY_OPTIONS, members_to_try, tries_of
from common.problems import FieldProblem, InputProblem
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.queries.configs import judge_endpoint
from evaluation.judges.queries.profiles import profile_choice
from evaluation.judges.services.judges import judge_ensure
from evaluation.models.judges import JudgeProfile
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import UNITS_LEFT, Run, Verdict
from evaluation.prompts.queries.drafts import WorkingPrompt, working_prompt
from evaluation.prompts.services.drafts import try_ensure
from evaluation.prompts.services.examples import PromptRefused, prompt_hash
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
MOST_PINS = 20  # of an author beside one prompt
CHAT, CHATS, DISAGREEMENTS = "chat", "chats", "disagreements"


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
            endpoint=judge_endpoint(judge),
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
        estimate = _estimate(plan, choice, tried_prompt)
        transaction.set_rollback(True)
    return estimate


def _estimate(plan: _Plan, choice: TryChoice, tried_prompt: PromptVersion) -> Estimate:
    return estimate_for(
        chat_set=plan.chat_set,
        judge=plan.judge,
        run=plan.run(choice, {}),
        endpoint=judge_endpoint(plan.judge),
        prompts=[tried_prompt],
    )


@dataclass(frozen=True, slots=True)
class BenchChoice:
    """Chats beside the editor, and the judge; `budget_usd` limits the cost of all of them together."""

    profile: JudgeProfile
    chat_ids: tuple[int, ...]
    base: PromptVersion | None = None
    budget_usd: Decimal | None = None


def bench_estimates(*, criterion: Criterion, author: User, choice: BenchChoice) -> list[Estimate]:
    """Return calls and cost by chat set without storing anything. Raises as bench_start does."""
    with transaction.atomic():
        plans = _bench_plans(criterion, author, choice)
        tried_prompt = _tried_prompt(criterion, author, plans[0][0].prompt)
        estimates = [_estimate(plan, one, tried_prompt) for plan, one in plans]
        transaction.set_rollback(True)
    return estimates


@transaction.atomic
def bench_start(*, criterion: Criterion, author: User, choice: BenchChoice) -> list[Run]:
    """Try the author's prompt on these chats: one run for each chat set that they come from.

    Open tries of the same chats are cancelled. Raises InputProblem as prompt_preview does, for too many chats
    and for an invalid budget.
    """
    Criterion.objects.select_for_update(no_key=True).get(pk=criterion.pk)  # one start at a time
    plans = _bench_plans(criterion, author, choice)
    earlier = tries_of(criterion=criterion, author=author).filter(
        state__in=CANCELLABLE, units__chat__in=choice.chat_ids, units__state__in=UNITS_LEFT
    )
    for run in list(earlier.distinct()):
        run_cancel(run=run, by=author)
    pending = tries_of(criterion=criterion, author=author).filter(state__in=CANCELLABLE)
    waiting = sum(run.units_left for run in pending)
    if waiting + len(choice.chat_ids) > MOST_CHATS:
        raise TryRefused(f"{waiting:,} chats are being tried; at most {MOST_CHATS} can be at a time")
    tried_prompt = _tried_prompt(criterion, author, plans[0][0].prompt)
    return [_launch(plan, one, tried_prompt, criterion, author, what=CHATS) for plan, one in plans]


def tries_cancel(*, criterion: Criterion, author: User) -> None:
    """Cancel all open tries of the author's prompt. Stored answers are kept."""
    for run in tries_of(criterion=criterion, author=author).filter(state__in=CANCELLABLE):
        run_cancel(run=run, by=author)


def draft_digest(*, author: User, prompt: WorkingPrompt) -> str:
    """Return the hash of a draft's text and examples; '' if an example is hidden from the author."""
    if prompt.revision == 0:
        return prompt.base.content_hash
    try:
        return prompt_hash(text=prompt.text, examples=example_choices_for(author, prompt.examples))
    except PromptRefused:
        return ""


def pin_chats(*, criterion: Criterion, author: User, chat_ids: Collection[int]) -> int:
    """Pin the chats beside the author's editor; return how many of them can be tried.

    Chats that are holdout or hidden from the author are left out. Of too many the earliest pins go.
    """
    members = members_to_try(criterion=criterion, user=author).filter(chat__in=chat_ids)
    known = set(members.values_list("chat", flat=True))
    pins = [PinnedChat(author=author, criterion=criterion, chat_id=pk) for pk in chat_ids if pk in known]
    PinnedChat.objects.bulk_create(pins, ignore_conflicts=True)
    own = PinnedChat.objects.filter(criterion=criterion, author=author)
    own.exclude(pk__in=list(own.order_by("-pk").values_list("pk", flat=True)[:MOST_PINS])).delete()
    return len(known)


def unpin_chats(*, criterion: Criterion, author: User, chat_ids: Collection[int]) -> None:
    """Take the chats from the author's pinned ones."""
    PinnedChat.objects.filter(criterion=criterion, author=author, chat__in=chat_ids).delete()


@transaction.atomic
def try_start(*, criterion: Criterion, author: User, choice: TryChoice) -> Run:
    """Start a try of the author's prompt and cancel the author's earlier open try of this criterion.

    Raises InputProblem as prompt_preview does, without a chat to try, and for an invalid budget.
    """
    plan = _plan(criterion, author, choice)
    tried_prompt = _tried_prompt(criterion, author, plan.prompt)
    run = _launch(plan, choice, tried_prompt, criterion, author, what=choice.what)
    for earlier in tries_of(criterion=criterion, author=author).filter(state__in=CANCELLABLE, pk__lt=run.pk):
        run_cancel(run=earlier, by=author)
    return run


def _launch(
    plan: _Plan,
    choice: TryChoice,
    tried_prompt: PromptVersion,
    criterion: Criterion,
    author: User,
    *,
    what: str,
) -> Run:
    tried = {
        "criterion": criterion.key,
        "what": what,
        "n": choice.n,
        "prompt": tried_prompt.pk,
        "before": {str(chat): verdict for chat, verdict in plan.before.items()},
        "by_champion": plan.by_champion,
    }
    return run_launch(
        chat_set=plan.chat_set,
        judge=plan.judge,
        run=plan.run(choice, tried),
        endpoint=judge_endpoint(plan.judge),
        by=author,
        prompts=[tried_prompt],
    )


def _bench_plans(criterion: Criterion, author: User, choice: BenchChoice) -> list[tuple[_Plan, TryChoice]]:
    """Return a plan for each chat set, so that few sets cover all chats; the budget is shared by chats."""
    if not 1 <= len(choice.chat_ids) <= MOST_CHATS:
        raise TryRefused(f"a try can have 1 to {MOST_CHATS} chats, not {len(choice.chat_ids):,}")
    judge, champion = _judge(choice.profile), champions_ensure(criteria=[criterion], by=author)[criterion.pk]
    prompt = working_prompt(criterion=criterion, author=author, base=choice.base or champion)
    latest = verdicts_before(criterion=criterion, base=prompt.base).latest
    before = dict(latest.on(choice.chat_ids).values_list("chat_id", "pk"))
    plans = []
    for set_id, chats in _by_set(criterion, author, choice.chat_ids).items():
        chat_set = ChatSet.objects.select_related("rubric").get(pk=set_id)
        keys = _criteria_in_call(chat_set, criterion, judge)
        known = {pk: before[pk] for pk in chats if pk in before}
        plan = _Plan(prompt, judge, chat_set, keys, tuple(chats), known, latest.by_champion)
        share = choice.budget_usd and choice.budget_usd * len(chats) / len(choice.chat_ids)
        plans.append((plan, TryChoice(choice.profile, n=len(chats), base=choice.base, budget_usd=share)))
    return plans


def _by_set(criterion: Criterion, author: User, chat_ids: Sequence[int]) -> dict[int, list[int]]:
    """Assign each chat to a set: the one with most of the chats first, newer sets among equals."""
    members = members_to_try(criterion=criterion, user=author).filter(chat__in=chat_ids)
    pairs = list(members.values_list("chat_set", "chat"))
    if {chat for _, chat in pairs} != set(chat_ids):
        raise TryRefused("a chat is not in train or dev of a set of this rubric")
    chosen: dict[int, list[int]] = {}
    left = set(chat_ids)
    while left:
        counts = Counter(chat_set for chat_set, chat in pairs if chat in left)
        best, _ = max(counts.items(), key=lambda item: (item[1], item[0]))
        inside = {chat for chat_set, chat in pairs if chat_set == best} & left
        chosen[best] = [chat for chat in chat_ids if chat in inside]
        left -= inside
    return chosen


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
        before = dict(latest.on([member.chat_id]).values_list("chat_id", "pk"))
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
    return asked_together(chat_set=chat_set, criterion=criterion, judge=judge, endpoint=judge_endpoint(judge))
