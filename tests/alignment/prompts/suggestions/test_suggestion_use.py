"""What becomes of a suggested revision: a draft, taken back, dismissed; released it is never."""

from collections.abc import Sequence
from typing import Any

import pytest
from pytest_django import Settings

from alignment.models.suggestions import Suggestion, SuggestionUse
from alignment.prompts.suggestions.queries.suggestions import (
    LISTED,
    suggestion_in_full,
    suggestion_shown,
    suggestions_shown,
)
from alignment.prompts.suggestions.services import (
    SuggestionRefused,
    suggestion_dismiss,
    suggestion_take_back,
    suggestion_use,
)
from alignment.templatetags.suggestions import fate
from evaluation.models.prompts import Promotion
from evaluation.models.runs import Run
from evaluation.prompts.queries.drafts import draft_of
from evaluation.prompts.services.drafts import draft_discard, draft_save
from labeling.models.chats import ChatSetMember
from labeling.models.people import User
from tests.factories.suggestions import Disputes, answer_with, asked, revised, suggesting
from tests.stub_endpoint import StubEndpoint, StubReply

pytestmark = pytest.mark.django_db(transaction=True)


def write_draft(
    disputes: Disputes,
    author: User,
    text: str,
    *,
    examples: Sequence[dict[str, Any]] = (),
    revision: int = 0,
) -> None:
    draft_save(
        criterion=disputes.criterion,
        author=author,
        base=disputes.champion,
        text=text,
        examples=examples,
        revision=revision,
    )


def test_used_as_a_draft_it_is_marked_as_suggested_and_releases_nothing(
    reviser: StubEndpoint, disputes: Disputes, author_user: User
) -> None:
    row = asked(disputes, author_user)
    suggestion_use(suggestion=row, by=author_user)
    draft = draft_of(criterion=disputes.criterion, author=author_user)
    assert draft is not None
    assert (draft.text, draft.origin, draft.base) == (row.text, "suggested", disputes.champion)
    assert Promotion.objects.count() == 1
    shown = suggestion_in_full(row, user=author_user)
    assert (shown.is_draft, shown.can_take_back, shown.changes) == (True, True, ())


def test_the_draft_it_took_the_place_of_can_be_taken_back_once(
    reviser: StubEndpoint, disputes: Disputes, author_user: User
) -> None:
    example = {"chat": "c", "turns": [1, 2], "value": True, "rationale": "So."}
    own = disputes.champion.text.replace("# Tone\n", "# Tone\nMine.\n")
    write_draft(disputes, author_user, own, examples=[example])
    row = asked(disputes, author_user)
    assert suggestion_in_full(row, user=author_user).replaces
    suggestion_use(suggestion=row, by=author_user)
    draft = draft_of(criterion=disputes.criterion, author=author_user)
    assert draft is not None
    assert (draft.examples, suggestion_in_full(row, user=author_user).before) == ([example], own)
    suggestion_take_back(suggestion=row, by=author_user)
    draft = draft_of(criterion=disputes.criterion, author=author_user)
    assert draft is not None
    assert (draft.text, draft.origin, draft.examples, draft.revision) == (own, "author", [example], 3)
    with pytest.raises(SuggestionRefused, match="earlier one cannot be restored"):
        suggestion_take_back(suggestion=row, by=author_user)


def test_used_twice_it_is_used_once_and_gives_back_what_was_there_before(
    reviser: StubEndpoint, disputes: Disputes, author_user: User
) -> None:
    write_draft(disputes, author_user, "My first words.")
    row = asked(disputes, author_user)
    first = suggestion_use(suggestion=row, by=author_user)
    assert suggestion_use(suggestion=row, by=author_user) == first
    suggestion_take_back(suggestion=row, by=author_user)
    draft = draft_of(criterion=disputes.criterion, author=author_user)
    assert draft is not None
    assert draft.text == "My first words."
    assert suggestion_use(suggestion=row, by=author_user) != first


def test_a_new_draft_is_not_mistaken_for_one_that_was_discarded(
    reviser: StubEndpoint, disputes: Disputes, author_user: User
) -> None:
    row = asked(disputes, author_user)
    suggestion_use(suggestion=row, by=author_user)
    draft_discard(criterion=disputes.criterion, author=author_user)
    write_draft(disputes, author_user, "Written anew.")
    with pytest.raises(SuggestionRefused, match="changed since"):
        suggestion_take_back(suggestion=row, by=author_user)


def test_without_a_draft_before_taking_back_leaves_none(
    reviser: StubEndpoint, disputes: Disputes, author_user: User
) -> None:
    row = asked(disputes, author_user)
    suggestion_use(suggestion=row, by=author_user)
    suggestion_take_back(suggestion=row, by=author_user)
    assert draft_of(criterion=disputes.criterion, author=author_user) is None


def test_after_further_work_on_the_draft_it_is_not_overwritten_but_the_older_text_stays_readable(
    reviser: StubEndpoint, disputes: Disputes, author_user: User
) -> None:
    row = asked(disputes, author_user)
    write_draft(disputes, author_user, "My first words.")
    suggestion_use(suggestion=row, by=author_user)
    write_draft(disputes, author_user, "Worked on.", revision=2)
    with pytest.raises(SuggestionRefused, match="changed since"):
        suggestion_take_back(suggestion=row, by=author_user)
    shown = suggestion_in_full(row, user=author_user)
    assert (shown.can_take_back, shown.before) == (False, "My first words.")


def test_another_author_may_use_it_too_and_each_has_their_own_undo(
    reviser: StubEndpoint, disputes: Disputes, author_user: User, lead_user: User
) -> None:
    row = asked(disputes, author_user)
    for person in (author_user, lead_user):
        suggestion_use(suggestion=row, by=person)
    assert fate(row) == f"Used by {lead_user} and {author_user}"
    suggestion_take_back(suggestion=row, by=author_user)
    assert draft_of(criterion=disputes.criterion, author=lead_user) is not None
    assert SuggestionUse.objects.filter(undone_at=None).get().by == lead_user


def test_words_of_a_chat_in_the_revision_are_among_the_findings(
    settings: Settings, disputes: Disputes, author_user: User
) -> None:
    told = disputes.chat("I have waited at the green door since seven")
    rule = "FALSE where the customer says: I have waited at the green door since seven."
    text = answer_with(revised(disputes.champion.text, rule=rule))
    with suggesting(settings, disputes, lambda body: StubReply(text)):
        row = asked(disputes, author_user)
    place = row.chat_ids.index(told.pk) + 1
    findings = suggestion_in_full(row, user=author_user).findings
    assert any(f"repeats words of chat {place}" in one.message for one in findings)


def test_a_suggestion_about_a_chat_that_became_holdout_is_gone_for_authors(
    reviser: StubEndpoint, disputes: Disputes, author_user: User, lead_user: User
) -> None:
    row = asked(disputes, author_user)
    ChatSetMember.objects.filter(chat=row.chat_ids[0]).update(split="holdout")
    assert suggestion_shown(suggestion_id=row.pk, user=author_user) is None
    assert suggestions_shown(user=author_user, criterion=disputes.criterion) == []
    assert suggestion_shown(suggestion_id=row.pk, user=lead_user) == row


def test_those_that_are_not_shown_take_no_place_in_the_list(
    reviser: StubEndpoint, disputes: Disputes, author_user: User
) -> None:
    readable = asked(disputes, author_user)
    held = disputes.chat("Held out", split="holdout")
    material = {**readable.material, "chats": [{**readable.material["chats"][0], "id": held.pk}]}
    for _ in range(LISTED):
        Suggestion.objects.create(
            criterion=disputes.criterion,
            base=readable.base,
            base_text=readable.base_text,
            model=readable.model,
            material=material,
            question=readable.question,
            state="failed",
        )
    assert suggestions_shown(user=author_user, criterion=disputes.criterion) == [readable]


def test_a_suggestion_from_a_note_on_a_chat_that_became_holdout_is_gone_for_authors(
    reviser: StubEndpoint, disputes: Disputes, author_user: User, lead_user: User
) -> None:
    noted = disputes.chat("I agree with everybody", people=True)
    disputes.noted(noted, "What of thanks?")
    row = asked(disputes, author_user)
    assert (noted.pk in row.chat_ids, row.material["note_chats"]) == (False, [noted.pk])
    ChatSetMember.objects.filter(chat=noted).update(split="holdout")
    assert suggestion_shown(suggestion_id=row.pk, user=author_user) is None
    assert suggestion_shown(suggestion_id=row.pk, user=lead_user) == row


def test_dismissed_it_stays_in_the_list(reviser: StubEndpoint, disputes: Disputes, author_user: User) -> None:
    row = asked(disputes, author_user)
    suggestion_dismiss(suggestion=row, by=author_user)
    (listed,) = suggestions_shown(user=author_user, criterion=disputes.criterion)
    assert (listed.dismissed_by, Run.objects.count()) == (author_user, 1)
