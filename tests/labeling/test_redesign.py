"""Redesigning criteria: what ends, what takes its place, what carries over, and what never changes."""

import uuid
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from labeling.core.problems import FieldProblem
from labeling.core.redesign import Redesign
from labeling.models.chats import Chat
from labeling.models.labels import Adjudication, Consensus, Label, LabelRevision
from labeling.models.people import AuditEvent, Rater, User
from labeling.models.rubric import Criterion, CriterionLineage, Dimension
from labeling.selectors.labels import answers_of, criteria_of
from labeling.selectors.lineage import lineage_of, retired_criteria
from labeling.selectors.redesign import consequences, redesigned
from labeling.services.labelling import label_save
from labeling.services.redesign import criteria_redesign, criterion_bring_back
from labeling.services.submitting import assignment_submit
from tests.factories import make_criterion, make_rubric
from tests.files import run, write_json
from tests.labeling.desk import Desk, answer_all, grow, make_desk
from tests.labeling.redesigns import carried_out, decide, give, redesign, successor, values
from tests.labeling.test_guidelines import reword

pytestmark = pytest.mark.django_db

KEYS = ("polite", "brief", "correct")


@pytest.fixture
def desk() -> Desk:
    return make_desk(chats=3, raters=2, overlap=2, keys=KEYS)


def criterion(key: str) -> Criterion:
    return Criterion.objects.get(key=key)


def order() -> list[str]:
    active = Criterion.objects.filter(state="active").order_by("position")
    return list(active.values_list("key", flat=True))


def agreed(key: str) -> set[tuple[int, str, str, int]]:
    rows = Consensus.objects.filter(criterion__key=key)
    return set(rows.values_list("chat_id", "state", "by", "n_true"))


SPLIT = redesign("split", "polite", into=(successor("greets", "polite"), successor("thanks")))
MERGE = redesign("merge", "polite", "brief", into=(successor("kind", "polite", "brief"),))


# ---------- retiring and bringing back ----------


def test_a_retired_criterion_keeps_labels_drafts_and_jobs_and_is_asked_no_more(
    desk: Desk, lead_user: User
) -> None:
    answer_all(done := desk.taken())
    assignment_submit(assignment=done, rater=desk.rater)
    answer_all(open_one := desk.taken())
    before = Label.objects.count(), LabelRevision.objects.count()
    criteria_redesign(redesign=redesign("retire", "polite"), reason=" Nobody needs it ", by=lead_user)
    assert criterion("polite").state == "retired"
    assert (Label.objects.count(), LabelRevision.objects.count()) == before
    assert [row.key for row in criteria_of(desk.job)] == ["brief", "correct"]
    assert desk.job.criteria.filter(key="polite").exists()
    assignment_submit(assignment=open_one, rater=desk.rater)
    assert Label.objects.get(chat=open_one.chat, criterion__key="polite").state == "draft"
    event = AuditEvent.objects.get(verb="criterion retired")
    assert (event.actor, event.detail) == (lead_user, {"criterion": "polite", "reason": "Nobody needs it"})


def test_brought_back_it_is_asked_again_with_its_drafts(desk: Desk, lead_user: User) -> None:
    answer_all(mine := desk.taken())
    carried_out(redesign("retire", "polite"))
    criterion_bring_back(criterion=criterion("polite"), reason="After all", by=lead_user)
    asked = criteria_of(desk.job)
    assert [row.key for row in asked] == list(KEYS)
    assert answers_of(assignment=mine, criteria=asked).keys() == set(KEYS)
    assert AuditEvent.objects.get(verb="criterion reactivated").actor == lead_user


def test_what_is_active_cannot_be_brought_back_nor_anything_without_a_reason(desk: Desk) -> None:
    with pytest.raises(FieldProblem, match="polite is not retired"):
        criterion_bring_back(criterion=criterion("polite"), reason="Why", by=None)
    with pytest.raises(FieldProblem, match="reason: is missing"):
        criterion_bring_back(criterion=criterion("polite"), reason=" ", by=None)


# ---------- what takes its place ----------


def test_a_split_puts_the_new_criteria_at_the_place_of_the_old_one(desk: Desk, lead_user: User) -> None:
    wanted = redesign("split", "brief", into=(successor("short"), successor("plain", tier="subjective")))
    done = criteria_redesign(redesign=wanted, reason="Two questions in one", by=lead_user)
    assert [row.key for row in done.new] == ["short", "plain"]
    assert order() == ["polite", "short", "plain", "correct"]
    plain = criterion("plain")
    version = plain.versions.get()
    assert (plain.rubric, plain.tier, version.number) == (desk.rubric, "subjective", 1)
    assert (version.question, version.reason) == ("Is plain so?", "Two questions in one")
    assert version.created_by == lead_user
    rows = CriterionLineage.objects.values_list("old__key", "new__key", "kind", "carries_labels", "reason")
    assert set(rows) == {("brief", new, "split", False, "Two questions in one") for new in ("short", "plain")}


def test_a_merge_ends_all_and_stands_where_the_first_stood(desk: Desk) -> None:
    carried_out(redesign("merge", "correct", "polite", into=(successor("fine"),)))
    assert order() == ["fine", "brief"]
    assert CriterionLineage.objects.filter(new__key="fine", kind="merge").count() == 2
    events = AuditEvent.objects.filter(verb="criterion merged").order_by("pk")
    assert [event.detail["criterion"] for event in events] == ["polite", "correct"]
    assert [event.detail["into"] for event in events] == [["fine"], ["fine"]]


def test_a_replacement_may_ask_with_the_other_polarity(desk: Desk) -> None:
    carried_out(redesign("replace", "polite", into=(successor("rude", passes_when=False, critical=True),)))
    assert criterion("rude").critical
    assert not criterion("rude").versions.get().passes_when
    assert order() == ["rude", "brief", "correct"]


@pytest.mark.parametrize(
    ("tier", "before", "reads"),
    [("simple", "listed", "listed"), ("simple", "all", "all"), ("context", "listed", "all")],
)
def test_the_new_one_reads_every_article_where_the_old_one_did_or_its_tier_asks_for_it(
    desk: Desk, tier: str, before: str, reads: str
) -> None:
    Criterion.objects.filter(key="polite").update(articles=before)
    carried_out(redesign("replace", "polite", into=(successor("kind", tier=tier),)))
    assert criterion("kind").articles == reads


def test_no_labelling_job_is_given_a_new_criterion(desk: Desk) -> None:
    carried_out(SPLIT)
    assert set(desk.job.criteria.values_list("key", flat=True)) == set(KEYS)
    assert [row.key for row in criteria_of(desk.job)] == ["brief", "correct"]


# ---------- what is refused ----------

REFUSED: dict[str, tuple[Redesign, str]] = {
    "a split into one": (
        redesign("split", "polite", into=(successor("a"),)),
        "into: a split takes 2 to 10 new questions, not 1",
    ),
    "a merge of one": (
        redesign("merge", "polite", "polite", into=(successor("a"),)),
        "with: a merge takes 2 to 10 criteria, not 1",
    ),
    "a retirement into something": (
        redesign("retire", "polite", into=(successor("a"),)),
        "into: a retire takes 0 new questions, not 1",
    ),
    "the same key twice": (
        redesign("split", "polite", into=(successor("a"), successor("a"))),
        "into[1].key: 'a' stands twice",
    ),
    "a key that is taken": (
        redesign("split", "polite", into=(successor("a"), successor("brief"))),
        "into[1].key: 'brief' is taken already",
    ),
    "its own key": (
        redesign("replace", "polite", into=(successor("polite"),)),
        "into[0].key: 'polite' is taken already",
    ),
    "what there is not": (redesign("retire", "posh"), "with: no criterion 'posh'"),
    "labels of another": (
        redesign("replace", "polite", into=(successor("a", "brief"),)),
        "into[0].carries: 'brief' does not end in this redesign",
    ),
    "labels without the lead's word": (
        redesign("replace", "polite", into=(successor("a", "polite"),), same=False),
        "same_answers: labels carry over only where True and False mean the same in both questions: "
        "say that they do",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_sense_is_refused_at_its_field_and_nothing_is_written(desk: Desk, name: str) -> None:
    wanted, message = REFUSED[name]
    with pytest.raises(FieldProblem) as caught:
        carried_out(wanted)
    assert str(caught.value) == message
    assert set(order()) == set(KEYS)
    assert not CriterionLineage.objects.exists()


def test_a_dimension_that_there_is_not_is_refused(desk: Desk) -> None:
    wanted = redesign("replace", "polite", into=(successor("a", dimension="answer_correctness"),))
    Dimension.objects.filter(key="answer_correctness").update(key="correctness")
    with pytest.raises(FieldProblem, match=r"into\[0\].dimension: no dimension 'answer_correctness'"):
        carried_out(wanted)


def test_a_second_redesign_of_the_same_criterion_is_refused(desk: Desk) -> None:
    carried_out(SPLIT)
    with pytest.raises(FieldProblem, match="with: polite is retired already"):
        carried_out(redesign("retire", "polite"))


def test_criteria_of_two_rubrics_do_not_merge(desk: Desk) -> None:
    make_rubric("other", name="Another")
    with pytest.raises(FieldProblem, match="belongs to another rubric"):
        carried_out(redesign("merge", "polite", "other", into=(successor("a"),)))


@pytest.mark.parametrize("reason", ["", "  ", "x" * 10_001])
def test_a_reason_is_needed_and_has_an_end(desk: Desk, reason: str) -> None:
    with pytest.raises(FieldProblem, match=r"^reason"):
        carried_out(SPLIT, reason=reason)


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


def test_a_merge_takes_equal_answers_once_and_leaves_those_that_differ(desk: Desk) -> None:
    polite, brief = desk.criteria[:2]
    mara, other = desk.raters
    give(desk.chats[0], polite, mara, True, rationale="Kind", evidence=[{"n": 2}])
    give(desk.chats[0], brief, mara, True, rationale="Short", evidence=[{"n": 2}, {"n": 1}])
    give(desk.chats[0], polite, other, True)
    give(desk.chats[0], brief, other, False)
    give(desk.chats[1], brief, other, False)
    done = carried_out(MERGE)
    assert values("kind") == {("chat-1", "mara"): True, ("chat-2", "rater-2"): False}
    label = Label.objects.get(criterion__key="kind", value=True)
    assert (label.rationale, label.evidence) == ("Kind\n\nShort", [{"n": 2}, {"n": 1}])
    assert (done.carried[0].labels.carried, done.carried[0].labels.conflicts) == (2, 1)


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


def test_decisions_in_force_carry_over_where_they_are_the_same(desk: Desk) -> None:
    polite, brief = desk.criteria[:2]
    decide(desk.chats[0], polite, True, reason="First")
    decide(desk.chats[0], brief, True, reason="Second", by_name="Otto")
    decide(desk.chats[1], polite, True)
    decide(desk.chats[1], brief, False)
    decide(desk.chats[2], polite, True, replaced_at=timezone.now())
    done = carried_out(MERGE)
    found = Adjudication.objects.get(criterion__key="kind")
    assert (found.chat, found.value, found.reason, found.by_name) == (desk.chats[0], True, "Second", "Otto")
    assert (done.carried[0].decisions.carried, done.carried[0].decisions.conflicts) == (1, 1)
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


# ---------- what it would do ----------


def test_the_preview_says_what_the_redesign_then_does(desk: Desk) -> None:
    polite, brief = desk.criteria[:2]
    for n, chat in enumerate(desk.chats):
        for rater in desk.raters:
            give(chat, polite, rater, True)
            give(chat, brief, rater, n > 0)
    decide(desk.chats[2], polite, True)
    found = consequences(redesign=MERGE, olds=redesigned(redesign=MERGE))
    assert (found.labels, found.decisions, found.drafts) == (12, 1, 0)
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


def test_the_preview_takes_the_same_statements_at_20_and_400_chats(desk: Desk) -> None:
    spent = []
    for chats in (20, 400):
        Label.objects.all().delete()
        labelled(desk, to=chats)
        with CaptureQueriesContext(connection) as queries:
            consequences(redesign=MERGE, olds=redesigned(redesign=MERGE))
        spent.append(len(queries))
    assert spent[0] == spent[1]


def test_a_batch_of_chats_is_read_in_one_statement(desk: Desk) -> None:
    labelled(desk, to=400)
    with CaptureQueriesContext(connection) as queries:
        carried_out(MERGE)
    read = [query["sql"] for query in queries if query["sql"].startswith('SELECT "labeling_label"."id"')]
    assert len(read) == 1
    assert Label.objects.filter(criterion__key="kind").count() == 800
    assert Consensus.objects.filter(criterion__key="kind").count() == 400


# ---------- reading it ----------


def test_lineage_tells_what_became_of_the_old_and_what_the_new_is_made_of(
    desk: Desk, lead_user: User
) -> None:
    criteria_redesign(redesign=MERGE, reason="Always the same answer", by=lead_user)
    old, new = lineage_of(criterion("polite")), lineage_of(criterion("kind"))
    assert (old.made_of, new.became, new.retired) == (None, (), None)
    assert new.made_of is not None
    assert old.became == (new.made_of,)
    step = new.made_of
    assert [(row.criterion.key, row.labels_carried) for row in step.olds] == [
        ("polite", True),
        ("brief", True),
    ]
    assert ([row.key for row in step.new], step.kind, step.by) == (["kind"], "merge", lead_user)
    assert old.retired is not None
    assert (old.retired.reason, old.retired.by) == ("Always the same answer", lead_user)


def test_a_criterion_split_twice_tells_both_splits(desk: Desk) -> None:
    carried_out(SPLIT)
    criterion_bring_back(criterion=criterion("polite"), reason="Too early", by=None)
    assert lineage_of(criterion("polite")).retired is None
    carried_out(redesign("split", "polite", into=(successor("warm"), successor("calm"))))
    steps = lineage_of(criterion("polite")).became
    assert [[row.key for row in step.new] for step in steps] == [["greets", "thanks"], ["warm", "calm"]]


def test_a_criterion_that_nobody_redesigned_has_nothing_to_tell(desk: Desk) -> None:
    assert not lineage_of(criterion("polite")).told


def test_retired_ones_are_listed_with_what_took_their_place(desk: Desk) -> None:
    carried_out(SPLIT)
    Criterion.objects.filter(key="brief").update(state="retired")
    with CaptureQueriesContext(connection) as queries:
        first, second = retired_criteria()
    assert len(queries) == 4
    assert (first.criterion.key, [row.key for row in first.became]) == ("polite", ["greets", "thanks"])
    assert first.version.question == "Is polite so?"
    assert first.retired is not None
    assert first.retired.reason == "Raters asked"
    assert (second.criterion.key, second.became, second.retired) == ("brief", (), None)


def test_the_rubrics_own_file_leaves_a_redesign_as_it_is(desk: Desk, tmp_path: Path) -> None:
    asked = {"key": "polite", "dimension": "compliance", "tier": "simple"}
    texts = {"question": "Is polite so?", "definition": "True when polite."}
    file = {"name": "Test rubric", "dimensions": [{"key": "compliance", "name": "Compliance"}]}
    path = write_json(tmp_path / "rubric.json", file | {"criteria": [asked | texts]})
    carried_out(SPLIT)
    assert run("import_rubric", path).document["unchanged"] == 1
    assert order() == ["greets", "thanks", "brief", "correct"]
    make_criterion("later", rubric=desk.rubric)
    assert criterion("polite").versions.count() == 1
