"""Home, the first page after sign-in: what waits for each role, and what nobody else may see there."""

import re
from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from alignment.comparison.queries.scope import Scope
from alignment.home.queries.glance import glance_rows
from alignment.models.reports import Report
from alignment.prompts.queries.version_metrics import version_counts_store
from alignment.reports.worker import report_store
from common.inbox.services import comment_add
from common.inbox.subjects import subjects_open_to
from evaluation.models.runs import Run, RunChat, Verdict
from labeling.models.chats import ChatSet, ChatSetMember
from labeling.models.labels import Assignment, Label
from labeling.models.people import Role, User
from labeling.models.rubric import Criterion, CriterionVersion
from tests.database import RowsOnce
from tests.factories.compared_runs import Compared
from tests.factories.home import a_note, as_rater, make_busy, run_of_all
from tests.factories.page_text import words_of
from tests.factories.prompt_versions import a_version, promote
from tests.factories.rater_quality import polite
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def busy_once(rows_once: RowsOnce) -> Callable[[], Compared]:
    return rows_once("busy", make_busy)


@pytest.fixture
def busy(busy_once: Callable[[], Compared], db: None) -> Compared:
    return busy_once()


def signed_in(name: str) -> Client:
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


def home_of(name: str) -> str:
    answer = signed_in(name).get("/")
    assert answer.status_code == 200
    return words_of(answer)


def links_of(name: str) -> str:
    return signed_in(name).get("/").content.decode()


# ---------- lead ----------


def test_a_lead_sees_one_line_for_each_thing_that_waits(busy: Compared) -> None:
    page = home_of("ines")
    assert "12 tasks for you" in page
    for line in (
        "stopped at 10 of 40: the budget of $5 is reached",
        "Wrong fact v3 passed test",
        "Polite v4 passed test",
        "1 answer without a consensus on polite",
        "on wrong fact have no cause. Critical",
        "Welcome needs 30 more labelled chats for a status",
        "Certificate ended",
        "Polite version 1: did only the wording change?",
        "Welcome should be split, merged or replaced",
        "1 note of raters is open",
    ):
        assert line in page, line


def test_a_lead_sees_alignment_critical_and_worst_first(busy: Compared) -> None:
    page = home_of("ines")
    assert "The judge is aligned on 1 of 3 criteria" in page
    glance = page.split("Alignment Report, run")[1]
    places = [glance.index(name) for name in ("Wrong fact", "Welcome", "Polite")]
    assert places == sorted(places)


def test_a_release_that_an_author_asks_for_is_one_task(busy: Compared) -> None:
    assert home_of("ines").count("Wrong fact v3") == 2  # its line and the name of its button


def test_many_things_of_a_kind_share_a_line(busy: Compared) -> None:
    paused = Run.objects.get(state="paused")
    for _ in range(3):
        paused.pk = None
        paused.save()
    page = home_of("ines")
    assert "4 runs are paused" in page
    assert "12 tasks for you" in page


def test_home_reads_stored_figures_and_says_when_labels_are_newer(busy: Compared) -> None:
    before = list(Report.objects.values_list("pk", flat=True))
    Criterion.objects.filter(key="polite").update(labels_seq=999)
    page = home_of("ines")
    assert "1 criterion has new labels that these figures do not count yet" in page
    Report.objects.filter(kind=Report.Kind.MEASURED).delete()
    assert "Not measured" in home_of("ines")
    assert Report.objects.exclude(pk__in=before).count() == 0


ON_HOW_MANY = re.compile(r"The judge is aligned (?:with the raters )?on (\d+ of \d+) criteria")


def aligned_on(name: str, url: str) -> str:
    match = ON_HOW_MANY.search(words_of(signed_in(name).get(url)))
    assert match is not None
    return match[1]


def test_home_and_the_report_of_all_splits_count_the_same(busy: Compared) -> None:
    run = run_of_all(busy)
    url = reverse("alignment:report_run", args=[run.pk])
    reported = aligned_on("ines", url)
    Report.objects.filter(kind=Report.Kind.REPORT).exclude(run=run).update(subject="")  # another run's
    assert aligned_on("ines", "/") == "0 of 3" != reported  # of its small dev split
    report_store(Scope(run.chat_set, run), share=False)
    stored = list(Report.objects.values_list("pk", flat=True))
    assert aligned_on("ines", "/") == reported == aligned_on("ines", url)
    assert f'href="{url}">Report' in links_of("ines")
    assert list(Report.objects.values_list("pk", flat=True)) == stored


def test_the_figures_at_a_glance_are_those_of_the_report(busy: Compared) -> None:
    run = run_of_all(busy)
    report = report_store(Scope(run.chat_set, run), share=False)
    assert report is not None
    entries = {entry["key"]: entry for entry in report.body["criteria"]}
    for row in glance_rows(user=User.objects.get(username="ines")):
        entry, newest = entries[row.criterion.key], row.newest
        assert newest is not None
        assert (newest.run, newest.table.n) == (run, entry["n"])
        assert newest.rates["balanced_accuracy"].as_json() == entry["balanced_accuracy"]
        assert newest.ceiling == entry["human"]["ceiling"]["value"]
        assert [newest.decision.status, *newest.decision.reasons] == [entry["status"], *entry["reasons"]]
        assert not newest.outdated


def test_a_nights_sample_leaves_the_report_on_home(busy: Compared) -> None:
    run = run_of_all(busy)
    report_store(Scope(run.chat_set, run), share=False)
    assert run.chat_set is not None
    sample = ChatSet.objects.create(
        name="Every night 2026-11-02", kind="sample", rubric=run.chat_set.rubric, sampling={"plan": 1}
    )
    night = Run.objects.create(judge=run.judge, chat_set=sample, state="done", finished_at=timezone.now())
    night.run_chats.create(chat=run.run_chats.all()[0].chat)
    report_store(Scope(sample, night), share=False)
    version_counts_store(night)
    url = reverse("alignment:report_run", args=[run.pk])
    assert f'href="{url}">Report' in links_of("ines")


def test_a_report_of_an_earlier_version_is_not_shown_as_the_released_ones(busy: Compared) -> None:
    run = run_of_all(busy)
    report_store(Scope(run.chat_set, run), share=False)
    promote(a_version(polite()))
    shown = {row.criterion.key: row.newest for row in glance_rows(user=User.objects.get(username="ines"))}
    assert shown["polite"] is None
    assert shown["welcome"] is not None
    assert shown["welcome"].run == run


def test_new_labels_leave_the_report_on_home_and_mark_it(busy: Compared) -> None:
    run = run_of_all(busy)
    report_store(Scope(run.chat_set, run), share=False)
    before = aligned_on("ines", "/")
    Criterion.objects.filter(key="polite").update(labels_seq=999)
    assert aligned_on("ines", "/") == before
    assert "3 criteria have new labels that these figures do not count yet" in home_of("ines")


# ---------- author ----------


def test_an_author_keeps_the_figures_of_the_dev_split(busy: Compared) -> None:
    run = run_of_all(busy)
    before = splits_shown(User.objects.get(username="otto"))
    report_store(Scope(run.chat_set, run), share=False)
    assert splits_shown(User.objects.get(username="otto")) == before == {"dev"}


def test_an_author_keeps_the_figures_until_those_of_a_newer_run_are_counted(busy: Compared) -> None:
    run = newest_run("otto", "wrong_fact")
    newer = Run.objects.get(pk=run.pk)
    newer.pk, newer.source_hash, newer.finished_at = None, "", timezone.now()
    newer.save()
    rows: list[RunChat | Verdict] = [*run.run_chats.all(), *Verdict.objects.filter(run=run)]
    for row in rows:
        row.pk, row.run = None, newer
        row.save()
    assert newest_run("otto", "wrong_fact") == run
    assert "Wrong fact is critical: TPR" in home_of("otto")
    version_counts_store(newer)
    assert newest_run("otto", "wrong_fact") == newer
    assert "Wrong fact is critical: TPR" in home_of("otto")


def newest_run(name: str, criterion: str) -> Run:
    """The run whose figures the user sees of a criterion."""
    rows = {row.criterion.key: row for row in glance_rows(user=User.objects.get(username=name))}
    newest = rows[criterion].newest
    assert newest is not None
    return newest.run


def test_an_author_sees_criteria_to_work_on_with_the_reason(busy: Compared) -> None:
    page = home_of("otto")
    assert "1 criterion to work on" in page
    assert "Wrong fact is critical: TPR" in page
    assert "Welcome needs more labels first" in page


def test_an_author_sees_own_drafts_tests_requests_and_notes(busy: Compared) -> None:
    page = home_of("otto")
    assert "from version 3" in page
    assert "Wrong fact v3 Waiting" in page
    assert "Is thanks enough?" in page
    other = make_user("nora", Role.AUTHOR)
    assert other.pk
    page = home_of("nora")
    assert "No drafts" in page
    assert "No finished tests of yours" in page


def test_an_author_sees_no_note_on_a_holdout_chat(busy: Compared) -> None:
    a_note("ben", busy, 8, text="About a held-out chat.")
    assert "About a held-out chat." not in links_of("otto")


def test_an_author_sees_no_figure_on_few_holdout_chats(busy: Compared) -> None:
    lead, author = (User.objects.get(username=name) for name in ("ines", "otto"))
    assert splits_shown(author) == {"dev"}
    assert splits_shown(lead) == {"", "dev"}  # the whole run where it has a stored report
    ChatSetMember.objects.filter(split="holdout").update(split="dev")
    ChatSetMember.objects.filter(chat=busy.chat(9)).update(split="holdout")
    assert splits_shown(lead) == {"", "dev"}
    assert splits_shown(author) == {"holdout"}  # as the run pinned it: none of these is holdout today


def splits_shown(user: User) -> set[str]:
    return {row.newest.split for row in glance_rows(user=user) if row.newest}


# ---------- rater ----------


def test_a_rater_sees_the_queue_and_the_own_pace_alone(busy: Compared) -> None:
    as_rater(busy)
    page = home_of("anna")
    assert "12 chats left in November" in page
    assert "12 of 24" in page
    assert "median 2 min 40 s a chat" in page
    for word in ("judge", "Judge", "aligned", "cleo"):
        assert word not in page, word


def test_a_rater_sees_texts_that_changed_since_the_last_label(busy: Compared) -> None:
    as_rater(busy)
    assert "No text has changed" in home_of("anna")
    CriterionVersion.objects.create(
        criterion=polite(), number=2, question="Is it so?", definition="New.", content_hash="b"
    )
    assert Label.objects.filter(rater__name="anna", criterion=polite()).exists()
    assert "Read the change of Polite" in home_of("anna")


def test_a_rater_sees_answers_to_own_notes_once_the_chat_is_labelled(busy: Compared) -> None:
    anna = as_rater(busy)
    lead = User.objects.get(username="ines")
    for n, text in ((6, "Thanks is enough."), (20, "Not here.")):  # submitted, and still to label
        key = f"note:{a_note('anna', busy, n).pk}"
        comment_add(subject=key, about=subjects_open_to(lead, [key])[key], text=text, by=lead)
    page = home_of(anna.username)
    assert "ines: Thanks is enough." in page
    assert "Not here." not in page


def test_reading_home_creates_no_rater(lead_user: User, rater_user: User) -> None:
    assert "No chats to label" in home_of("mara")
    assert not hasattr(User.objects.get(username="mara"), "rater")


# ---------- several roles, none ----------


def test_several_roles_see_the_sections_of_each_the_leads_first(busy: Compared) -> None:
    make_user("all", *Role)
    page = home_of("all")
    places = [page.index(words) for words in ("tasks for you", "1 criterion to work on", "Your labelling")]
    assert places == sorted(places)


def test_home_is_the_first_entry_of_the_bar(busy: Compared) -> None:
    as_rater(busy)
    for name, entries in (("ines", "Home Chat sets"), ("otto", "Home Chat sets"), ("anna", "Home Labelling")):
        assert entries in home_of(name), name


def test_sign_in_leads_home(rater_user: User) -> None:
    form = {"login": "mara", "password": "correct horse battery"}
    assert Client().post("/accounts/login/", form).headers["Location"] == "/"


# ---------- cost ----------


def number_of_queries(name: str) -> int:
    client = signed_in(name)
    client.get("/")
    with CaptureQueriesContext(
        connection,
    ) as queries:
        client.get("/")
    return len(queries)


@pytest.mark.parametrize("name", ["ines", "otto", "anna", "all"])
def test_the_number_of_queries_is_constant(busy: Compared, name: str) -> None:
    as_rater(busy)
    make_user("all", *Role)
    grow(busy, 1)
    before = number_of_queries(name)
    grow(busy, 2)
    assert number_of_queries(name) == before


def grow(busy: Compared, times: int) -> None:
    """More of everything: runs, criteria, chats in work, notes."""
    run = Run.objects.filter(purpose="evaluation", state="done").latest("pk")
    for _ in range(5):
        run.pk, run.source_hash = None, ""
        run.finished_at = timezone.now()
        run.save()
    for n in range(8):
        row = Criterion.objects.get(key="polite")
        text = row.versions.get()
        row.pk, row.key = None, f"more_{times}_{n}"
        row.save()
        text.pk, text.criterion = None, row
        text.save()
    for n in range(40 * times, 40 * times + 20):
        a_note("anna", busy, n)
    submitted = Assignment.objects.filter(state="submitted", job__name="November").first()
    assert submitted is not None
    for n in range(50 * times, 50 * times + 20):
        submitted.pk, submitted.chat, submitted.position = None, busy.chat(n), n
        submitted.save()
