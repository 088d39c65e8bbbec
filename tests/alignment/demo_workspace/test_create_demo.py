"""create_demo: something on every page, marked for what it is, and the same after a second start."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from alignment.demo_workspace.services.demo_workspace import RUBRIC
from alignment.demo_workspace.services.labelling import INVENTED, JOB
from alignment.demo_workspace.services.team import JOB as TEAM_JOB
from alignment.demo_workspace.services.team import SUPPORT
from evaluation.models.judges import Judge
from evaluation.models.prompts import KnowledgeArticle, PromptVersion
from evaluation.models.runs import Run, Verdict
from evaluation.prompts.queries.definitions import older_champions
from labeling.models.chats import Chat, ChatSet
from labeling.models.labels import Adjudication, Consensus, Label, LabelingJob, RaterNote
from labeling.models.people import AuditEvent, Rater, User, Workspace
from labeling.models.rubric import Criterion, CriterionVersion, RubricGuideline
from labeling.rubric.services.guidelines import CriterionWords, criterion_write
from tests.files import run

CRITERIA = len(json.loads(RUBRIC.read_text(encoding="utf-8"))["criteria"])
SMALL = ("--chats", "40")
ROLES, RATERS = ["rater", "author", "lead"], [f"rater-{letter}" for letter in "abcde"]


@pytest.fixture(scope="module")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(autouse=True)
def folder(demo_folder: Path, settings: Settings) -> Path:
    """Where the demo's password is kept."""
    settings.VAR_DIR = demo_folder
    return demo_folder


@pytest.fixture(scope="module")
def demo_once(module_rows: Callable[[Callable[[], Any]], Any], demo_folder: Path) -> dict[str, Any]:
    with override_settings(VAR_DIR=demo_folder):
        made: dict[str, Any] = module_rows(lambda: run("create_demo", *SMALL).document)
    return made


@pytest.fixture
def demo(demo_once: dict[str, Any], db: None) -> dict[str, Any]:
    return demo_once


def rows() -> dict[str, int]:
    """How many rows each table has but the log, in which every import stands."""
    return {
        model.__name__: model._base_manager.count() for model in apps.get_models() if model is not AuditEvent
    }


def signed_in(name: str, password: str) -> Client:
    client = Client()
    assert client.login(username=name, password=password)
    return client


def test_a_second_start_changes_nothing(demo: dict[str, Any]) -> None:
    before = rows()
    assert run("create_demo", *SMALL).document == demo
    assert rows() == before
    steps = AuditEvent.objects.filter(verb="demo step").values_list("detail__step", flat=True)
    assert len(set(steps)) == len(steps) > 5


def test_it_holds_what_the_tour_needs(demo: dict[str, Any]) -> None:
    assert ChatSet.objects.get(name="demo").members.count() == 24
    assert Chat.objects.count() == ChatSet.objects.get(name=SUPPORT).members.count() == 64
    assert KnowledgeArticle.objects.count() == 14
    assert PromptVersion.objects.exclude(promotions=None).count() == CRITERIA
    written = Label.objects.filter(chat__external_id__startswith="demo-")
    raters = Rater.objects.filter(kind="demo").order_by("name")
    labels = [written.filter(rater=rater).count() for rater in raters]
    assert sorted(labels) == [0, 6 * CRITERIA, *[24 * CRITERIA] * 3]
    composed = Label.objects.filter(chat__external_id__startswith="bw-")
    assert {rater.name for rater in raters} == set(composed.values_list("rater__name", flat=True))
    assert Consensus.objects.filter(state="unresolved").count() >= 3
    assert Adjudication.objects.exists()
    assert Verdict.objects.count() == 24 * CRITERIA
    assert set(Verdict.objects.values_list("state", flat=True)) == {"read", "unparsed", "refused"}
    assert LabelingJob.objects.get(name=JOB).raters.get().user == User.objects.get(username="rater")


def test_no_champion_of_a_new_demo_was_written_for_an_older_definition(demo: dict[str, Any]) -> None:
    assert older_champions(list(Criterion.objects.all())) == {}


def test_the_labelling_side_shows_what_a_team_has_done(demo: dict[str, Any]) -> None:
    assert list(RubricGuideline.objects.values_list("number", flat=True)) == [1, 2]
    assert CriterionVersion.objects.filter(number=2).exclude(true_example="").count() == 3
    job = LabelingJob.objects.get(name=INVENTED)
    first = job.calibration
    assert first is not None
    assert (first.state, job.state) == ("closed", "open")
    for done in (first, job):
        assert set(done.assignments.values_list("state", flat=True)) == {"submitted"}
        labels = Label.objects.filter(assignment__job=done)
        assert labels.count() == done.assignments.count() * CRITERIA
    assert job.assignments.filter(kind="gold").count() == 4 * 3
    assert LabelingJob.objects.get(name=JOB).assignments.filter(kind="gold").exists()
    assert set(RaterNote.objects.values_list("kind", flat=True)) == {"unclear", "flag", "comment"}


def test_every_page_of_the_labelling_side_has_something_and_says_that_it_is_made_up(
    demo: dict[str, Any],
) -> None:
    lead, job = signed_in("lead", demo["password"]), LabelingJob.objects.get(name=INVENTED)
    assert job.calibration is not None
    disputed = Consensus.objects.filter(state="unresolved").select_related("chat", "criterion").first()
    assert disputed is not None
    item = [disputed.chat_id, disputed.criterion.key]
    pages = [
        reverse("labeling:job_detail", args=[job.pk]),
        reverse("quality:overview", args=[job.pk]),
        reverse("quality:team", args=[job.calibration.pk]),
        reverse("quality:pairs", args=[job.pk]),
        reverse("labeling:adjudicate", args=item),
    ]
    for url in pages:
        body = lead.get(url).content.decode()
        assert "ritten for this demo" in body or "Demo data: the shop" in body, url
        assert 'class="empty"' not in body, url
    for name in ("labeling:note_list", "labeling:guideline_list", "labeling:adjudication_queue"):
        assert 'class="empty"' not in lead.get(reverse(name)).content.decode(), name
    assert "Demo rater B" in lead.get(reverse("labeling:note_list")).content.decode()


def test_a_second_start_keeps_a_text_that_a_lead_has_changed(demo: dict[str, Any]) -> None:
    criterion = Criterion.objects.get(key="self_consistent")
    newest = criterion.versions.latest("number")
    criterion_write(
        criterion=criterion,
        words=CriterionWords(question=newest.question, definition="Compare the bot's messages."),
        reason="Shorter",
        base=newest.number,
        by=User.objects.get(username="lead"),
    )
    run("create_demo", *SMALL)
    assert criterion.versions.latest("number").definition == "Compare the bot's messages."


def test_everything_in_it_is_marked_as_written_for_the_demo(demo: dict[str, Any]) -> None:
    assert set(Chat.objects.values_list("origin", flat=True)) == {"demo"}
    assert set(Label.objects.values_list("source", flat=True)) == {"demo"}
    assert Workspace.current().demo
    labellers = Rater.objects.filter(pk__in=Label.objects.values("rater"))
    assert set(labellers.values_list("kind", flat=True)) == {"demo"}
    assert [judge.config.get("demo") for judge in Judge.objects.all()] == [True]


def test_the_demo_accounts_open_their_own_pages_and_no_others(demo: dict[str, Any]) -> None:
    assert demo["users"] == [*ROLES, *RATERS]
    first = {name: signed_in(name, demo["password"]).get("/").context["roles"] for name in ROLES}
    assert first == {"rater": ["rater"], "author": ["author"], "lead": ["lead"]}
    assert not User.objects.filter(is_superuser=True).exists()


def test_every_page_has_something_to_show(demo: dict[str, Any]) -> None:
    lead, shown = signed_in("lead", demo["password"]), Run.objects.get()
    chat_set, disputed = ChatSet.objects.get(name="demo"), Chat.objects.get(external_id="demo-01")
    report = lead.get(reverse("alignment:report_run", args=[shown.pk]))
    cells = [
        row["cells"][name]
        for row in report.context["report"]["criteria"]
        for name, count in row["confusion"].items()
        if count
    ]
    assert len(cells) > 30
    pages = [
        reverse("alignment:report_list"),
        reverse("alignment:report_run", args=[shown.pk]),
        reverse("alignment:report_set", args=[chat_set.pk]),
        reverse("alignment:chat", args=[shown.pk, disputed.pk]),
        reverse("labeling:set_list"),
        reverse("labeling:set_detail", args=[chat_set.pk]),
        reverse("alignment:criterion_list"),
        reverse("alignment:criterion_detail", args=["contextual_relevancy"]),
        reverse("evaluation:run_list"),
        reverse("evaluation:run_detail", args=[shown.pk]),
        *cells[::5],
    ]
    for url in pages:
        response = lead.get(url)
        body = response.content.decode()
        assert response.status_code == 200
        assert 'class="empty"' not in body
        if not url.startswith("/criteria/") and url != reverse("labeling:set_list"):
            assert "written for this demo" in body, url  # wherever labels or verdicts are
    rater = signed_in("rater", demo["password"])
    assert "Label the demo chats" in rater.get(reverse("labeling:queue")).content.decode()
    screen = rater.post(reverse("labeling:next", args=[LabelingJob.objects.get(name=JOB).pk]), follow=True)
    assert screen.status_code == 200
    assert screen.redirect_chain[-1][0].startswith("/rate/")


def test_the_report_says_that_24_chats_cannot_call_a_judge_aligned(demo: dict[str, Any]) -> None:
    report = run("alignment_report", "--run", Run.objects.get().pk).document
    assert {row["status"] for row in report["criteria"]} == {"not_enough_labels"}
    assert all("of 30" in row["reasons"][0] for row in report["criteria"])
    assert report["disagreements_total"] > 5


def test_the_declined_card_needs_business_knowledge(demo: dict[str, Any]) -> None:
    chat = Chat.objects.get(external_id="demo-01")
    people = Consensus.objects.get(chat=chat, criterion__key="contextual_relevancy")
    assert people.state == "false"


def test_passwords_are_nowhere_in_the_database(demo: dict[str, Any], folder: Path) -> None:
    password = demo["password"]
    assert (folder / "demo_password").read_text() == password
    assert (folder / "demo_password").stat().st_mode & 0o777 == 0o600
    for model in apps.get_models():
        for row in model._base_manager.values():
            assert password not in str(row), model.__name__
    assert len(password) >= 12


def test_existing_accounts_keep_their_password(demo: dict[str, Any]) -> None:
    lead = User.objects.get(username="lead")
    lead.set_password("changed by its owner")
    lead.save()
    run("create_demo", *SMALL)
    signed_in("lead", "changed by its owner")


def test_a_workspace_that_is_no_demo_is_refused_in_one_line(db: None) -> None:
    User.objects.create_user("somebody")
    with pytest.raises(CommandError, match="a workspace that is no demo"):
        run("create_demo")
    assert not Chat.objects.exists()
    assert not Workspace.current().demo


def test_the_banner_names_the_command_for_an_own_workspace(demo: dict[str, Any]) -> None:
    lead = signed_in("lead", demo["password"])
    for client, url in ((lead, reverse("labeling:set_list")), (Client(), reverse("account_login"))):
        body = client.get(url).content.decode()
        assert "chats, raters and results are invented" in body
        assert "<code>make start</code>" in body
    Workspace.objects.update(demo=False)
    assert "are invented" not in lead.get(reverse("labeling:set_list")).content.decode()


def test_an_invented_rater_has_an_account_with_their_own_labels(demo: dict[str, Any]) -> None:
    careful = User.objects.get(username="rater-a").rater
    assert (careful.name, careful.kind) == ("Demo rater A (careful)", "demo")
    assert signed_in("rater-a", demo["password"]).get(reverse("labeling:queue")).status_code == 200


def test_the_team_has_calibration_gold_skips_and_decisions(demo: dict[str, Any]) -> None:
    job = LabelingJob.objects.get(name=TEAM_JOB)
    assert job.calibration is not None
    assert job.calibration.state == "closed"
    assert set(job.assignments.values_list("kind", flat=True)) == {"normal", "gold"}
    assert Label.objects.filter(chat__external_id__startswith="bw-", assignment=None).count() == 0
    assert Label.objects.filter(given_at__gt=timezone.now()).count() == 0
