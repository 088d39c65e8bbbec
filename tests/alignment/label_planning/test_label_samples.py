"""Samples of a run: eligible chats, probabilities, splits and repeated submissions."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from alignment.label_planning.services.sample import create_sample, sample_source
from alignment.label_planning.services.sample_preview import preview_sample
from common.problems import InputProblem
from labeling.chats.core.allocation import AllocationRule
from labeling.jobs.services import job_close, job_open
from labeling.models.chats import Chat, ChatSet, ChatSetMember, Topic
from labeling.models.people import AuditEvent, Role, User
from tests.factories.compared_runs import JUDGE, SPLITS, Compared, add_chats
from tests.factories.label_samples import BARE, few_of, strip, wish_of
from tests.factories.rows import make_rater, make_set, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def bare(compared: Compared) -> Compared:
    """Chats 9 to 40 have no label on `polite`."""
    strip(compared, BARE)
    return compared


def number(member: ChatSetMember) -> int:
    return int(member.chat.external_id.removeprefix("chat-"))


def members_of(chat_set: ChatSet) -> list[ChatSetMember]:
    return list(chat_set.members.select_related("chat__topic"))


def test_a_sample_has_the_requested_size_of_either_verdict_and_only_unlabelled_chats(
    bare: Compared, lead_user: User
) -> None:
    sample = create_sample(wish_of(bare), by=lead_user)
    numbers = [number(member) for member in members_of(sample.chat_set)]
    assert sample.chat_set.kind == "sample"
    assert len(set(numbers)) == 12 and set(numbers) <= set(BARE)
    assert sum(not JUDGE["polite"](n) for n in numbers) == 8


def test_each_chat_keeps_its_stratum_and_its_probability(bare: Compared, lead_user: User) -> None:
    chat_set = create_sample(wish_of(bare), by=lead_user).chat_set
    sampling = chat_set.sampling or {}
    strata = {row["stratum"]: row for row in sampling["strata"]}
    for member in members_of(chat_set):
        stratum = strata[member.stratum]
        assert member.inclusion_probability == stratum["drawn"] / stratum["size"]
        assert stratum["topic"] == member.chat.topic.key
        assert stratum["judge_false"] is not JUDGE["polite"](number(member))
    assert sum(row["drawn"] for row in strata.values()) == 12
    assert sum(row["size"] for row in strata.values()) == len(BARE)
    assert (sampling["seed"], sampling["run"]) == (3, bare.run.pk)


def test_a_chat_in_an_open_job_is_not_eligible(bare: Compared, lead_user: User) -> None:
    chats = make_set(bare.rubric, *(bare.chat(n) for n in range(9, 25)), name="asked")
    polite = bare.rubric.criteria.filter(key="polite")
    job = job_open(
        chat_set=chats, name="Asked", criteria=list(polite), overlap=1, by=None, raters=[make_rater()]
    )
    preview = preview_sample(wish_of(bare, chats=4, suspect=2), by=lead_user)
    assert preview.available.suspect + preview.available.other == 16
    job_close(job=job, by=None)
    preview = preview_sample(wish_of(bare, chats=4, suspect=2), by=lead_user)
    assert preview.available.suspect + preview.available.other == len(BARE)


def test_one_of_near_duplicates_is_eligible_and_none_if_one_has_labels(
    bare: Compared, lead_user: User
) -> None:
    Chat.objects.filter(pk__in=[bare.chat(n).pk for n in (9, 10)]).update(near_hash=0xFFFF00)
    Chat.objects.filter(pk__in=[bare.chat(n).pk for n in (1, 11)]).update(near_hash=0x7FFF00000)
    preview = preview_sample(wish_of(bare), by=lead_user)
    there = {chat for share in preview.shares for chat in share.stratum.chats}
    assert there == {bare.chat(n).pk for n in BARE if n not in (10, 11)}


def test_a_repeated_submission_returns_the_first_sample(bare: Compared, lead_user: User) -> None:
    wish = wish_of(bare)
    source = sample_source(scope=wish.scope, by=lead_user, token="t")
    first = create_sample(wish_of(bare, source=source), by=lead_user)
    again = create_sample(wish_of(bare, source=source), by=lead_user)
    assert (first.again, again.again, again.chat_set) == (False, True, first.chat_set)
    assert AuditEvent.objects.filter(verb="chats drawn").count() == 1


def test_a_sample_is_in_the_audit_log(bare: Compared, lead_user: User) -> None:
    sample = create_sample(wish_of(bare), by=lead_user)
    event = AuditEvent.objects.get(verb="chats drawn", object_id=sample.chat_set.pk)
    assert (event.actor, event.detail["chats"], event.detail["judge_false"]) == (lead_user, 12, 8)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "calibration"}, "a chat set 'calibration' exists: choose another name"),
        ({"name": " "}, "the name needs 1 to 120 characters"),
        ({"chats": 40}, "40 chats requested, 32 are eligible"),
        ({"chats": 4}, "8 chats judged False do not fit into a sample of 4"),
        ({"split": "all"}, "'all' is not one of train, dev, holdout"),
        ({"criteria": ()}, "choose at least one criterion"),
        ({"topics": ("nowhere",)}, "no chat is eligible"),
    ],
)
def test_a_refused_request_writes_nothing(
    bare: Compared, lead_user: User, changes: dict[str, object], message: str
) -> None:
    sets = ChatSet.objects.count()
    with pytest.raises(InputProblem, match=message):
        create_sample(wish_of(bare, **changes), by=lead_user)
    assert (ChatSet.objects.count(), AuditEvent.objects.filter(verb="chats drawn").count()) == (sets, 0)


def test_without_sizes_the_sample_is_as_large_as_a_status_is_likely_to_need(
    compared: Compared, lead_user: User
) -> None:
    add_chats(compared, to=400)
    strip(compared, range(101, 401))
    # 50 True and 50 False labels are enough for a status; 20 of each are not.
    with pytest.raises(InputProblem, match="these criteria have enough labels for a status"):
        preview_sample(wish_of(compared, chats=None, suspect=None), by=lead_user)
    strip(compared, range(41, 401))
    preview = preview_sample(wish_of(compared, chats=None, suspect=None), by=lead_user)
    (polite,) = preview.forecasts
    assert polite.missing_false == 10 and 20 <= preview.chats < 40 and preview.reaches


# ---------- splits ----------


def test_chats_keep_their_split_unless_another_is_requested(bare: Compared, lead_user: User) -> None:
    kept = members_of(create_sample(wish_of(bare), by=lead_user).chat_set)
    assert all(member.split == SPLITS[number(member) % 4] for member in kept)
    moved = members_of(
        create_sample(wish_of(bare, name="Other", split="holdout", suspect=7), by=lead_user).chat_set
    )
    for member in moved:
        before = SPLITS[number(member) % 4]
        assert member.split == ("train" if before == "train" else "holdout")


def test_holdout_chats_of_any_set_stay_holdout(bare: Compared, lead_user: User) -> None:
    make_set(bare.rubric, *(bare.chat(n) for n in BARE), name="gold", split="holdout")
    members = members_of(create_sample(wish_of(bare, split="train"), by=lead_user).chat_set)
    assert {member.split for member in members} == {"holdout"}


# ---------- visibility ----------


def test_a_user_without_holdout_access_samples_no_holdout_chat(bare: Compared) -> None:
    author = make_user("otto", Role.AUTHOR)
    preview = preview_sample(wish_of(bare, chats=4, suspect=2), by=author)
    there = {chat for share in preview.shares for chat in share.stratum.chats}
    assert there == {bare.chat(n).pk for n in BARE if SPLITS[n % 4] != "holdout"}


def test_the_order_of_the_set_does_not_reveal_the_verdicts(bare: Compared, lead_user: User) -> None:
    orders = []
    for seed in range(2):
        wish = wish_of(bare, name=f"n{seed}", seed=seed, chats=14, suspect=7)
        members = members_of(create_sample(wish, by=lead_user).chat_set)
        orders.append([JUDGE["polite"](number(member)) for member in members])
    # Long enough to be hardly ever sorted by chance: 1 shuffle in 1,700.
    assert all(one not in (sorted(one), sorted(one, reverse=True)) for one in orders)


@pytest.mark.heavy
def test_queries_do_not_grow_with_the_chats(bare: Compared, lead_user: User) -> None:
    def queries(name: str) -> int:
        with CaptureQueriesContext(
            connection,
        ) as caught:
            create_sample(few_of(bare, name=name), by=lead_user)
        return len(caught)

    queries("warm")  # the report is stored now
    few = queries("few")
    add_chats(bare, to=400)
    strip(bare, range(9, 401))
    queries("warm again")
    assert queries("many") == few


def test_a_preview_counts_chats_without_a_chance(bare: Compared, lead_user: User) -> None:
    Chat.objects.filter(pk=bare.chat(40).pk).update(topic=Topic.objects.create(key="refund", name="Refund"))
    preview = preview_sample(wish_of(bare, chats=4, suspect=2), by=lead_user)
    assert preview.without_chance == 1
    assert preview_sample(wish_of(bare, chats=4, suspect=2, minimum=1), by=lead_user).without_chance == 0


def test_topics_can_be_selected_and_allocated_equally(bare: Compared, lead_user: User) -> None:
    topics = sorted({bare.chat(n).topic.key for n in BARE})
    one = preview_sample(wish_of(bare, chats=4, suspect=2, topics=(topics[0],)), by=lead_user)
    assert {share.stratum.topic for share in one.shares} == {topics[0]}
    rule = AllocationRule.EQUAL
    even = preview_sample(wish_of(bare, chats=8, suspect=4, rule=rule), by=lead_user)
    assert sum(share.n for share in even.shares) == 8


# ---------- chats of either verdict have a chance ----------


def test_a_sample_without_sizes_has_at_least_a_fifth_of_chats_not_judged_false(
    bare: Compared, lead_user: User
) -> None:
    preview = preview_sample(wish_of(bare, chats=10, suspect=None), by=lead_user)
    assert preview.chats - preview.suspect == 2
    preview = preview_sample(wish_of(bare, chats=None, suspect=5), by=lead_user)
    assert preview.suspect == 5 and (preview.chats - preview.suspect) / preview.chats >= 0.2


def test_a_request_for_chats_judged_false_alone_is_met(bare: Compared, lead_user: User) -> None:
    preview = preview_sample(wish_of(bare, chats=8, suspect=8), by=lead_user)
    assert (preview.suspect, preview.chats, preview.without_topic) == (8, 8, 0)
    assert preview.without_chance == preview.available.other


def test_chats_of_an_earlier_sample_are_not_eligible(bare: Compared, lead_user: User) -> None:
    first = create_sample(wish_of(bare, chats=6, suspect=3), by=lead_user).chat_set
    preview = preview_sample(wish_of(bare, chats=4, suspect=2), by=lead_user)
    there = {chat for share in preview.shares for chat in share.stratum.chats}
    assert len(there) == len(BARE) - 6
    assert not there & set(first.members.values_list("chat_id", flat=True))
