"""Labels for a production rate: random samples in which every chat had a chance, by effective size."""

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext

from alignment.comparison.queries.scope import Scope
from alignment.label_planning.queries.plan import criterion_plans
from alignment.label_planning.services.sample import create_sample
from alignment.label_planning.services.sample_preview import SampleRequest, preview_sample
from evaluation.models.runs import Run, RunChat
from labeling.chats.core.allocation import AllocationRule
from labeling.jobs.services import job_open
from labeling.models.chats import Chat, ChatSet, Topic
from labeling.models.labels import Consensus
from labeling.models.people import User
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import Compared, text_of
from tests.factories.label_samples import BARE, DRAW, estimate_url, strip, wish_of
from tests.factories.prompt_versions import a_version, run_of
from tests.factories.rater_quality import polite
from tests.factories.rows import make_rater

pytestmark = pytest.mark.django_db


@pytest.fixture
def bare(compared: Compared) -> Compared:
    """Chats 9 to 40 have no label on `polite`; every fourth of them is a refund."""
    strip(compared, BARE)
    refunds = [f"chat-{n}" for n in BARE if n % 4 == 0]
    refund = Topic.objects.create(key="refund", name="Refund")
    Chat.objects.filter(external_id__in=refunds).update(topic=refund)
    return compared


def sampled(compared: Compared, by: User, **changes: object) -> ChatSet:
    """A sample whose chats are all labelled."""
    chat_set = create_sample(fair(compared, **changes), by=by).chat_set
    asked = Criterion.objects.filter(key="polite")
    Consensus.objects.bulk_create(
        Consensus(chat_id=chat, criterion=asked.get(), state="true")
        for chat in chat_set.members.values_list("chat_id", flat=True)
    )
    asked.update(labels_seq=F("labels_seq") + 1)
    return chat_set


def fair(compared: Compared, **changes: object) -> SampleRequest:
    """Half of the 32 eligible chats, in proportion to verdict and topic."""
    return wish_of(compared, **({"chats": 16, "suspect": 8, "minimum": 1} | changes))


def at_random(compared: Compared, key: str = "polite", *, run: Run | None = None, split: str = "") -> int:
    plans = criterion_plans(Scope(compared.chat_set, run or compared.run, split))
    return next(plan.counts.random for plan in plans if plan.criterion.key == key)


def test_labels_without_a_sample_are_not_random(bare: Compared) -> None:
    assert at_random(bare) == 0


def test_a_sample_with_nearly_equal_probabilities_counts_nearly_in_full(
    bare: Compared, lead_user: User
) -> None:
    sampled(bare, lead_user)
    assert 15 <= at_random(bare) <= 16


def test_a_sample_with_unequal_probabilities_counts_less_by_kish(bare: Compared, lead_user: User) -> None:
    chat_set = sampled(bare, lead_user, chats=10, suspect=6, rule=AllocationRule.EQUAL)
    weights = [1 / row.inclusion_probability for row in chat_set.members.all() if row.inclusion_probability]
    worth = sum(weights) ** 2 / sum(weight**2 for weight in weights)
    assert at_random(bare) == int(worth) < 10


@pytest.mark.parametrize(
    "changes",
    [
        {"chats": 8, "suspect": 4, "topics": ("delivery",)},
        {"chats": 8, "suspect": 4, "topic": "delivery"},
        {"chats": 5, "suspect": 5},  # none of the chats that the judge does not call False
        {"chats": 2, "suspect": 1, "minimum": 0},  # of either verdict one topic alone
    ],
)
def test_a_sample_that_some_chats_could_not_enter_does_not_count(
    bare: Compared, lead_user: User, changes: dict[str, object]
) -> None:
    if topic := str(changes.get("topic", "")):
        scope = Scope(bare.chat_set, bare.run, topic=topic)
        changes = {name: value for name, value in changes.items() if name != "topic"} | {"scope": scope}
    assert preview_sample(fair(bare, **changes), by=lead_user).effective_chats == 0
    sampled(bare, lead_user, **changes)
    assert at_random(bare) == 0


def test_a_sample_from_one_split_counts_for_that_split_alone(bare: Compared, lead_user: User) -> None:
    scope = Scope(bare.chat_set, bare.run, "dev")
    sampled(bare, lead_user, scope=scope, chats=8, suspect=4)
    assert (at_random(bare), at_random(bare, split="train")) == (0, 0)
    assert at_random(bare, split="dev") >= 7


def test_a_sample_counts_for_another_run_only_if_all_its_chats_could_be_sampled(
    bare: Compared, lead_user: User
) -> None:
    sampled(bare, lead_user)
    extra = Chat.objects.create(
        external_id="extra", topic=bare.chat(1).topic, messages=[], message_count=0, char_count=0
    )
    assert at_random(bare, run=rerun(bare, *(bare.chat(n) for n in BARE))) >= 15
    assert at_random(bare, run=rerun(bare, extra, *(bare.chat(n) for n in BARE))) == 0


def rerun(compared: Compared, *chats: Chat) -> Run:
    """Another finished run over these chats."""
    run = run_of(a_version(polite()), compared.chat_set)
    RunChat.objects.filter(run=run).delete()
    RunChat.objects.bulk_create(RunChat(run=run, chat=chat) for chat in chats)
    return run


def test_it_counts_for_the_criteria_that_it_was_for_and_for_what_its_job_asks(
    bare: Compared, lead_user: User
) -> None:
    chat_set = sampled(bare, lead_user)
    assert at_random(bare, "welcome") == 0  # labelled there before, whoever chose these chats
    welcome = bare.rubric.criteria.filter(key="welcome")
    job_open(chat_set=chat_set, name="Job", criteria=list(welcome), overlap=1, by=None, raters=[make_rater()])
    assert at_random(bare, "welcome") >= 15


def test_two_samples_count_together(bare: Compared, lead_user: User) -> None:
    for n in range(2):
        sampled(bare, lead_user, chats=8, suspect=4, name=f"n{n}", seed=n)
    assert 13 <= at_random(bare) <= 16


def test_the_preview_gives_the_effective_number_of_random_chats(bare: Compared, lead: Client) -> None:
    page = text_of(lead.get(estimate_url(bare), DRAW | {"chats": 16, "judge_false": 8, "minimum": 1}))
    assert "For production rates the sample counts as 1" in page and "randomly sampled chats" in page
    page = text_of(lead.get(estimate_url(bare), DRAW | {"chats": 4, "judge_false": 2, "topics": ["refund"]}))
    assert "does not count for production rates" in page


@pytest.mark.heavy
def test_the_queries_do_not_grow_with_the_samples(bare: Compared, lead_user: User) -> None:
    def queries() -> int:
        at_random(bare)
        Criterion.objects.update(labels_seq=F("labels_seq") + 1)
        with CaptureQueriesContext(connection) as caught:
            at_random(bare)
        return len(caught)

    sampled(bare, lead_user, chats=4, suspect=2, name="first")
    one = queries()
    for n in range(3):
        sampled(bare, lead_user, chats=4, suspect=2, name=f"more {n}", seed=n)
    assert queries() == one
