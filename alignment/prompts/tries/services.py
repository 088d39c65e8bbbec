"""Tries a prompt before it is saved: the exact messages, and verdicts on a few chats that authors may see."""

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from alignment.comparison.queries.latest_verdicts import Judged, judged
from alignment.prompts.queries.sections import hides_examples
from alignment.prompts.services import example_choices_for
from alignment.prompts.tries.queries import TRIED, members_to_try, tries_of
from common.problems import FieldProblem, InputProblem
from evaluation.gateway.current import current_endpoint
from evaluation.judges.core.spec import JudgeChoice
from evaluation.judges.queries.profiles import profile_choice
from evaluation.judges.services.judges import judge_ensure
from evaluation.models.judges import JudgeProfile
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Run, Verdict
from evaluation.prompts.queries.drafts import WorkingPrompt, working_prompt
from evaluation.prompts.services.tries import trial_ensure
from evaluation.prompts.services.versions import champions_ensure
from evaluation.runs.services.control import CANCELLABLE, run_cancel, run_launch
from evaluation.runs.services.estimates import estimate_for
from evaluation.runs.services.runs import RunChoice, asked_together, chosen_criteria
from evaluation.runs.worker.estimate import Estimate, asking_of
from evaluation.runs.worker.preview import Preview, preview
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.people import User, Workspace
from labeling.models.rubric import Criterion

# Authors may try without the right to start runs: so many chats at most, one try of a criterion at a time.
MOST_CHATS, USUAL_CHATS = 50, 10
CHAT, DISAGREEMENTS = "chat", "disagreements"


class TryRefused(InputProblem):
    """A try that makes no sense; the message says why."""


@dataclass(frozen=True, slots=True)
class TryChoice:
    """On what: one chat by id, or (None) the `n` newest disagreements; asked by whom.

    `base` is tried where the author has no draft, the champion without it. `budget_usd` caps what it spends.
    """

    profile: JudgeProfile
    chat_id: int | None = None
    n: int = USUAL_CHATS
    base: PromptVersion | None = None
    budget_usd: Decimal | None = None

    @property
    def what(self) -> str:
        """In the words of pages and API."""
        return DISAGREEMENTS if self.chat_id is None else CHAT


@dataclass(frozen=True, slots=True)
class _Plan:
    """A try made ready; `before` pins the verdict that stands on each chat, where there is one."""

    prompt: WorkingPrompt
    judge: JudgeChoice
    chat_set: ChatSet
    keys: tuple[str, ...]
    chat_ids: tuple[int, ...]
    before: dict[int, int]
    by_champion: bool

    def run(self, choice: TryChoice, tried: dict[str, Any]) -> RunChoice:
        """What the run covers; `tried` is what it remembers."""
        return RunChoice(
            criteria=self.keys,
            chats=self.chat_ids,
            purpose=Run.Purpose.TRY,
            budget_usd=choice.budget_usd,
            options={TRIED: tried, "profile": choice.profile.name},
        )


def prompt_preview(*, criterion: Criterion, author: User, choice: TryChoice) -> Preview:
    """What every role would be sent about one chat; nothing is sent and nothing is kept.

    Raises InputProblem: for a draft that no version may be, a profile or an endpoint that cannot be used,
    without a chat, and where an example of any prompt in it is on a chat that the author may not read.
    """
    member = _member(criterion, author, choice.chat_id)
    # NB: made here where it is missing: the secret of the fences must outlive what is taken back.
    Workspace.current()
    with transaction.atomic():
        judge = _judge(choice.profile)
        trial = _trial(criterion, author, _working(criterion, author, choice))
        keys = _together(member.chat_set, criterion, judge)
        criteria = chosen_criteria(member.chat_set, keys)
        row = judge_ensure(choice=judge, criteria=criteria, endpoint=current_endpoint(), prompts=[trial])
        if hides_examples(row, user=author):
            raise TryRefused("a prompt of this call has an example on a chat that you may not read")
        asking = asking_of(row, replicate=0, audit=0.0)
        transaction.set_rollback(True)
    return preview(asking=asking, key=criterion.key, chat=member.chat)


def try_estimate(*, criterion: Criterion, author: User, choice: TryChoice) -> Estimate:
    """What a try would ask and cost now; nothing is kept. Raises as try_start does."""
    with transaction.atomic():
        plan = _plan(criterion, author, choice)
        trial = _trial(criterion, author, plan.prompt)
        found = estimate_for(
            chat_set=plan.chat_set,
            judge=plan.judge,
            run=plan.run(choice, {}),
            endpoint=current_endpoint(),
            prompts=[trial],
        )
        transaction.set_rollback(True)
    return found


@transaction.atomic
def try_start(*, criterion: Criterion, author: User, choice: TryChoice) -> Run:
    """Have the workers try the author's prompt; an earlier try of this criterion that goes on is ended.

    Raises InputProblem: as prompt_preview does, where there is nothing to try on, and for a budget that
    cannot be kept.
    """
    plan = _plan(criterion, author, choice)
    trial = _trial(criterion, author, plan.prompt)
    tried = {
        "criterion": criterion.key,
        "what": choice.what,
        "n": choice.n,
        "prompt": trial.pk,
        "before": {str(chat): verdict for chat, verdict in plan.before.items()},
        "by_champion": plan.by_champion,
    }
    run = run_launch(
        chat_set=plan.chat_set,
        judge=plan.judge,
        run=plan.run(choice, tried),
        endpoint=current_endpoint(),
        by=author,
        prompts=[trial],
    )
    for earlier in tries_of(criterion=criterion, author=author).filter(state__in=CANCELLABLE, pk__lt=run.pk):
        run_cancel(run=earlier, by=author)
    return run


def try_cancel(*, run: Run, author: User) -> None:
    """End a try that goes on; one that is over stays as it is. What was answered stays."""
    if run.state in CANCELLABLE:
        run_cancel(run=run, by=author)


def _plan(criterion: Criterion, author: User, choice: TryChoice) -> _Plan:
    judge, prompt = _judge(choice.profile), _working(criterion, author, choice)
    champion = champions_ensure(criteria=[criterion])[criterion.pk]
    standing = judged(criterion=criterion, champion=champion)
    if choice.chat_id is None:
        chat_set, before = _disagreements(criterion, author, standing, choice.n)
        chat_ids = tuple(before)
    else:
        member = _member(criterion, author, choice.chat_id)
        chat_set, chat_ids = member.chat_set, (member.chat_id,)
        before = dict(standing.verdicts.filter(chat=member.chat_id).values_list("chat_id", "pk"))
    keys = _together(chat_set, criterion, judge)
    return _Plan(prompt, judge, chat_set, keys, chat_ids, before, standing.by_champion)


def _disagreements(
    criterion: Criterion, author: User, standing: Judged, n: int
) -> tuple[ChatSet, dict[int, int]]:
    """The newest ones of one set, with the verdicts: of the set that holds most of the newest."""
    if not 1 <= n <= MOST_CHATS:
        raise TryRefused(f"a try takes 1 to {MOST_CHATS} chats, not {n:,}")
    members = members_to_try(criterion=criterion, user=author)
    newest = list(_of(standing, members)[:n])
    if not newest:
        raise TryRefused(
            "there is no chat of train or dev on which people and the judge differ: try one chat"
        )
    held = members.filter(chat__in=[chat for chat, _ in newest]).values_list("chat_set", flat=True)
    set_id, _ = max(Counter(held).items(), key=lambda item: (item[1], item[0]))
    chat_set = ChatSet.objects.select_related("rubric").get(pk=set_id)
    return chat_set, dict(_of(standing, members.filter(chat_set=set_id))[:n])


def _of(standing: Judged, members: QuerySet[ChatSetMember]) -> QuerySet[Verdict, tuple[int, int]]:
    """Chat and verdict of the disagreements on these members' chats."""
    parted = standing.parted.filter(chat__in=members.values("chat"))
    return parted.values_list("chat_id", "pk")


def _member(criterion: Criterion, author: User, chat_id: int | None) -> ChatSetMember:
    members = members_to_try(criterion=criterion, user=author).filter(chat=chat_id)
    found = members.select_related("chat", "chat_set__rubric").order_by("-chat_set_id").first()
    if found is None:
        raise TryRefused("there is no such chat in train or dev of a set of this rubric")
    return found


def _judge(profile: JudgeProfile) -> JudgeChoice:
    try:
        return profile_choice(profile)
    except FieldProblem as problem:
        raise TryRefused(f"the recipe of the profile {profile.name} cannot be read: {problem}") from problem


def _working(criterion: Criterion, author: User, choice: TryChoice) -> WorkingPrompt:
    base = choice.base or champions_ensure(criteria=[criterion])[criterion.pk]
    return working_prompt(criterion=criterion, author=author, base=base)


def _trial(criterion: Criterion, author: User, prompt: WorkingPrompt) -> PromptVersion:
    examples = example_choices_for(author, prompt.examples) if prompt.revision else ()
    return trial_ensure(criterion=criterion, prompt=prompt, examples=examples, author=author)


def _together(chat_set: ChatSet, criterion: Criterion, judge: JudgeChoice) -> tuple[str, ...]:
    return asked_together(chat_set=chat_set, criterion=criterion, judge=judge, endpoint=current_endpoint())
