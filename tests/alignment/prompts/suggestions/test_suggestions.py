"""A revision is asked for: what is sent and paid, and which answers are taken."""

from decimal import Decimal
from pathlib import Path
from threading import Thread

import pytest
from django.db import connection
from pytest_django import Settings

from alignment.models.suggestions import Suggestion
from alignment.prompts.suggestions.queries.suggestions import suggestion_in_full
from alignment.prompts.suggestions.services import (
    SuggestionChoice,
    SuggestionRefused,
    suggestion_cancel,
    suggestion_estimate,
    suggestion_prepare,
    suggestion_start,
    suggestion_use,
)
from alignment.prompts.suggestions.worker import SUGGESTIONS
from alignment.tasks import suggest
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.services.profiles import profile_save
from evaluation.models.prompts import PromptVersion
from evaluation.models.runs import Attempt, ModelCall, WorkerLease
from evaluation.prompts.queries.drafts import draft_of
from evaluation.prompts.services.drafts import draft_save
from evaluation.runs.queries.ledger import run_ledger
from labeling.models.people import User
from labeling.rubric.services.guidelines import CriterionWords, criterion_write
from tests.factories.runs import MODEL
from tests.factories.suggestions import (
    REASON,
    RULE,
    Disputes,
    answer_with,
    asked,
    drafts,
    revised,
    suggesting,
)
from tests.files import write_json
from tests.stub_endpoint import StubEndpoint, StubReply, conversation

pytestmark = pytest.mark.django_db(transaction=True)


# ---------- asking ----------


def test_the_models_answer_becomes_a_suggestion_and_nothing_else_changes(
    reviser: StubEndpoint, disputes: Disputes, author_user: User
) -> None:
    champion = disputes.champion
    row = asked(disputes, author_user)
    assert (row.state, row.reason, row.model) == ("done", REASON, MODEL)
    assert RULE in row.text and row.text.startswith("# Context")
    assert (row.by, row.base, row.request) == (author_user, champion, None)
    assert disputes.champion == champion
    assert PromptVersion.objects.count() == 1
    assert draft_of(criterion=disputes.criterion, author=author_user) is None
    assert "response_format" not in reviser.requests[0]


def test_the_request_is_on_record_priced_and_of_no_run(
    settings: Settings, disputes: Disputes, author_user: User, tmp_path: Path
) -> None:
    price = {MODEL: {"input": 1.0, "output": 10.0}}
    prices = str(write_json(tmp_path / "prices.json", price))
    with suggesting(settings, disputes, prices=prices) as stub:
        before = suggestion_estimate(
            suggestion_prepare(criterion=disputes.criterion, choice=SuggestionChoice(), by=author_user)
        )
        row = asked(disputes, author_user)
    call = ModelCall.objects.get()
    (attempt,) = Attempt.objects.all()
    assert (attempt.run, attempt.unit, attempt.outcome, stub.count) == (None, None, "answered", 1)
    assert (row.call, call.role, row.cost_usd) == (call, "reviser", call.cost_usd)
    assert row.cost_usd and before.cost_usd and Decimal(0) < row.cost_usd <= before.cost_usd
    assert run_ledger(disputes.run).total.attempts == 0  # the money of runs is untouched
    assert not WorkerLease.objects.exists()


def test_the_same_material_finds_its_stored_answer_and_is_asked_again_on_request(
    reviser: StubEndpoint, disputes: Disputes, author_user: User
) -> None:
    first, second = asked(disputes, author_user), asked(disputes, author_user)
    assert (reviser.count, second.reused, second.text) == (1, True, first.text)
    assert second.cost_usd == 0
    third = asked(disputes, author_user, anew=True)
    assert (reviser.count, third.sample, third.reused) == (2, 1, False)
    disputes.chat("Parcel four")
    assert asked(disputes, author_user).sample == 0
    assert reviser.count == 3


def test_a_prompt_is_drafted_from_the_raters_texts_without_any_chat(
    reviser: StubEndpoint, disputes: Disputes, author_user: User
) -> None:
    version = disputes.criterion.versions.latest("number")
    words = CriterionWords(version.question, version.definition, "Thanks count.", "Thanks!", "No.")
    criterion_write(criterion=disputes.criterion, words=words, reason="Clearer", base=version.number, by=None)
    row = asked(disputes, author_user, from_texts=True)
    assert (row.state, row.chat_ids, row.reason) == ("done", [], REASON)
    sent = conversation(reviser.requests[0])
    assert all(said in sent for said in ("Thanks count.", "Thanks!", "No.")) and "Parcel" not in sent
    suggestion_use(suggestion=row, by=author_user)
    draft = draft_of(criterion=disputes.criterion, author=author_user)
    assert draft is not None and (draft.text, draft.origin) == (row.text, "suggested")


def test_the_judges_role_of_the_chosen_profile_names_the_model(
    reviser: StubEndpoint, disputes: Disputes, author_user: User
) -> None:
    careful = profile_save(name="careful", choice=JudgeSpec("debate", models={"judge": "o3-large"}))
    choice = SuggestionChoice(profile=careful)
    row = suggestion_start(criterion=disputes.criterion, choice=choice, by=author_user)
    suggest(row.pk)
    (request,) = reviser.requests
    assert (request["model"], request["reasoning_effort"]) == ("o3-large", "medium")
    assert "temperature" not in request and request["max_completion_tokens"] > 12_000


def test_the_authors_own_draft_is_what_is_revised(
    reviser: StubEndpoint, disputes: Disputes, author_user: User
) -> None:
    champion = disputes.champion
    text = champion.text.replace("# Style\n", "# Style\nMy own words.\n")
    draft_save(
        criterion=disputes.criterion, author=author_user, base=champion, text=text, examples=[], revision=0
    )
    row = asked(disputes, author_user)
    assert "My own words." in conversation(reviser.requests[0])
    assert row.base_text == text


def test_only_one_at_a_time_is_asked_of_a_criterion_and_an_open_one_can_be_cancelled(
    reviser: StubEndpoint, disputes: Disputes, author_user: User
) -> None:
    first = suggestion_start(criterion=disputes.criterion, choice=SuggestionChoice(), by=author_user)
    with pytest.raises(SuggestionRefused, match="has no answer yet"):
        suggestion_start(criterion=disputes.criterion, choice=SuggestionChoice(), by=author_user)
    suggestion_cancel(suggestion=first)
    suggest(first.pk)
    first.refresh_from_db()
    assert (reviser.count, first.state) == (0, "cancelled")
    with pytest.raises(SuggestionRefused, match="is finished"):
        suggestion_cancel(suggestion=first)
    assert asked(disputes, author_user).state == "done"


def test_an_answer_that_comes_after_the_cancel_is_stored_for_the_next_time(
    settings: Settings, disputes: Disputes, author_user: User
) -> None:
    text = answer_with(revised(disputes.champion.text))

    def cancel() -> None:
        Suggestion.objects.update(state="cancelled")
        connection.close()

    def cancelling(body: object) -> StubReply:
        somebody = Thread(target=cancel)  # the stub's own thread runs a loop
        somebody.start()
        somebody.join()
        return StubReply(text)

    with suggesting(settings, disputes, cancelling) as stub:
        row = asked(disputes, author_user)
        assert (row.state, row.text) == ("cancelled", "")
        again = asked(disputes, author_user)
        assert stub.count == 1
    assert again.text


def test_a_question_that_is_cancelled_and_asked_again_waits_for_the_answer_on_its_way(
    settings: Settings, disputes: Disputes, author_user: User
) -> None:
    text = answer_with(revised(disputes.champion.text))
    met: list[Suggestion] = []

    def ask_again() -> None:
        suggestion_cancel(suggestion=Suggestion.objects.get())
        again = suggestion_start(criterion=disputes.criterion, choice=SuggestionChoice(), by=author_user)
        suggest(again.pk)
        again.refresh_from_db()
        met.append(again)
        assert SUGGESTIONS.waiting() == [again.pk]  # the clock enqueues it soon
        assert Attempt.objects.get().ended_at is None  # a living worker's
        connection.close()

    def asking_again(body: object) -> StubReply:
        if not met:
            somebody = Thread(target=ask_again)  # the stub's own thread runs a loop
            somebody.start()
            somebody.join()
        return StubReply(text)

    with suggesting(settings, disputes, asking_again) as stub:
        assert asked(disputes, author_user).state == "cancelled"
        (again,) = met
        assert (again.state, again.tries) == ("open", 0)
        suggest(again.pk)
        assert stub.count == 1
    again.refresh_from_db()
    assert (again.state, Attempt.objects.get().outcome) == ("done", "answered")


@pytest.mark.parametrize("count", [1, 17])
def test_a_number_of_chats_out_of_range_is_refused(disputes: Disputes, author_user: User, count: int) -> None:
    with pytest.raises(SuggestionRefused, match="2 to 16 chats"):
        suggestion_start(criterion=disputes.criterion, choice=SuggestionChoice(count), by=author_user)


def test_with_fewer_than_two_disagreements_there_is_nothing_to_ask(
    reviser: StubEndpoint, transactional_db: None, disputes: Disputes, author_user: User
) -> None:
    disputes.chat_set.members.exclude(position=1).update(split="dev")
    with pytest.raises(SuggestionRefused, match="differ on 1 train chat; a revision needs 2"):
        asked(disputes, author_user)


def test_the_embedded_model_is_not_asked(settings: Settings, disputes: Disputes, author_user: User) -> None:
    settings.OPENAI_BASE_URL = settings.OPENAI_API_KEY = ""
    with pytest.raises(SuggestionRefused, match="the embedded model cannot write"):
        asked(disputes, author_user)


# ---------- what goes wrong ----------


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (StubReply("I would not change a thing."), "the answer has no line REVISED PROMPT"),
        (StubReply("half of", finish_reason="length"), "cut off at its token limit"),
        (StubReply(None, refusal="I won't."), "the model refused"),
        (StubReply("", status=401), "401"),
    ],
)
def test_an_answer_that_cannot_be_taken_is_a_failed_suggestion_with_its_raw_text(
    settings: Settings, disputes: Disputes, author_user: User, reply: StubReply, why: str
) -> None:
    with suggesting(settings, disputes, lambda body: reply) as stub:
        row = asked(disputes, author_user)
        assert stub.count == 1
    assert (row.state, row.text) == ("failed", "")
    assert why in row.error or why == "401"
    assert suggestion_in_full(row, user=author_user).raw == (reply.text or reply.refusal or "")
    with pytest.raises(SuggestionRefused, match="no revised prompt"):
        suggestion_use(suggestion=row, by=author_user)


def test_a_passing_failure_leaves_it_open_and_the_reaper_enqueues_again(
    settings: Settings, disputes: Disputes, author_user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaluation.runs.worker.stored_questions.PATIENCE", 0.5)
    down = StubReply("", status=503)
    with suggesting(settings, disputes, lambda body: down) as stub:
        row = asked(disputes, author_user)
        assert (row.state, row.tries, row.lease) == ("open", 0, None)
        assert row.error
        assert SUGGESTIONS.waiting() == []  # enqueued a moment ago
        Suggestion.objects.update(rung_at=None)
        assert SUGGESTIONS.waiting() == [row.pk]
        SUGGESTIONS.sweep()
        row.refresh_from_db()
        assert row.rung_at is not None
        stub.answer = drafts(disputes)
        suggest(row.pk)
    row.refresh_from_db()
    assert (row.state, row.error) == ("done", "")


def test_another_endpoint_in_the_settings_ends_it(
    settings: Settings, disputes: Disputes, author_user: User
) -> None:
    with suggesting(settings, disputes):
        row = suggestion_start(criterion=disputes.criterion, choice=SuggestionChoice(), by=author_user)
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"
    suggest(row.pk)
    row.refresh_from_db()
    assert row.state == "failed"
    assert "the server is set to" in row.error
