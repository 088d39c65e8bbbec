"""Chats drawn from a run: which, with what probability, into which split, and how often."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from alignment.label_planning.services.draw_preview import label_draw_preview
from alignment.label_planning.services.draws import draw_source, label_draw
from common.problems import InputProblem
from labeling.chats.core.allocation import AllocationRule
from labeling.jobs.services import job_close, job_open
from labeling.models.chats import Chat, ChatSet, ChatSetMember, Topic
from labeling.models.people import AuditEvent, Role, User
from tests.factories.compared_runs import JUDGE, SPLITS, Compared, add_chats
from tests.factories.label_draws import BARE, few_of, strip, wish_of
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


def test_only_chats_without_a_label_are_drawn_as_many_as_asked_of_either_verdict(
    bare: Compared, lead_user: User
) -> None:
    drawn = label_draw(wish_of(bare), by=lead_user)
    numbers = [number(member) for member in members_of(drawn.chat_set)]
    assert drawn.chat_set.kind == "sample"
    assert len(set(numbers)) == 12 and set(numbers) <= set(BARE)
    assert sum(not JUDGE["polite"](n) for n in numbers) == 8


def test_each_chat_keeps_its_stratum_and_its_probability(bare: Compared, lead_user: User) -> None:
    chat_set = label_draw(wish_of(bare), by=lead_user).chat_set
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


def test_a_chat_that_an_open_job_asks_for_is_not_drawn(bare: Compared, lead_user: User) -> None:
    chats = make_set(bare.rubric, *(bare.chat(n) for n in range(9, 25)), name="asked")
    polite = bare.rubric.criteria.filter(key="polite")
    job = job_open(
        chat_set=chats, name="Asked", criteria=list(polite), overlap=1, by=None, raters=[make_rater()]
    )
    preview = label_draw_preview(wish_of(bare, chats=4, suspect=2), by=lead_user)
    assert preview.available.suspect + preview.available.other == 16
    job_close(job=job, by=None)
    preview = label_draw_preview(wish_of(bare, chats=4, suspect=2), by=lead_user)
    assert preview.available.suspect + preview.available.other == len(BARE)


def test_of_near_duplicates_one_is_there_and_none_where_one_has_labels(
    bare: Compared, lead_user: User
) -> None:
    Chat.objects.filter(pk__in=[bare.chat(n).pk for n in (9, 10)]).update(near_hash=0xFFFF00)
    Chat.objects.filter(pk__in=[bare.chat(n).pk for n in (1, 11)]).update(near_hash=0x7FFF00000)
    preview = label_draw_preview(wish_of(bare), by=lead_user)
    there = {chat for share in preview.shares for chat in share.stratum.chats}
    assert there == {bare.chat(n).pk for n in BARE if n not in (10, 11)}


def test_the_press_of_one_form_draws_once(bare: Compared, lead_user: User) -> None:
    wish = wish_of(bare)
    source = draw_source(scope=wish.scope, by=lead_user, token="t")
    first = label_draw(wish_of(bare, source=source), by=lead_user)
    again = label_draw(wish_of(bare, source=source), by=lead_user)
    assert (first.again, again.again, again.chat_set) == (False, True, first.chat_set)
    assert AuditEvent.objects.filter(verb="chats drawn").count() == 1


def test_what_was_drawn_is_on_record(bare: Compared, lead_user: User) -> None:
    drawn = label_draw(wish_of(bare), by=lead_user)
    event = AuditEvent.objects.get(verb="chats drawn", object_id=drawn.chat_set.pk)
    assert (event.actor, event.detail["chats"], event.detail["judge_false"]) == (lead_user, 12, 8)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "calibration"}, "there is a chat set 'calibration' already"),
        ({"name": " "}, "a name has 1 to 120 characters"),
        ({"chats": 40}, "were asked for, and there are"),
        ({"chats": 4}, "8 of the chats cannot be judged False"),
        ({"split": "all"}, "'all' is not one of train, dev, holdout"),
        ({"criteria": ()}, "choose at least one criterion"),
        ({"topics": ("nowhere",)}, "no chat is left to draw"),
    ],
)
def test_what_cannot_be_drawn_leaves_nothing(
    bare: Compared, lead_user: User, changes: dict[str, object], message: str
) -> None:
    sets = ChatSet.objects.count()
    with pytest.raises(InputProblem, match=message):
        label_draw(wish_of(bare, **changes), by=lead_user)
    assert (ChatSet.objects.count(), AuditEvent.objects.filter(verb="chats drawn").count()) == (sets, 0)


def test_without_numbers_as_much_is_drawn_as_a_badge_is_likely_to_need(
    compared: Compared, lead_user: User
) -> None:
    add_chats(compared, to=400)
    strip(compared, range(101, 401))
    # 100 chats are labelled, half of them False: 50 of each, so a badge misses nothing.
    with pytest.raises(InputProblem, match="no label is missing for a badge"):
        label_draw_preview(wish_of(compared, chats=None, suspect=None), by=lead_user)
    strip(compared, range(41, 401))
    preview = label_draw_preview(wish_of(compared, chats=None, suspect=None), by=lead_user)
    (polite,) = preview.outlook
    assert polite.missing_false == 10 and preview.chats >= 60 and preview.reaches


# ---------- splits ----------


def test_chats_keep_their_split_unless_asked_otherwise(bare: Compared, lead_user: User) -> None:
    kept = members_of(label_draw(wish_of(bare), by=lead_user).chat_set)
    assert all(member.split == SPLITS[number(member) % 4] for member in kept)
    moved = members_of(
        label_draw(wish_of(bare, name="Other", split="holdout", suspect=7), by=lead_user).chat_set
    )
    for member in moved:
        before = SPLITS[number(member) % 4]
        assert member.split == ("train" if before == "train" else "holdout")


def test_what_is_held_out_anywhere_stays_held_out(bare: Compared, lead_user: User) -> None:
    make_set(bare.rubric, *(bare.chat(n) for n in BARE), name="gold", split="holdout")
    members = members_of(label_draw(wish_of(bare, split="train"), by=lead_user).chat_set)
    assert {member.split for member in members} == {"holdout"}


# ---------- who sees what ----------


def test_who_may_not_read_the_holdout_draws_none_of_it(bare: Compared) -> None:
    author = make_user("otto", Role.AUTHOR)
    preview = label_draw_preview(wish_of(bare, chats=4, suspect=2), by=author)
    there = {chat for share in preview.shares for chat in share.stratum.chats}
    assert there == {bare.chat(n).pk for n in BARE if SPLITS[n % 4] != "holdout"}


def test_the_place_of_a_chat_in_the_set_says_nothing_of_the_verdict(bare: Compared, lead_user: User) -> None:
    said = []
    for seed in range(3):
        members = members_of(label_draw(few_of(bare, name=f"n{seed}", seed=seed), by=lead_user).chat_set)
        said.append([JUDGE["polite"](number(member)) for member in members])
    assert all(one not in (sorted(one), sorted(one, reverse=True)) for one in said)


def test_queries_do_not_grow_with_the_chats(bare: Compared, lead_user: User) -> None:
    def queries(name: str) -> int:
        with CaptureQueriesContext(
            connection,
        ) as caught:
            label_draw(few_of(bare, name=name), by=lead_user)
        return len(caught)

    queries("warm")  # the report is stored now
    few = queries("few")
    add_chats(bare, to=400)
    strip(bare, range(9, 401))
    queries("warm again")
    assert queries("many") == few


def test_a_preview_counts_the_chats_without_a_chance(bare: Compared, lead_user: User) -> None:
    Chat.objects.filter(pk=bare.chat(40).pk).update(topic=Topic.objects.create(key="refund", name="Refund"))
    preview = label_draw_preview(wish_of(bare, chats=4, suspect=2), by=lead_user)
    assert preview.left_out == 1
    assert label_draw_preview(wish_of(bare, chats=4, suspect=2, minimum=1), by=lead_user).left_out == 0


def test_topics_can_be_chosen_and_shared_equally(bare: Compared, lead_user: User) -> None:
    topics = sorted({bare.chat(n).topic.key for n in BARE})
    one = label_draw_preview(wish_of(bare, chats=4, suspect=2, topics=(topics[0],)), by=lead_user)
    assert {share.stratum.topic for share in one.shares} == {topics[0]}
    rule = AllocationRule.EQUAL
    even = label_draw_preview(wish_of(bare, chats=8, suspect=4, rule=rule), by=lead_user)
    assert sum(share.n for share in even.shares) == 8


# ---------- either verdict keeps a chance ----------


def test_a_draw_left_open_takes_a_fifth_or_more_of_chats_not_judged_false(
    bare: Compared, lead_user: User
) -> None:
    preview = label_draw_preview(wish_of(bare, chats=10, suspect=None), by=lead_user)
    assert preview.chats - preview.suspect == 2
    preview = label_draw_preview(wish_of(bare, chats=None, suspect=5), by=lead_user)
    assert preview.suspect == 5 and (preview.chats - preview.suspect) / preview.chats >= 0.2


def test_who_asks_for_chats_judged_false_alone_gets_these(bare: Compared, lead_user: User) -> None:
    preview = label_draw_preview(wish_of(bare, chats=8, suspect=8), by=lead_user)
    assert (preview.suspect, preview.chats, preview.without_topic) == (8, 8, 0)
    assert preview.left_out == preview.available.other


def test_chats_of_an_earlier_draw_are_not_drawn_again(bare: Compared, lead_user: User) -> None:
    first = label_draw(wish_of(bare, chats=6, suspect=3), by=lead_user).chat_set
    preview = label_draw_preview(wish_of(bare, chats=4, suspect=2), by=lead_user)
    there = {chat for share in preview.shares for chat in share.stratum.chats}
    assert len(there) == len(BARE) - 6
    assert not there & set(first.members.values_list("chat_id", flat=True))
