"""A draft is one author's: kept at every save, never overwritten unseen, gone once a version says it."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from common.problems import FieldProblem
from evaluation.models.prompts import PromptDraft, PromptVersion
from evaluation.prompts.services.drafts import (
    FaultyPrompt,
    NewerVersions,
    SavedVersion,
    StaleDraft,
    draft_discard,
    version_save,
)
from evaluation.prompts.services.examples import PromptRefused
from labeling.models.people import Role, User
from labeling.models.rubric import Criterion
from tests.factories.prompt_pages import TEXT, champion_of, draft_of_text, make_prompted, saved
from tests.factories.rows import make_chat, make_set, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def criterion() -> Criterion:
    return make_prompted()


def save(criterion: Criterion, author: User, text: str = TEXT, **more: object) -> SavedVersion:
    given = {"examples": (), "reason": "Clearer", "base": champion_of(criterion), **more}
    return version_save(criterion=criterion, author=author, text=text, **given)  # type: ignore[arg-type]


# ---------- the draft ----------


def test_each_save_raises_the_revision(criterion: Criterion, author_user: User) -> None:
    assert draft_of_text(criterion, author_user).revision == 1
    assert draft_of_text(criterion, author_user, "# Tone\nNew.", revision=1).revision == 2
    assert PromptDraft.objects.get().text == "# Tone\nNew."


@pytest.mark.parametrize("revision", [0, 2])
def test_a_save_over_what_it_has_not_seen_is_refused_with_what_is_stored(
    criterion: Criterion, author_user: User, revision: int
) -> None:
    draft_of_text(criterion, author_user)
    with pytest.raises(StaleDraft) as caught:
        draft_of_text(criterion, author_user, "# Tone\nOther.", revision=revision)
    assert caught.value.draft is not None
    assert caught.value.draft.text == PromptDraft.objects.get().text == TEXT


def test_a_save_of_a_draft_that_is_gone_is_refused(criterion: Criterion, author_user: User) -> None:
    draft_of_text(criterion, author_user)
    draft_discard(criterion=criterion, author=author_user)
    with pytest.raises(StaleDraft) as caught:
        draft_of_text(criterion, author_user, revision=1)
    assert caught.value.draft is None


def test_a_new_draft_goes_on_counting_so_that_no_stale_page_takes_it_for_its_own(
    criterion: Criterion, author_user: User
) -> None:
    draft_of_text(criterion, author_user, origin="suggested")
    draft_discard(criterion=criterion, author=author_user)
    anew = draft_of_text(criterion, author_user, "# Tone\nNew.")
    assert (anew.revision, anew.origin) == (2, "author")
    assert draft_of_text(criterion, author_user, "# Tone\nNew.").revision == 2  # after a lost answer
    with pytest.raises(StaleDraft):
        draft_of_text(criterion, author_user, "# Tone\nOld.", revision=1)


def test_a_draft_that_became_a_version_leaves_no_text_behind(criterion: Criterion, author_user: User) -> None:
    draft_of_text(criterion, author_user)
    save(criterion, author_user)
    assert not PromptDraft.objects.exists()
    assert not PromptDraft._base_manager.exclude(text="").exists()
    assert draft_of_text(criterion, author_user, "# Tone\nNew.").revision == 2


def test_the_same_save_again_after_a_lost_answer_changes_nothing(
    criterion: Criterion, author_user: User
) -> None:
    for _ in range(2):
        assert draft_of_text(criterion, author_user).revision == 1


def test_a_suggestion_stays_one_while_it_is_edited(criterion: Criterion, author_user: User) -> None:
    draft_of_text(criterion, author_user, origin="suggested")
    assert draft_of_text(criterion, author_user, "# Tone\nMine.", revision=1).origin == "suggested"


def test_authors_do_not_see_each_others(criterion: Criterion, author_user: User) -> None:
    draft_of_text(criterion, author_user)
    draft_of_text(criterion, make_user("ada", Role.AUTHOR), "# Tone\nAda's.")
    assert PromptDraft.objects.get(author=author_user).text == TEXT


# ---------- a version ----------


def test_a_version_takes_the_draft_with_it(criterion: Criterion, author_user: User) -> None:
    draft_of_text(criterion, author_user)
    done = save(criterion, author_user)
    assert (done.added, done.version.number, done.version.origin) == (True, 2, "author")
    assert (done.version.author, done.version.base) == (author_user, champion_of(criterion))
    assert not PromptDraft.objects.exists()


def test_a_draft_that_says_something_else_stays(criterion: Criterion, author_user: User) -> None:
    draft_of_text(criterion, author_user, "# Objective\nIs polite so?\nElse.")
    save(criterion, author_user)
    assert PromptDraft.objects.exists()


def test_what_was_suggested_is_marked_in_the_version(criterion: Criterion, author_user: User) -> None:
    draft_of_text(criterion, author_user, origin="suggested")
    assert save(criterion, author_user).version.origin == PromptVersion.Origin.SUGGESTED


def test_a_suggestion_that_was_edited_is_still_marked(criterion: Criterion, author_user: User) -> None:
    draft_of_text(criterion, author_user, origin="suggested")
    mine = f"{TEXT}And mine."
    draft_of_text(criterion, author_user, mine, revision=1)
    assert save(criterion, author_user, mine).version.origin == PromptVersion.Origin.SUGGESTED


def test_a_text_that_is_not_the_drafts_is_its_authors(criterion: Criterion, author_user: User) -> None:
    draft_of_text(criterion, author_user, "# Objective\nIs polite so?\nSuggested.", origin="suggested")
    assert save(criterion, author_user).version.origin == PromptVersion.Origin.AUTHOR


def test_the_same_text_again_is_the_version_there_is(criterion: Criterion, author_user: User) -> None:
    first = saved(criterion)
    draft_of_text(criterion, author_user)
    done = save(criterion, author_user, reason="")
    assert (done.added, done.version) == (False, first)
    assert not PromptDraft.objects.exists()


def test_a_reason_is_needed(criterion: Criterion, author_user: User) -> None:
    with pytest.raises(FieldProblem, match="reason: is missing"):
        save(criterion, author_user, reason="  ")


def test_an_error_of_the_lint_keeps_it_from_being_saved_and_a_warning_does_not(
    criterion: Criterion, author_user: User
) -> None:
    with pytest.raises(FaultyPrompt) as caught:
        save(criterion, author_user, f"{TEXT}\n# Response\nAnswer in JSON. {{{{chat}}}}\n")
    assert [finding.section for finding in caught.value.findings] == ["response", "response"]
    assert PromptVersion.objects.filter(criterion=criterion).count() == 1
    assert save(criterion, author_user).added  # without Audience and Response: warnings


def test_saving_reads_no_chat_for_leaks_which_only_warn(criterion: Criterion, author_user: User) -> None:
    """All chats of dev and holdout: with many of them others would wait at the database meanwhile."""
    make_set(criterion.rubric, make_chat("dev"), name="dev", split="dev")
    with CaptureQueriesContext(connection) as queries:
        assert save(criterion, author_user).added
    assert not [query for query in queries if "messages" in query["sql"]]


def test_versions_saved_meanwhile_are_named_until_they_are_confirmed(
    criterion: Criterion, author_user: User, lead_user: User
) -> None:
    other = saved(criterion, "# Objective\nIs polite so?\nHers.", author=lead_user)
    for confirmed in (0, 1):
        with pytest.raises(NewerVersions) as caught:
            save(criterion, author_user, confirmed=confirmed)
        assert caught.value.versions == [other]
        assert caught.value.versions[0].author == lead_user
    assert save(criterion, author_user, confirmed=2).version.number == 3


def test_a_retired_criterion_gets_no_new_version(criterion: Criterion, author_user: User) -> None:
    Criterion.objects.update(state="retired")
    with pytest.raises(PromptRefused, match="polite is retired"):
        save(criterion, author_user)
