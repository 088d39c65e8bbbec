"""Which labels count: never those to two questions of one criterion together (R23)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pytest
from django.utils import timezone
from hypothesis import given, settings
from hypothesis import strategies as st

from labeling.consensus.services.consensus import consensus_follow, consensus_refresh
from labeling.models.labels import Adjudication, Consensus, Label
from labeling.models.rubric import Criterion, CriterionVersion
from labeling.transfer.services.labels import LabelsFile, labels_take
from tests.factories.rows import make_chat, make_criterion, make_rater, make_rubric
from tests.files import label as line
from tests.files import write_jsonl
from tests.world import rolled_back

pytestmark = pytest.mark.django_db


@dataclass(frozen=True)
class Answer:
    """A label: on which chat, by whom, to the version of which place, what, and whether it is given blind."""

    chat: int
    rater: int
    version: int
    value: bool | None
    blind: bool


ANSWERS = st.builds(
    Answer,
    chat=st.integers(0, 3),
    rater=st.integers(0, 2),
    version=st.integers(0, 5),
    value=st.sampled_from([True, False, None]),
    blind=st.sampled_from([True, True, True, False]),
)
QUESTIONS = st.sampled_from("ABC")


def question_that_counts(questions: str, answers: Iterable[Answer]) -> str:
    """The rule in plain words: of the questions with a blind label, the one asked last; '' = none."""
    answered = {questions[answer.version] for answer in answers if answer.blind}
    return max(answered, key=questions.rindex, default="")


class Bench:
    """A criterion, four chats, three raters; each label is also stored in the database."""

    def __init__(self) -> None:
        self.rubric = make_rubric("steady")
        self.criterion = make_criterion("polite", rubric=self.rubric, allow_na=True)
        CriterionVersion.objects.filter(criterion=self.criterion).delete()
        self.chats = [make_chat() for _ in range(4)]
        self.raters = [make_rater() for _ in range(3)]
        self.questions = ""
        self.answers: dict[tuple[int, int], Answer] = {}

    def ask(self, question: str) -> None:
        """Another version of the criterion."""
        self.questions += question
        version = CriterionVersion.objects.create(
            criterion=self.criterion,
            number=len(self.questions),
            question=question,
            definition="D.",
            content_hash=question,
            allow_na=True,
        )
        consensus_follow(version=version)

    def answer(self, answer: Answer, *, refresh: bool = True) -> None:
        """A label in place of the rater's earlier one."""
        answer = replace(answer, version=answer.version % len(self.questions))
        self.answers[answer.chat, answer.rater] = answer
        Label.objects.update_or_create(
            chat=self.chats[answer.chat],
            criterion=self.criterion,
            rater=self.raters[answer.rater],
            defaults={
                "version": self.criterion.versions.get(number=answer.version + 1),
                "value": answer.value,
                "state": "submitted",
                "post_reveal": not answer.blind,
                "given_at": timezone.now(),
            },
        )
        if refresh:
            consensus_refresh(criterion_ids=[self.criterion.pk], chat_ids=[self.chats[answer.chat].pk])

    def expected(self) -> list[Answer]:
        """The answers that count."""
        counting = question_that_counts(self.questions, self.answers.values())
        return [
            answer
            for answer in self.answers.values()
            if answer.blind and self.questions[answer.version] == counting
        ]

    def check_labels(self) -> None:
        """That just those are counted."""
        places = {(answer.chat, answer.rater) for answer in self.expected()}
        rows = Label.objects.counted().filter(criterion=self.criterion)
        found = {(self.chats.index(row.chat), self.raters.index(row.rater)) for row in rows}
        assert found == places

    def check_consensus(self) -> None:
        """That the stored counts of every chat are those of these labels."""
        votes = Counter((answer.chat, answer.value) for answer in self.expected())
        expected = {
            chat: tuple(votes[chat, value] for value in (True, False, None))
            for chat in {chat for chat, _ in votes}
        }
        rows = Consensus.objects.filter(criterion=self.criterion).exclude(n_true=0, n_false=0, n_na=0)
        found = {self.chats.index(row.chat): (row.n_true, row.n_false, row.n_na) for row in rows}
        assert found == expected


@given(questions=st.text("ABC", min_size=1, max_size=5), answers=st.lists(ANSWERS, max_size=8))
@settings(max_examples=40)
def test_only_labels_to_the_question_asked_last_that_has_any_are_counted(
    questions: str, answers: list[Answer]
) -> None:
    with rolled_back():
        bench = Bench()
        for question in questions:
            bench.ask(question)
        for answer in answers:
            bench.answer(answer, refresh=False)
        bench.check_labels()


@pytest.mark.heavy
@given(first=QUESTIONS, steps=st.lists(st.one_of(QUESTIONS, ANSWERS, ANSWERS, ANSWERS), max_size=10))
@settings(max_examples=40)
def test_the_consensus_of_every_chat_follows_the_question_that_counts(
    first: str, steps: list[str | Answer]
) -> None:
    with rolled_back():
        bench = Bench()
        bench.ask(first)
        for step in steps:
            if isinstance(step, Answer):
                bench.answer(step)
            else:
                bench.ask(step)
            bench.check_consensus()


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.ask("A")
    for chat in range(3):
        bench.answer(Answer(chat, 0, 0, value=True, blind=True))
    return bench


def agreed(bench: Bench) -> int:
    return Consensus.objects.filter(criterion=bench.criterion, state="true").count()


def test_a_rewording_alone_takes_no_label_away(bench: Bench) -> None:
    bench.ask("B")
    assert (agreed(bench), Label.objects.counted().count()) == (3, 3)


def test_from_the_first_answer_to_the_new_question_on_only_such_answers_count(bench: Bench) -> None:
    bench.ask("B")
    before = Criterion.objects.get(key="polite").labels_seq
    bench.answer(Answer(3, 1, 1, value=True, blind=True))
    assert [row.chat for row in Consensus.objects.filter(criterion=bench.criterion)] == [bench.chats[3]]
    assert Label.objects.counted().count() == 1
    assert Label.objects.given().count() == 4
    assert Criterion.objects.get(key="polite").labels_seq == before + 1


def test_the_labels_of_a_question_count_again_as_soon_as_it_is_asked_again(bench: Bench) -> None:
    bench.ask("B")
    bench.answer(Answer(3, 1, 1, value=True, blind=True))
    before = Criterion.objects.get(key="polite").labels_seq
    bench.ask("A")
    assert (agreed(bench), Label.objects.counted().count()) == (3, 3)
    assert Criterion.objects.get(key="polite").labels_seq == before + 1


def test_a_decision_counts_for_any_wording(bench: Bench) -> None:
    decided = {"by_name": "Ines", "reason": "r", "created_at": timezone.now()}
    Adjudication.objects.create(chat=bench.chats[0], criterion=bench.criterion, value=False, **decided)
    bench.ask("B")
    bench.answer(Answer(3, 1, 1, value=True, blind=True))
    row = Consensus.objects.get(chat=bench.chats[0], criterion=bench.criterion)
    assert (row.state, row.by, row.n_true) == ("false", "adjudication", 0)


def test_other_criteria_are_not_touched(bench: Bench) -> None:
    steady = bench.rubric.criteria.get(key="steady")
    Label.objects.create(
        chat=bench.chats[0],
        criterion=steady,
        rater=bench.raters[0],
        version=steady.versions.get(),
        value=True,
        state="submitted",
        given_at=timezone.now(),
    )
    bench.ask("B")
    bench.answer(Answer(3, 1, 1, value=True, blind=True))
    assert Label.objects.counted().filter(criterion=steady).count() == 1


def test_an_import_of_many_chats_makes_the_others_follow_too(
    bench: Bench, tmp_path: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    from labeling.consensus.services import consensus

    monkeypatch.setattr(consensus, "CHATS_AT_ONCE", 1)
    bench.ask("B")
    lines = [line(chat.external_id, rater="nora", value=False) for chat in bench.chats[2:]]
    labels_take(file=LabelsFile(write_jsonl(tmp_path / "new.jsonl", *lines)))  # type: ignore[operator]
    rows = Consensus.objects.filter(criterion=bench.criterion).values_list("chat", "state")
    assert sorted(rows) == [(chat.pk, "false") for chat in bench.chats[2:]]
