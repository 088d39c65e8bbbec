"""What a try never touches: the holdout, and whatever lists or counts runs."""

import pytest

from alignment.comparison.queries.latest_verdicts import latest_verdicts
from alignment.exports.queries.lines import runs_to_export
from alignment.prompts.tries.services import TryRefused, try_start
from evaluation.gateway.current import current_endpoint
from evaluation.judges.core.spec import JudgeSpec
from evaluation.models.runs import Run
from evaluation.runs.queries.runs import RunFilter, run_list
from evaluation.runs.services.runs import RunChoice, RunRefused, chosen_members, run_start
from labeling.models.chats import Chat, ChatSet, ChatSetMember
from labeling.models.people import User
from tests.factories.runs import command
from tests.factories.tries import (
    CASES,
    HOLDOUT,
    WRONG,
    carried_out,
    cases,
    champion,
    drafted,
    on_chat,
    on_disagreements,
    polite,
    result,
)
from tests.stub_endpoint import StubEndpoint, StubReply

pytestmark = pytest.mark.django_db(transaction=True)

# ---------- the holdout ----------


def test_the_holdout_is_never_tried_whoever_asks(
    try_set: ChatSet, author_user: User, lead_user: User
) -> None:
    for person in (author_user, lead_user):
        with pytest.raises(TryRefused, match="the chat is not in train or dev"):
            try_start(criterion=polite(), author=person, choice=on_chat(HOLDOUT[0]))
        run = try_start(criterion=polite(), author=person, choice=on_disagreements(50))
        assert not set(HOLDOUT) & set(cases(result(run, person)))


def test_nor_is_a_chat_that_is_holdout_in_another_set(try_set: ChatSet, lead_user: User) -> None:
    other = ChatSet.objects.create(name="other", rubric=try_set.rubric)
    chat = try_set.members.get(chat__external_id="c-02").chat
    ChatSetMember.objects.create(chat_set=other, chat=chat, split="holdout", position=1)
    with pytest.raises(TryRefused, match="the chat is not in train or dev"):
        try_start(criterion=polite(), author=lead_user, choice=on_chat("c-02"))


def test_a_run_that_is_a_try_refuses_the_holdout_itself(try_set: ChatSet, try_stub: StubEndpoint) -> None:
    held = list(try_set.members.filter(split="holdout").values_list("chat_id", flat=True))
    for choice in (RunChoice(chats=held), RunChoice(split="holdout"), RunChoice()):
        with pytest.raises(RunRefused, match="cannot use holdout chats"):
            run_start(
                chat_set=try_set,
                judge=JudgeSpec("direct"),
                run=RunChoice(chats=choice.chats, split=choice.split, purpose=Run.Purpose.TRY),
                endpoint=current_endpoint(),
            )


def test_named_chats_have_to_be_in_the_set(try_set: ChatSet) -> None:
    some = list(try_set.members.values_list("chat_id", flat=True)[2:4])
    assert list(chosen_members(try_set, RunChoice(chats=some)).values_list("chat_id", flat=True)) == some
    with pytest.raises(RunRefused, match="is not in the set"):
        chosen_members(try_set, RunChoice(chats=[*some, 987_654]))


def test_a_chat_that_becomes_holdout_later_is_shown_no_more(try_set: ChatSet, author_user: User) -> None:
    drafted(author_user)
    run = carried_out(try_start(criterion=polite(), author=author_user, choice=on_disagreements()))
    ChatSetMember.objects.filter(chat__external_id="c-00").update(split="holdout")
    found = result(run, author_user)
    assert "c-00" not in cases(found)
    assert (found.hidden, found.tally.of) == (1, 6)


# ---------- lists and newest verdicts leave tries out ----------


def test_tries_are_in_no_list_unless_asked_for(try_set: ChatSet, author_user: User) -> None:
    drafted(author_user)
    run = carried_out(try_start(criterion=polite(), author=author_user, choice=on_chat("c-02")))
    assert run not in run_list()
    assert list(run_list(RunFilter(purpose="try"))) == [run]
    exported, older = runs_to_export(try_set)
    assert run not in [one.run for one in exported] + older


def test_a_try_is_nobodys_newest_verdict(try_set: ChatSet, author_user: User) -> None:
    """The champion tried on a chat answers as before: its verdict stays the run's."""
    run = carried_out(try_start(criterion=polite(), author=author_user, choice=on_chat("c-02")))
    assert run.judge.prompts.get(criterion=polite()).prompt_version == champion()
    standing = latest_verdicts(criterion=polite(), champion=champion())
    assert set(standing.on(Chat.objects.all()).values_list("run", flat=True)) == {
        Run.objects.get(purpose="evaluation").pk
    }


def test_the_latest_verdict_of_each_chat_counts(try_set: ChatSet, try_stub: StubEndpoint) -> None:
    try_stub.answer = lambda body: StubReply("Yes.\n\nVERDICTS\npolite: TRUE\nexact: TRUE")
    command("evaluate", "--set", "golden", "--engine", "direct", "--limit", "2", "--replicate", "1")
    newest = Run.objects.latest("pk")
    standing = latest_verdicts(criterion=polite(), champion=champion())
    by_case = dict(standing.on(Chat.objects.all()).values_list("chat__external_id", "run"))
    assert {case for case, run in by_case.items() if run == newest.pk} == {"c-00", "c-01"}
    assert set(by_case) == set(CASES)
    disputes = set(standing.disagreements.values_list("chat__external_id", flat=True))
    assert disputes == (WRONG - {"c-00"}) | {"c-01"}
