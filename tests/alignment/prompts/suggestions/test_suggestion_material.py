"""Which chats, labels and notes a suggested revision is drafted from."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from alignment.prompts.suggestions.queries.training_examples import select_disagreements, train_disagreements
from alignment.prompts.suggestions.services import SuggestionChoice, suggestion_prepare
from evaluation.models.judges import Judge
from evaluation.models.prompts import Promotion, PromptVersion
from labeling.models.chats import ChatSetMember
from labeling.models.people import Role, User
from tests.factories.labelling_job import make_desk, user_of
from tests.factories.rows import make_chat, make_set, make_user
from tests.factories.suggestions import Disputes, asked
from tests.factories.verdicts import make_judge, make_run
from tests.stub_endpoint import StubEndpoint, conversation

pytestmark = pytest.mark.django_db(transaction=True)
CANARY = "CANARY-8d1f"


def found(disputes: Disputes, user: User) -> list[str]:
    """The disagreements that the user's suggestion could be drafted from, by their chats' first words."""
    rows = train_disagreements(criterion=disputes.criterion, champion=disputes.champion, user=user)
    return [str(row.verdict.chat.messages[0]["content"]).partition(",")[0] for row in rows]


def test_only_train_chats_are_read_for_the_endpoint(
    reviser: StubEndpoint, disputes: Disputes, author_user: User
) -> None:
    for split in ("dev", "holdout"):
        told = disputes.chat(f"{CANARY} {split}", split=split)
        disputes.noted(told, f"{CANARY} note")
    elsewhere = disputes.chat(f"{CANARY} elsewhere")
    make_set(disputes.criterion.rubric, elsewhere, name="measured", split="holdout")
    twin = disputes.chat(f"{CANARY} twin")
    measured = make_chat(messages=[(m["role"], m["content"]) for m in twin.messages])
    ChatSetMember.objects.create(chat_set=disputes.chat_set, chat=measured, split="dev", position=99)
    near, measured = disputes.chat(f"{CANARY} near"), make_chat()
    for twin, bits in ((near, 0b1011), (measured, 0b1000)):
        twin.near_hash = bits
        twin.save()
    disputes.noted(near, f"{CANARY} note on a near twin")
    ChatSetMember.objects.create(chat_set=disputes.chat_set, chat=measured, split="dev", position=98)
    row = asked(disputes, author_user, chats=16)
    (request,) = reviser.requests
    assert CANARY not in conversation(request)
    assert all(f"Parcel {n}" in conversation(request) for n in ("one", "two", "three"))
    assert (row.state, len(row.chat_ids)) == ("done", 3)


def test_even_a_lead_who_may_see_the_holdout_does_not_have_it_sent(
    reviser: StubEndpoint, disputes: Disputes, lead_user: User
) -> None:
    disputes.chat(f"{CANARY} holdout", split="holdout")
    asked(disputes, lead_user)
    assert CANARY not in conversation(reviser.requests[0])


def test_the_newest_finished_verdict_of_the_champion_counts(disputes: Disputes, author_user: User) -> None:
    first, second, third = (row.chat for row in disputes.run.run_chats.select_related("chat"))
    judge = disputes.run.judge
    again = make_run(judge, disputes.chat_set)
    disputes.judged(first, False, run=again)  # right at last
    for state, purpose in (("running", "evaluation"), ("done", "try")):
        other = make_run(judge, disputes.chat_set, state=state, purpose=purpose)
        disputes.judged(second, False, run=other)
    candidate = make_run(make_judge_of_another_prompt(disputes), disputes.chat_set)
    disputes.judged(third, False, run=candidate)
    assert found(disputes, author_user) == ["Parcel two", "Parcel three"]


def make_judge_of_another_prompt(disputes: Disputes) -> Judge:
    judge = make_judge(disputes.criterion.rubric, name="candidate")
    other = PromptVersion.objects.create(
        criterion=disputes.criterion, number=2, text="# Objective\nNo.", content_hash="c"
    )
    judge.prompts.update(prompt_version=other)
    return judge


def test_where_the_champion_has_judged_nothing_other_verdicts_do(
    disputes: Disputes, author_user: User
) -> None:
    version = PromptVersion.objects.create(
        criterion=disputes.criterion, number=2, text="# Objective\nNew.", content_hash="n"
    )
    Promotion.objects.create(criterion=disputes.criterion, version=version, reason="New")
    assert len(found(disputes, author_user)) == 3


def test_who_is_still_to_label_a_chat_does_not_learn_from_it(transactional_db: None) -> None:
    desk = make_desk(chats=3)
    desk.chat_set.members.update(split="train")
    user = user_of(desk.rater)
    user.groups.add(*make_user("x", Role.AUTHOR).groups.all())
    rows = train_disagreements(criterion=desk.criteria[0], champion=None, user=User.objects.get(pk=user.pk))
    assert rows == []


def test_both_directions_come_in_turn_and_topics_before_their_second_chat(
    disputes: Disputes, author_user: User
) -> None:
    for n in range(2):
        disputes.chat(f"Missed {n}", people=True, judge=False)
    rows = train_disagreements(criterion=disputes.criterion, champion=disputes.champion, user=author_user)
    assert [row.consensus for row in select_disagreements(rows, most=4)] == [True, False, True, False]
    assert len(select_disagreements(rows, most=2)) == 2


def test_open_notes_on_train_chats_are_read_and_settled_ones_are_not(
    reviser: StubEndpoint, disputes: Disputes, author_user: User
) -> None:
    first, second, _ = (row.chat for row in disputes.run.run_chats.select_related("chat"))
    disputes.noted(first, "What of irony?")
    settled = disputes.noted(second, "Settled long ago.")
    settled.settled_at = settled.created_at
    settled.save()
    row = asked(disputes, author_user)
    assert "What of irony?" in conversation(reviser.requests[0])
    assert "Settled long ago." not in conversation(reviser.requests[0])
    assert row.material["notes"] == 1


def test_raters_stay_nameless(reviser: StubEndpoint, disputes: Disputes, author_user: User) -> None:
    asked(disputes, author_user)
    assert "anna" not in conversation(reviser.requests[0])
    assert "Rater 1: FALSE" in conversation(reviser.requests[0])


@pytest.mark.heavy
def test_the_queries_do_not_grow_with_the_disagreements(
    reviser: StubEndpoint, disputes: Disputes, author_user: User
) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as caught:
            suggestion_prepare(criterion=disputes.criterion, choice=SuggestionChoice(16), by=author_user)
        return len(caught)

    queries()  # the account's rights are remembered
    few = queries()
    for n in range(10):
        disputes.chat(f"More {n}", people=True, judge=False)
    assert queries() == few
