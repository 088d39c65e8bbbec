"""The chats beside the editor: which stand there, what they show, and running one, some or all of them."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from alignment.models.pins import PinnedChat
from alignment.prompts.tries.queries.bench import Bench, bench_of
from alignment.prompts.tries.services import BenchChoice, bench_start, draft_digest, pin_chats
from evaluation.models.runs import Run, Unit
from evaluation.prompts.queries.drafts import working_prompt
from labeling.models.chats import Chat, ChatSet, ChatSetMember
from labeling.models.people import Role, User
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import text_of
from tests.factories.page_text import words_of
from tests.factories.rows import make_user
from tests.factories.tries import (
    DRAFT,
    HOLDOUT,
    OPEN_AND_WRONG,
    STILL_WRONG,
    carried_out,
    champion,
    drafted,
    polite,
    profile,
)

pytestmark = pytest.mark.django_db(transaction=True)

EDIT = reverse("alignment:prompt_edit", args=["polite"])


def url(name: str, *args: Any) -> str:
    return reverse(f"alignment:{name}", args=["polite", *args])


def pk_of(case: str) -> int:
    return Chat.objects.get(external_id=case).pk


def pks(*cases: str) -> tuple[int, ...]:
    return tuple(pk_of(case) for case in cases)


def bench(author: User, **counts: int) -> Bench:
    prompt = working_prompt(criterion=polite(), author=author, base=champion())
    return bench_of(
        criterion=polite(),
        author=author,
        base=prompt.base,
        digest=draft_digest(author=author, prompt=prompt),
        **counts,
    )


def started(author: User, *cases: str) -> list[Run]:
    choice = BenchChoice(profile=profile(), chat_ids=pks(*cases))
    return bench_start(criterion=polite(), author=author, choice=choice)


def ran(author: User, *cases: str) -> None:
    for run in started(author, *cases):
        carried_out(run)


# ---------- which chats ----------


def test_disagreements_come_with_agreeing_chats_of_both_answers_and_no_holdout(
    try_set: ChatSet, author_user: User
) -> None:
    found = bench(author_user, disagreeing=20, agreeing=4)
    assert sorted(one.chat.external_id for one in found.of("disagreeing")) == OPEN_AND_WRONG
    agreeing = found.of("agreeing")
    assert [one.human for one in agreeing] == [True, False, True, False]
    assert all(one.before and one.before.value is one.human for one in agreeing)
    assert not {one.chat.external_id for one in found.chats} & set(HOLDOUT)


def test_pinned_chats_come_first_and_are_only_their_authors(
    try_set: ChatSet, author: Client, author_user: User
) -> None:
    for case in ("c-08", "c-02"):
        assert author.post(url("prompt_pin"), {"chat": pk_of(case)}).status_code == 200
    found = bench(author_user)
    assert [(one.group, one.chat.external_id) for one in found.chats][:2] == [
        ("pinned", "c-02"),
        ("pinned", "c-08"),
    ]
    assert "c-02" not in [one.chat.external_id for one in found.of("disagreeing")]
    assert not bench(make_user("ada", Role.AUTHOR)).of("pinned")
    author.post(url("prompt_pin"), {"chat": pk_of("c-02"), "unpin": "1"})
    assert [one.chat.external_id for one in bench(author_user).of("pinned")] == ["c-08"]


def test_a_link_makes_the_page_pin_its_chats_once(
    try_set: ChatSet, author: Client, author_user: User
) -> None:
    first, second = pks("c-03", "c-04")
    page = text_of(author.get(EDIT, {"pin": [str(first), f"{second},nonsense"], "base": "1"}))
    for chat in (first, second):
        assert f'<input type="hidden" name="chat" value="{chat}">' in page
    assert not PinnedChat.objects.exists()
    answer = author.post(url("prompt_pin"), {"chat": [first, second], "from_link": "1", "base": "1"})
    assert answer["HX-Replace-Url"] == f"{EDIT}?base=1"
    assert {one.chat.pk for one in bench(author_user).of("pinned")} == {first, second}


def test_a_holdout_chat_cannot_be_pinned_and_a_pinned_one_disappears_with_its_split(
    try_set: ChatSet, author: Client, author_user: User
) -> None:
    answer = author.post(url("prompt_pin"), {"chat": pk_of(HOLDOUT[0])})
    assert "Chats that are not train or dev cannot be pinned." in words_of(answer)
    assert HOLDOUT[0] not in text_of(answer)
    assert not PinnedChat.objects.exists()
    author.post(url("prompt_pin"), {"chat": pk_of("c-03")})
    ChatSetMember.objects.filter(chat=pk_of("c-03")).update(split="holdout")
    assert not bench(author_user).of("pinned")
    assert HOLDOUT[0] not in text_of(author.get(url("prompt_chats"), {"words": "c-"}))


def test_any_train_or_dev_chat_is_found_by_its_id(try_set: ChatSet, author: Client) -> None:
    shown = words_of(author.get(url("prompt_chats"), {"words": "C-1"}))
    assert "c-10" in shown and "c-11" in shown and "c-09" not in shown
    assert "No train or dev chat matches." in words_of(author.get(url("prompt_chats"), {"words": "zzz"}))


# ---------- what they show ----------


def test_a_chat_shows_consensus_verdicts_before_and_after_the_quote_and_the_cost(
    try_set: ChatSet, author: Client, author_user: User
) -> None:
    drafted(author_user)
    ran(author_user, "c-00", STILL_WRONG, "c-08")
    found = {one.chat.external_id: one for one in bench(author_user, disagreeing=9, agreeing=9).chats}
    assert (found["c-00"].change, found[STILL_WRONG].change) == ("fixed", "still_wrong")
    assert (found["c-08"].change, found["c-01"].change) == ("still_right", "not_compared")
    quote = found["c-00"].quote
    assert quote is not None and (quote.messages, quote.words, quote.found) == (
        (1,),
        "where is my order",
        True,
    )
    assert found["c-00"].votes == "1 of 1"
    shown = words_of(author.get(url("prompt_try"), {"disagreeing": 9, "agreeing": 9}))
    assert "Consensus ● True" in shown or "Consensus True" in shown
    for words in ("Fixed", "Still wrong", "Still right", "found in the turn", "Whole answer", "Not run"):
        assert words in shown
    assert "Version 1 agrees with the consensus on" in shown
    assert "the draft on 2 of 3 run so far" in shown


def test_a_result_of_an_earlier_text_is_marked_and_not_counted(
    try_set: ChatSet, author: Client, author_user: User
) -> None:
    drafted(author_user)
    ran(author_user, "c-00")
    drafted(author_user, DRAFT + "More.")
    (one,) = [one for one in bench(author_user, disagreeing=9).chats if one.chat.external_id == "c-00"]
    assert one.after is not None and not one.current
    shown = words_of(author.get(url("prompt_try"), {"disagreeing": 9}))
    assert "earlier draft" in shown and "run so far" not in shown


def test_a_version_that_never_ran_is_compared_with_the_released_one(
    try_set: ChatSet, author: Client, author_user: User
) -> None:
    drafted(author_user)
    author.post(EDIT, {"reason": "Twice", "revision": 1})
    shown = words_of(author.get(url("prompt_try"), {"base": 2}))
    assert "Version 1 agrees with the consensus" in shown


# ---------- running ----------


def test_one_chat_runs_beside_another_and_again_in_place_of_itself(
    try_set: ChatSet, author_user: User
) -> None:
    drafted(author_user)
    (first,), (other,), (again,) = (started(author_user, case) for case in ("c-00", "c-01", "c-00"))
    states = [Run.objects.get(pk=run.pk).state for run in (first, other, again)]
    assert states == ["cancelled", "running", "running"]


def test_a_chat_that_is_done_runs_again_beside_those_that_wait(try_set: ChatSet, author_user: User) -> None:
    drafted(author_user)
    (both,) = started(author_user, "c-00", "c-01")
    Unit.objects.filter(run=both, chat__external_id="c-00").update(state=Unit.State.DONE)
    started(author_user, "c-00")
    both.refresh_from_db()
    assert both.state == Run.State.RUNNING


def test_pins_are_limited_and_the_earliest_go(
    try_set: ChatSet, author_user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("alignment.prompts.tries.services.MOST_PINS", 2)
    for case in ("c-02", "c-03", "c-04"):
        pin_chats(criterion=Criterion.objects.get(key="polite"), author=author_user, chat_ids=pks(case))
    kept = PinnedChat.objects.values_list("chat__external_id", flat=True)
    assert set(kept) == {"c-03", "c-04"}


def test_chats_of_several_sets_run_in_as_few_runs_as_there_must_be(
    try_set: ChatSet, author_user: User
) -> None:
    drafted(author_user)
    second = ChatSet.objects.create(name="second", rubric=try_set.rubric)
    moved = ChatSetMember.objects.filter(chat=pk_of("c-03"))
    moved.update(chat_set=second, split="dev", position=1)
    ChatSetMember.objects.create(
        chat_set=second, chat=Chat.objects.get(pk=pk_of("c-04")), split="dev", position=2
    )
    runs = started(author_user, "c-03", "c-04", "c-00", "c-01")
    covered = {run.chat_set_id: run.run_chats.count() for run in runs}
    assert covered == {try_set.pk: 3, second.pk: 1}


def test_the_page_runs_the_listed_chats_or_only_one(
    try_set: ChatSet, author: Client, author_user: User
) -> None:
    drafted(author_user)
    chats = list(pks("c-10", "c-05", "c-04"))
    shown = words_of(author.post(url("prompt_try"), {"chats": chats, "only": chats[1]}))
    assert Run.objects.get(purpose="try").run_chats.get().chat_id == chats[1]
    assert "1 of 5 still to run." in shown
    author.post(url("prompt_try"), {"chats": chats})
    newest = Run.objects.filter(purpose="try").latest("pk")
    assert newest.run_chats.count() == 3


def test_progress_brings_only_the_chats_that_changed(
    try_set: ChatSet, author: Client, author_user: User
) -> None:
    drafted(author_user)
    runs = started(author_user, *OPEN_AND_WRONG[:2])
    counts = {"disagreeing": 9, "agreeing": 0}
    seen = ",".join(one.token for one in bench(author_user, **counts).chats)
    text = text_of(author.get(url("prompt_try_progress"), counts | {"seen": seen}))
    assert "2 of 7 still to run." in words_of(author.get(url("prompt_try_progress"), counts))
    assert text.count('hx-swap-oob="true"') == 0 and "every 1s" in text
    for run in runs:
        carried_out(run)
    text = text_of(author.get(url("prompt_try_progress"), counts | {"seen": seen}))
    assert text.count('hx-swap-oob="true"') == 2 and "every 1s" not in text


def test_open_tries_can_be_cancelled(try_set: ChatSet, author: Client, author_user: User) -> None:
    (run,) = started(author_user, "c-00", "c-01")
    shown = words_of(author.post(url("prompt_try_cancel")))
    assert Run.objects.get(pk=run.pk).state == "cancelled"
    assert "still to run" not in shown and "Waiting" not in shown


@pytest.mark.heavy
def test_the_chats_take_the_same_queries_for_few_and_for_many(
    try_set: ChatSet, author: Client, author_user: User
) -> None:
    drafted(author_user)
    ran(author_user, "c-00", "c-01", "c-08", "c-09")
    counts = []
    for shown in ({"disagreeing": 1, "agreeing": 1}, {"disagreeing": 9, "agreeing": 9}):
        with CaptureQueriesContext(connection) as queries:
            author.get(url("prompt_try"), shown)
        counts.append(len(queries))
    assert counts[0] == counts[1]
