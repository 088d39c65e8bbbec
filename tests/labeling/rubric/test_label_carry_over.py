"""Answers that carry over to a criterion that replaces others, and the preview of it."""

import uuid
from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from common.problems import FieldProblem
from labeling.models.chats import Chat
from labeling.models.labels import Adjudication, Consensus, Label, LabelRevision
from labeling.models.people import Rater
from labeling.models.rubric import CriterionLineage
from labeling.rating.queries.labels import answers_of
from labeling.rating.services.answers import label_save
from labeling.rating.services.submission import assignment_submit
from labeling.rubric.queries.redesign import ChatTally, Tally, consequences, redesigned
from tests.factories.guidelines import reword
from tests.factories.labelling_job import Desk, answer_all, grow, make_desk
from tests.factories.redesigns import (
    KEYS,
    MERGE,
    SPLIT,
    carried_out,
    criterion,
    decide,
    give,
    redesign,
    successor,
    values,
)
from tests.factories.rows import make_rater

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk() -> Desk:
    return make_desk(chats=3, raters=2, overlap=2, keys=KEYS)


def agreed(key: str) -> set[tuple[int, str, str, int]]:
    rows = Consensus.objects.filter(criterion__key=key)
    return set(rows.values_list("chat_id", "state", "by", "n_true"))


# ---------- carrying labels ----------


def test_a_carried_label_is_the_raters_own_answer_to_the_new_question(desk: Desk) -> None:
    chat, when = desk.chats[0], timezone.now()
    old = give(
        chat,
        desk.criteria[0],
        desk.rater,
        False,
        rationale="Rude in 2",
        evidence=[{"n": 2}],
        given_at=when,
        active_ms=900,
    )
    done = carried_out(SPLIT)
    new = Label.objects.get(criterion__key="greets")
    assert (new.chat, new.rater, new.value, new.state) == (chat, desk.rater, False, "submitted")
    assert (new.rationale, new.evidence, new.given_at) == ("Rude in 2", [{"n": 2}], when)
    assert (new.source, new.assignment, new.active_ms, new.revision) == ("carried", None, 0, 1)
    assert new.carried_from == desk.criteria[0]
    assert new.version == criterion("greets").versions.get()
    history = LabelRevision.objects.get(label=new)
    assert (history.number, history.value, history.rationale) == (1, False, "Rude in 2")
    assert (done.carried[0].key, done.carried[0].labels.carried) == ("greets", 1)
    old.refresh_from_db()
    assert (old.criterion.key, old.source) == ("polite", "screen")
    assert values("thanks") == {}


def test_consensus_follows_what_was_carried(desk: Desk) -> None:
    give(desk.chats[0], desk.criteria[0], desk.raters[0], True)
    give(desk.chats[0], desk.criteria[0], desk.raters[1], False)
    give(desk.chats[1], desk.criteria[0], desk.raters[0], True)
    decide(desk.chats[0], desk.criteria[0], False)
    before = list(
        Consensus.objects.filter(criterion__key="polite").values_list("chat", "state", "by", "n_true")
    )
    carried_out(SPLIT)
    rows = Consensus.objects.filter(criterion__key="greets").values_list("chat", "state", "by", "n_true")
    assert sorted(rows) == sorted(before)
    assert criterion("greets").labels_seq == 1
    assert not agreed("thanks")


def test_only_labels_that_count_today_carry_over(desk: Desk) -> None:
    polite = desk.criteria[0]
    give(desk.chats[0], polite, desk.raters[0], True)
    reword(polite, definition="Another one.")
    give(desk.chats[1], polite, desk.raters[0], True)
    give(desk.chats[2], polite, desk.raters[0], True, state="draft")
    give(desk.chats[2], polite, desk.raters[1], True, post_reveal=True)
    carried_out(SPLIT)
    assert values("greets") == {("chat-2", "mara"): True}


def test_a_merge_carries_a_chat_where_the_consensuses_agree_with_every_raters_label(desk: Desk) -> None:
    polite, brief = desk.criteria[:2]
    mara, other = desk.raters
    given = give(desk.chats[0], polite, mara, True, rationale="Kind", evidence=[{"n": 2}])
    give(desk.chats[0], brief, mara, True, rationale="Short", evidence=[{"n": 1}])
    give(desk.chats[0], polite, other, True)
    give(desk.chats[0], brief, other, False)
    give(desk.chats[1], brief, other, False)
    done = carried_out(MERGE)
    assert values("kind") == {
        ("chat-1", "mara"): True,
        ("chat-1", "rater-2"): True,
        ("chat-2", "rater-2"): False,
    }
    label = Label.objects.get(criterion__key="kind", chat=desk.chats[0], rater=mara)
    assert (label.rationale, label.evidence, label.given_at) == ("Kind", [{"n": 2}], given.given_at)
    origins = Label.objects.filter(criterion__key="kind").order_by("chat", "rater")
    assert list(origins.values_list("source", "carried_from__key")) == [
        ("carried", "polite"),
        ("carried", "polite"),
        ("carried", "brief"),
    ]
    assert done.carried[0].labels == Tally(3, 0)
    assert done.carried[0].chats == ChatTally(carried=2, excluded=0, one_only=1, unresolved=1)
    assert done.carried[0].differing == 1


def test_a_merge_leaves_out_chats_where_the_consensuses_differ(desk: Desk) -> None:
    polite, brief = desk.criteria[:2]
    third = make_rater("zoe")
    for rater, first, second in (*((one, True, False) for one in desk.raters), (third, False, False)):
        give(desk.chats[0], polite, rater, first)
        give(desk.chats[0], brief, rater, second)
        give(desk.chats[1], polite, rater, first)
    decide(desk.chats[2], polite, True)
    decide(desk.chats[2], brief, False)
    done = carried_out(MERGE)
    assert values("kind") == {
        ("chat-2", "mara"): True,
        ("chat-2", "rater-2"): True,
        ("chat-2", "zoe"): False,
    }
    assert not Adjudication.objects.filter(criterion__key="kind").exists()
    assert (done.carried[0].labels, done.carried[0].adjudications) == (Tally(3, 3), Tally(0, 1))
    assert done.carried[0].chats == ChatTally(carried=1, excluded=2, one_only=1)


def test_what_a_rater_labels_afresh_is_no_longer_carried_over(desk: Desk) -> None:
    give(desk.chats[0], desk.criteria[0], desk.rater, False)
    carried_out(SPLIT)
    greets = criterion("greets")
    mine = desk.taken(job=desk.opened(criteria=[greets]))
    label_save(assignment=mine, rater=desk.rater, criterion=greets, value=False, client_id=uuid.uuid4())
    assert Label.objects.get(criterion=greets).carried_from == desk.criteria[0]
    assignment_submit(assignment=mine, rater=desk.rater)
    label = Label.objects.get(criterion=greets)
    assert (label.source, label.carried_from) == ("screen", None)


def test_a_correction_of_a_carried_label_is_no_longer_carried_over(desk: Desk) -> None:
    carried_out(redesign("retire", "brief"))
    give(desk.chats[0], desk.criteria[0], desk.rater, False)
    carried_out(SPLIT)
    greets, thanks = criterion("greets"), criterion("thanks")
    mine = desk.taken(job=desk.opened(criteria=[thanks]))
    label_save(assignment=mine, rater=desk.rater, criterion=thanks, value=True, client_id=uuid.uuid4())
    assignment_submit(assignment=mine, rater=desk.rater)
    label_save(assignment=mine, rater=desk.rater, criterion=greets, value=True, client_id=uuid.uuid4())
    assert Label.objects.get(criterion=greets).carried_from is None


def test_not_applicable_beside_an_answer_differs_too(desk: Desk) -> None:
    polite, _, correct = desk.criteria
    give(desk.chats[0], polite, desk.rater, False)
    give(desk.chats[0], correct, desk.rater, None)
    into = (successor("fine", "polite", "correct", allow_na=True),)
    done = carried_out(redesign("merge", "polite", "correct", into=into))
    assert (done.carried[0].labels.carried, done.carried[0].labels.conflicts) == (0, 1)


def test_a_merge_may_carry_the_labels_of_one_alone(desk: Desk) -> None:
    polite, brief = desk.criteria[:2]
    give(desk.chats[0], polite, desk.rater, True)
    give(desk.chats[0], brief, desk.rater, False)
    carried_out(redesign("merge", "polite", "brief", into=(successor("kind", "polite"),)))
    assert values("kind") == {("chat-1", "mara"): True}
    rows = CriterionLineage.objects.values_list("old__key", "carries_labels")
    assert set(rows) == {("polite", True), ("brief", False)}


def test_adjudications_in_force_carry_over_where_they_are_the_same(desk: Desk) -> None:
    polite, brief = desk.criteria[:2]
    decide(desk.chats[0], polite, True, reason="First")
    decide(desk.chats[0], brief, True, reason="Second", by_name="Otto")
    decide(desk.chats[1], polite, True)
    decide(desk.chats[1], brief, False)
    decide(desk.chats[2], polite, True, replaced_at=timezone.now())
    done = carried_out(MERGE)
    found = Adjudication.objects.get(criterion__key="kind")
    assert (found.chat, found.value, found.reason, found.by_name) == (desk.chats[0], True, "Second", "Otto")
    assert found.carried_from == brief
    assert (done.carried[0].adjudications.carried, done.carried[0].adjudications.conflicts) == (1, 1)
    assert Adjudication.objects.filter(replaced_at=None, criterion__in=(polite, brief)).count() == 4


def test_answers_not_applicable_do_not_carry_to_a_question_that_always_applies(desk: Desk) -> None:
    give(desk.chats[0], desk.criteria[2], desk.rater, None)
    give(desk.chats[1], desk.criteria[2], desk.rater, True)
    wanted = redesign("replace", "correct", into=(successor("right", "correct"),))
    with pytest.raises(FieldProblem, match=r"into\[0\].allow_na: 1 of the answers"):
        carried_out(wanted)
    carried_out(redesign("replace", "correct", into=(successor("right", "correct", allow_na=True),)))
    assert set(values("right").values()) == {None, True}


def test_who_labels_the_new_question_later_answers_it_afresh(desk: Desk) -> None:
    give(desk.chats[0], desk.criteria[0], desk.rater, False)
    carried_out(SPLIT)
    greets = criterion("greets")
    mine = desk.taken(job=desk.opened(criteria=[greets]))
    assert (mine.chat, answers_of(assignment=mine, criteria=[greets])) == (desk.chats[0], {})
    label_save(assignment=mine, rater=desk.rater, criterion=greets, value=True, client_id=uuid.uuid4())
    assignment_submit(assignment=mine, rater=desk.rater)
    assert values("greets") == {("chat-1", "mara"): True}
    assert LabelRevision.objects.filter(label__criterion=greets).count() == 3


def test_the_migration_names_the_origin_of_labels_carried_over_before(desk: Desk) -> None:
    polite, brief = desk.criteria[:2]
    give(desk.chats[0], polite, desk.rater, True)
    give(desk.chats[0], brief, desk.rater, True)
    give(desk.chats[1], brief, desk.rater, True)
    decide(desk.chats[1], brief, True)
    carried_out(MERGE)
    carried_out(redesign("replace", "kind", into=(successor("warm", "kind"),)))
    for rows in (Label.objects.all(), Adjudication.objects.all()):
        known = dict(rows.values_list("pk", "carried_from"))
        assert len(set(known.values())) > 2
        rows.update(carried_from=None)
        import_module("labeling.migrations.0007_answers_carried_from").name_origins(apps, None)
        assert dict(rows.values_list("pk", "carried_from")) == known


# ---------- what it would do ----------


def test_the_preview_says_what_the_redesign_then_does(desk: Desk) -> None:
    polite, brief = desk.criteria[:2]
    for n, chat in enumerate(desk.chats):
        for rater in desk.raters:
            give(chat, polite, rater, True)
            give(chat, brief, rater, n > 0)
    decide(desk.chats[2], polite, True)
    found = consequences(redesign=MERGE, olds=redesigned(redesign=MERGE))
    assert (found.labels, found.adjudications, found.drafts) == (12, 1, 0)
    assert found.carrying[0].chats == ChatTally(carried=2, excluded=1)
    assert [(job.name, job.left) for job in found.jobs] == [("October", 1)]
    assert found.carrying == carried_out(MERGE).carried
    assert (found.carrying[0].labels.carried, found.carrying[0].labels.conflicts) == (4, 2)


def test_the_preview_counts_drafts_and_leaves_out_closed_jobs(desk: Desk) -> None:
    answer_all(desk.taken())
    desk.job.state = "closed"
    desk.job.save()
    wanted = redesign("retire", "polite")
    found = consequences(redesign=wanted, olds=redesigned(redesign=wanted))
    assert (found.labels, found.drafts, found.jobs) == (0, 1, ())


def labelled(desk: Desk, *, to: int) -> None:
    grow(desk, to=to)
    for key in ("polite", "brief"):
        row = criterion(key)
        Label.objects.bulk_create(
            Label(
                chat=chat,
                criterion=row,
                rater=rater,
                version=row.versions.get(),
                value=chat.pk % 3 > 0,
                state="submitted",
                given_at=timezone.now(),
            )
            for chat in Chat.objects.all()
            for rater in Rater.objects.all()
        )


@pytest.mark.heavy
def test_the_preview_takes_the_same_statements_at_20_and_400_chats(desk: Desk) -> None:
    spent = []
    for chats in (20, 400):
        Label.objects.all().delete()
        labelled(desk, to=chats)
        with CaptureQueriesContext(connection) as queries:
            consequences(redesign=MERGE, olds=redesigned(redesign=MERGE))
        spent.append(len(queries))
    assert spent[0] == spent[1]


@pytest.mark.heavy
def test_a_merge_reads_and_copies_labels_in_one_statement_each(desk: Desk) -> None:
    labelled(desk, to=400)
    with CaptureQueriesContext(connection) as queries:
        carried_out(MERGE)
    sql = [query["sql"] for query in queries]
    selected = [one for one in sql if one.startswith('SELECT "labeling_label"') and '"rater_id"' in one]
    inserted = [one for one in sql if one.startswith('INSERT INTO "labeling_label" ')]
    assert (len(selected), len(inserted)) == (1, 1)
    assert Label.objects.filter(criterion__key="kind").count() == 800
    assert Consensus.objects.filter(criterion__key="kind").count() == 400
