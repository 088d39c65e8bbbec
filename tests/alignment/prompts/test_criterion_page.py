"""The page of a criterion: its champion, disagreements, its versions, what to do next."""

import uuid
from collections.abc import Iterable

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.db.models import F, QuerySet
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from alignment.comparison.queries.cached_documents import documents_stored
from alignment.models.reports import Report
from alignment.prompts.queries.criterion_page import VERSIONS_A_PAGE, criterion_page
from alignment.prompts.queries.version_metrics import version_counts_store
from alignment.prompts.queries.versions import version_rows, with_figures
from evaluation.models.prompts import PromptDraft
from labeling.consensus.services.consensus import consensus_refresh
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.labels import Label, RaterNote
from labeling.models.people import Rater, User
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import Compared, add_chats
from tests.factories.page_text import figures, words_of
from tests.factories.prompt_versions import a_test, a_version, promote, run_of
from tests.factories.rater_quality import polite

pytestmark = pytest.mark.django_db

PAGE = "/criteria/polite/"
# More queries than for remembered counts: look for stored ones, draws by verdict, count. None stores.
COUNTED_ANEW = 4


def states() -> dict[int, str]:
    rows = version_rows(criteria=[polite()])[polite().pk]
    return {row.number: row.state.value for row in rows}


def an_answer_changes() -> None:
    Criterion.objects.filter(key="polite").update(labels_seq=F("labels_seq") + 1)


def page(client: Client, url: str = PAGE) -> str:
    answer = client.get(url)
    assert answer.status_code == 200
    return words_of(answer)


# ---------- states ----------


def test_a_version_is_a_draft_until_it_is_tested(compared: Compared) -> None:
    promote(a_version(polite()))
    a_version(polite())
    assert states() == {1: "released", 2: "draft"}


@pytest.mark.parametrize(
    ("result", "state"),
    [("", "tested"), ("pass", "tested"), ("inconclusive", "retired"), ("fail", "retired")],
)
def test_a_failed_test_retires_it_until_a_newer_one_passes(
    compared: Compared, result: str, state: str
) -> None:
    promote(a_version(polite()))
    tried = a_version(polite())
    a_test(tried, compared.run, result="pass" if result == "fail" else "fail")
    a_test(tried, compared.run, result=result)
    assert states()[2] == state


def test_a_cancelled_test_decides_nothing(compared: Compared) -> None:
    promote(a_version(polite()))
    a_test(a_version(polite()), compared.run, state="cancelled")
    assert states()[2] == "draft"


def test_a_champion_that_is_followed_is_retired_until_it_is_tested_again(compared: Compared) -> None:
    first, second = a_version(polite()), a_version(polite())
    for version in (first, second):
        promote(version)
    assert states() == {1: "retired", 2: "released"}
    a_test(first, compared.run, result="pass")
    assert states() == {1: "tested", 2: "released"}


def test_a_test_of_a_whole_judge_is_one_of_the_prompts_it_changes(compared: Compared) -> None:
    old, new = a_version(polite()), a_version(polite())
    promote(old)
    before, after = (run_of(version, compared.chat_set) for version in (old, new))
    a_test(new, after, candidate=None, kind="judge", baseline_run=before, result="fail")
    assert states() == {1: "released", 2: "retired"}


# ---------- alignment by version ----------


def test_versions_of_one_content_are_measured_together(compared: Compared) -> None:
    first = a_version(polite(), "# Objective\nAs before.")
    a_version(polite())
    a_version(polite(), "# Objective\nAs before.")
    run_of(first, compared.chat_set)
    rows = version_rows(criteria=[polite()])[polite().pk]
    newest, other, oldest = with_figures(rows, of=rows[:1], user=AnonymousUser())
    assert newest.same_as == oldest.number
    assert newest.metrics == oldest.metrics != ()
    assert other.metrics == ()


def counted_reports() -> QuerySet[Report]:
    return Report.objects.filter(kind=Report.Kind.MEASURED)


def test_what_was_counted_is_kept_until_an_answer_changes(compared: Compared) -> None:
    run_of(a_version(polite()), compared.chat_set)
    with documents_stored():
        first = figures()
    assert counted_reports().count() == 1
    again = figures()
    assert [one.table for one in again] == [one.table for one in first]
    assert counted_reports().count() == 1
    chat = compared.chat(1)
    Label.objects.filter(chat=chat, criterion=polite()).update(value=None)
    consensus_refresh(criterion_ids=[polite().pk], chat_ids=[chat.pk])
    Criterion.objects.filter(pk=polite().pk).update(labels_seq=99)
    assert sum(one.table.n for one in figures()) == 39


def test_counts_from_before_an_answer_changed_are_not_kept(compared: Compared, lead: Client) -> None:
    promote(version := a_version(polite()))
    run = run_of(version, compared.chat_set)
    report = Report.objects.create(
        run=run, chat_set=compared.chat_set, against="consensus", pin="e" * 64, policy=1, body={}
    )
    version_counts_store(run)
    before = set(counted_reports())
    an_answer_changes()
    version_counts_store(run)
    after = set(counted_reports())
    assert (len(before), len(after), before & after) == (1, 1, set())
    assert Report.objects.filter(pk=report.pk).exists()


def test_only_versions_that_a_page_shows_are_counted(compared: Compared, lead: Client) -> None:
    for _ in range(VERSIONS_A_PAGE + 3):
        run_of(version := a_version(polite()), compared.chat_set)
        if version.number == 1:
            promote(version)
    shown = {
        "/criteria/": 1,  # the champion
        "/api/criteria/polite/": 1,
        "/criteria/polite/versions/2/": 2,
        "/api/criteria/polite/prompts/3/": 3,
        PAGE: 2 + VERSIONS_A_PAGE + 1,
        f"{PAGE}?page=2": VERSIONS_A_PAGE + 3,
    }
    for url, counted in shown.items():
        with documents_stored():
            page(lead, url) if url.startswith("/criteria") else lead.get(url)
        assert counted_reports().count() == counted, url


def test_recounting_takes_one_query_for_any_number_of_versions(compared: Compared, lead: Client) -> None:
    promote(a_version(polite()))
    found = []
    for versions in (2, 12):
        for _ in range(versions):
            run_of(a_version(polite()), compared.chat_set)
        (warm,) = asked(lead, [PAGE])
        an_answer_changes()
        with CaptureQueriesContext(connection) as queries:
            lead.get(PAGE)
        found.append((warm, len(queries)))
    assert found[0] == found[1]
    assert found[0][1] - found[0][0] == COUNTED_ANEW


def test_the_line_breaks_where_the_model_changed(compared: Compared, author_user: User) -> None:
    for number in range(3):
        run_of(a_version(polite()), compared.chat_set, wrong=3 + number, config={"model": f"m{number // 2}"})
    line = criterion_page(criterion=polite(), user=author_user)["line"]
    assert [dot.number for dot in line.dots] == [1, 2, 3]
    assert (len(line.links), len(line.breaks)) == (1, 1)


# ---------- the page ----------


def test_it_says_what_the_criterion_asks_and_what_is_next(compared: Compared, lead: Client) -> None:
    shown = page(lead)
    assert "Is polite so?" in shown
    assert "No prompt yet" in shown
    promote(a_version(polite()))
    a_version(polite())
    shown = page(lead)
    for words in ("Passes when True", "Released version 1", "Version 2 needs a test.", "Test version 2"):
        assert words in shown


def test_a_test_that_goes_on_and_one_that_passed_are_linked(compared: Compared, author: Client) -> None:
    promote(a_version(polite()))
    tried = a_version(polite())
    going = a_test(tried, compared.run)
    assert f"Open test {going.pk}" in page(author)
    going.state, going.result = "done", "pass"
    going.save()
    assert "Version 2 passed its test and can be released." in page(author)
    promote(a_version(polite()))
    shown = page(author)
    assert "Version 2 needs a test. It passed against an earlier released version." in shown


def test_an_author_continues_their_own_draft(compared: Compared, author: Client, author_user: User) -> None:
    champion = a_version(polite())
    promote(champion)
    assert "Edit the prompt" in page(author)
    PromptDraft.objects.create(criterion=polite(), author=author_user, base=champion, text="# Tone\nOther")
    assert "Continue your draft" in page(author)


def test_it_shows_disagreements_on_train_and_dev(compared: Compared, author: Client) -> None:
    champion = a_version(polite())
    promote(champion)
    run = run_of(champion, compared.chat_set, wrong=5)
    answer = author.get(PAGE)
    shown = words_of(answer)
    assert "calibration, dev" in shown and "calibration, train" in shown
    cell = reverse("alignment:cell", args=[run.pk, "polite", "fn"]) + "?split=dev"
    assert cell in answer.content.decode()
    assert author.get(cell).status_code == 200
    assert "The judge on place 5." in shown  # why the judge said so
    assert "anna on polite: see m2" in shown  # and people
    assert [part.metrics.split for part in answer.context["disagreements"]] == ["dev", "train"]


def test_every_release_is_shown_for_ever_with_who_and_why(
    compared: Compared, author: Client, lead_user: User
) -> None:
    for reason, overridden in (("Passed", False), ("Labels come next week", True)):
        promote(a_version(polite()), by=lead_user, reason=reason, overridden=overridden)
    promote(a_version(polite()), reason="Third")
    shown = page(author)
    assert "Gate overridden" in shown and "ines Labels come next week" in shown
    assert shown.index("Third") < shown.index("Labels come next week") < shown.rindex("Passed")


def test_what_a_model_suggested_is_marked(compared: Compared, author: Client) -> None:
    promote(a_version(polite()))
    assert "Suggested by a model" not in page(author)
    a_version(polite(), origin="suggested")
    assert "Suggested by a model" in page(author)


def test_a_retired_criterion_can_be_read_and_not_edited(compared: Compared, author: Client) -> None:
    promote(a_version(polite()))
    a_version(polite())
    Criterion.objects.filter(key="polite").update(state="retired")
    shown = page(author)
    assert "New runs do not include it." in shown
    assert "Edit the prompt" not in shown and "needs a test" not in shown
    assert page(author, "/criteria/polite/versions/2/")


# ---------- notes ----------


def notes(*texts: tuple[str, str]) -> None:
    for chat, text in texts:
        RaterNote.objects.create(
            rater=Rater.objects.get(name="anna"),
            chat=ChatSetMember.objects.get(chat__external_id=chat).chat,
            criterion=polite(),
            version=polite().versions.get(),
            kind="unclear",
            text=text,
            client_id=uuid.uuid4(),
        )


def test_notes_on_chats_that_are_not_shown_stay_out(compared: Compared, author: Client, lead: Client) -> None:
    promote(a_version(polite()))
    notes(("chat-1", "What is polite?"), ("chat-4", "A held-out remark"))
    assert "What is polite?" in page(author)
    assert "A held-out remark" not in page(author)
    assert "A held-out remark" in page(lead)


def test_open_notes_come_before_settled_ones(compared: Compared, author: Client, lead_user: User) -> None:
    promote(a_version(polite()))
    notes(("chat-1", "The first"), ("chat-2", "The second"))
    RaterNote.objects.filter(text="The second").update(settled_at=timezone.now(), settled_by=lead_user)
    shown = page(author)
    assert shown.index("The first") < shown.index("The second")
    assert "1 of 2 open" in shown


# ---------- numbers of queries ----------


def asked(client: Client, urls: Iterable[str]) -> list[int]:
    found = []
    for url in urls:
        client.get(url)  # what a run amounts to is counted once
        with CaptureQueriesContext(connection) as queries:
            assert client.get(url).status_code == 200
        found.append(len(queries))
    return found


URLS = (
    "/criteria/",
    PAGE,
    "/criteria/polite/versions/2/?against=1",
    "/api/criteria/",
    "/api/criteria/polite/",
    "/api/criteria/polite/prompts/",
    "/api/criteria/polite/prompts/2/?against=1",
)


@pytest.mark.heavy
def test_the_number_of_queries_depends_on_neither_versions_nor_chats(
    compared: Compared, author: Client
) -> None:
    champion = a_version(polite(), "", compared.chat(3))
    promote(champion)
    second = a_version(polite(), "", compared.chat(3), base=champion)
    for version in (champion, second):
        a_test(version, run_of(version, compared.chat_set), result="pass")
    few = asked(author, URLS)
    add_chats(compared, to=400)
    for _ in range(12):
        version = a_version(polite(), base=second)
        a_test(version, run_of(version, compared.chat_set), result="fail")
        promote(version, reason="More")
    run_of(champion, compared.chat_set)
    promote(champion)
    assert asked(author, URLS) == few
    assert max(few) <= 53


def test_a_set_of_its_own_is_measured_on_its_own(compared: Compared, author: Client) -> None:
    version = a_version(polite())
    promote(version)
    other = ChatSet.objects.create(name="second", rubric=compared.rubric)
    ChatSetMember.objects.create(chat_set=other, chat=compared.chat(1), split="dev", position=1)
    run_of(version, compared.chat_set)
    run_of(version, other)
    shown = page(author, f"{PAGE}?on={other.pk}-dev")
    assert "Balanced accuracy on second, dev" in author.get(f"{PAGE}?on={other.pk}-dev").content.decode()
    assert "second, dev" in shown and "calibration, holdout" in shown
