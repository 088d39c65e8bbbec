"""create_demo: something on every page, marked for what it is, and the same after a second start."""

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from alignment.demo_workspace.services import demo_workspace
from alignment.demo_workspace.services.demo_workspace import DEMO, RUBRIC, RUNS
from alignment.demo_workspace.services.labelling import INVENTED, JOB
from evaluation.models.judges import Judge
from evaluation.models.prompts import KnowledgeArticle, PromptVersion
from evaluation.models.runs import Run, Verdict
from evaluation.prompts.queries.definitions import older_champions
from labeling.models.chats import Chat, ChatSet
from labeling.models.labels import Adjudication, Assignment, Consensus, Label, LabelingJob, RaterNote
from labeling.models.people import AuditEvent, Rater, User
from labeling.models.rubric import Criterion, CriterionVersion, RubricGuideline
from labeling.rubric.services.guidelines import CriterionWords, criterion_write
from tests.factories.runs import always, answering
from tests.files import run, write_json, write_jsonl
from tests.stub_endpoint import Body, StubReply

CRITERIA = len(json.loads(RUBRIC.read_text(encoding="utf-8"))["criteria"])
ADDED = "caused_needless_turns"
REAL = {"direct": (8, 4), "reflection": (1, 2), "debate": (1, 2)}  # chats, criteria


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Settings) -> Path:
    """Where the demo's password is kept."""
    settings.VAR_DIR = tmp_path
    return tmp_path


@pytest.fixture
def demo(db: None) -> dict[str, Any]:
    return run("create_demo").document


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
    assert run("create_demo").document == demo
    assert rows() == before


def test_it_holds_what_the_tour_needs(demo: dict[str, Any]) -> None:
    assert Chat.objects.count() == ChatSet.objects.get(name="demo").members.count() == 24
    assert KnowledgeArticle.objects.count() == 14
    assert PromptVersion.objects.exclude(promotions=None).count() == CRITERIA
    labels = [Label.objects.filter(rater=rater).count() for rater in Rater.objects.filter(kind="demo")]
    assert sorted(labels) == [6 * CRITERIA, *[24 * CRITERIA] * 3]
    assert Consensus.objects.filter(state="unresolved").count() >= 3
    assert Adjudication.objects.exists()
    assert Verdict.objects.count() == 24 * CRITERIA
    assert set(Verdict.objects.values_list("state", flat=True)) == {"read", "unparsed", "refused"}
    assert LabelingJob.objects.get(name=JOB).raters.get().user == User.objects.get(username="rater")


def test_one_prompt_has_a_revision_that_waits_for_its_test(demo: dict[str, Any]) -> None:
    draft = PromptVersion.objects.get(origin=PromptVersion.Origin.AUTHOR)
    assert (draft.criterion.key, draft.number) == ("guessed_missing_detail", 2)
    assert draft.base is not None and draft.base.number == 1
    assert not draft.promotions.exists()


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


def test_a_workspace_of_an_earlier_demo_gets_the_labelling_side_too(demo: dict[str, Any]) -> None:
    invented = LabelingJob.objects.filter(name=INVENTED)
    Label.objects.update(assignment=None)
    Assignment.objects.filter(job__in=invented).delete()
    for job in invented:
        job.raters.clear()
        job.criteria.clear()
    invented.delete()
    RaterNote.objects.all().delete()
    run("create_demo")
    assert Label.objects.filter(assignment__job__name=INVENTED).exists()
    assert LabelingJob.objects.filter(name=JOB).count() == 1


@pytest.fixture
def earlier_demo(db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The demo as it was before its rubric asked for needless turns."""
    rubric = json.loads(RUBRIC.read_text(encoding="utf-8"))
    rubric["criteria"] = [row for row in rubric["criteria"] if row["key"] != ADDED]
    folder = tmp_path / "demo"
    copytree(DEMO, folder)
    for name in ("labels.jsonl", "verdicts.jsonl"):
        lines = (DEMO / name).read_text(encoding="utf-8").splitlines()
        write_jsonl(folder / name, *(row for row in map(json.loads, lines) if row["criterion"] != ADDED))
    with monkeypatch.context() as patch:
        patch.setattr(demo_workspace, "RUBRIC", write_json(tmp_path / "rubric.json", rubric))
        patch.setattr(demo_workspace, "DEMO", folder)
        return run("create_demo").document


def test_an_earlier_demo_gets_the_new_criterion_and_keeps_what_it_had(earlier_demo: dict[str, Any]) -> None:
    labels, runs = set(Label.objects.values_list("pk", flat=True)), list(Run.objects.all())
    versions = set(CriterionVersion.objects.values_list("pk", flat=True))
    assert len(labels) == (6 + 3 * 24) * (CRITERIA - 1)
    again = run("create_demo").document
    assert again == earlier_demo
    assert CriterionVersion.objects.exclude(pk__in=versions).get().criterion.key == ADDED
    added = Label.objects.exclude(pk__in=labels)
    assert set(added.values_list("criterion__key", flat=True)) == {ADDED}
    assert added.count() == 6 + 3 * 24
    assert PromptVersion.objects.filter(criterion__key=ADDED).get().origin == PromptVersion.Origin.SHIPPED
    for kept in runs:
        assert Verdict.objects.filter(run=kept).count() == 24 * (CRITERIA - 1)
    before = rows()
    run("create_demo")
    assert rows() == before


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
    run("create_demo")
    assert criterion.versions.latest("number").definition == "Compare the bot's messages."


def test_everything_in_it_is_marked_as_written_for_the_demo(demo: dict[str, Any]) -> None:
    assert set(Chat.objects.values_list("origin", flat=True)) == {"demo"}
    assert set(Label.objects.values_list("source", flat=True)) == {"demo"}
    labellers = Rater.objects.filter(pk__in=Label.objects.values("rater"))
    assert set(labellers.values_list("kind", flat=True)) == {"demo"}
    assert [judge.config.get("demo") for judge in Judge.objects.all()] == [True]


def test_the_demo_accounts_open_their_own_pages_and_no_others(demo: dict[str, Any]) -> None:
    assert demo["users"] == ["rater", "author", "lead"]
    first = {name: signed_in(name, demo["password"]).get("/").context["roles"] for name in demo["users"]}
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
    run("create_demo")
    signed_in("lead", "changed by its owner")


# ---------- a real run of a small part ----------


@pytest.mark.django_db(transaction=True)
def test_evaluate_plans_three_small_runs_and_a_second_start_asks_nothing(settings: Settings) -> None:
    with answering(settings, always(True)) as stub:
        first = run("create_demo", "--evaluate").document
        asked, before = stub.count, rows()
        second = run("create_demo", "--evaluate")
        assert stub.count == asked
    assert second.document == first
    assert second.notes.count("already finished") == 3
    assert rows() == before
    assert [demo.engine for demo in RUNS] == list(REAL)
    runs = Run.objects.select_related("judge").in_bulk(first["runs"])
    for pk, (engine, (chats, criteria)) in zip(first["runs"], REAL.items(), strict=True):
        made = runs[pk]
        assert (made.judge.engine, made.state, made.units_total) == (engine, "done", chats * criteria)
        assert made.run_chats.count() == chats
        assert Verdict.objects.filter(run=made, state="read").count() == chats * criteria
    assert sum(made.calls for made in runs.values()) == asked
    assert runs[first["runs"][1]].reused == 2  # reflection's drafts are the questions that direct has asked


@pytest.mark.heavy
@pytest.mark.django_db(transaction=True)
def test_a_start_that_the_endpoint_cut_short_is_finished_by_the_next(settings: Settings) -> None:
    answers = 0

    def failing(body: Body) -> StubReply:
        nonlocal answers
        answers += 1
        return always(True)(body) if answers <= 20 else StubReply(status=401, raw=b"{}")

    with answering(settings, failing) as stub:
        with pytest.raises(CommandError, match="run the command again") as caught:
            run("create_demo", "--evaluate")
        assert caught.value.returncode == 4
        assert Verdict.objects.filter(run__purpose="evaluation").count() == 20
        stub.answer, before = always(True), stub.count
        run("create_demo", "--evaluate")
        assert stub.count - before == 40 - 20  # the 40 different questions without the stored answers
    assert Run.objects.filter(state="done", purpose="evaluation").count() == 3
    assert Verdict.objects.filter(run__purpose="evaluation").count() == 36
