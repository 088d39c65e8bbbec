"""The page of a run's knowledge gaps: disagreements that the judge reached without an article."""

from dataclasses import dataclass

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape

from evaluation.models.judges import JudgePrompt
from evaluation.models.prompts import (
    ArticleVersion,
    KnowledgeArticle,
    KnowledgeSnapshot,
    PromptVersion,
    SnapshotItem,
)
from evaluation.models.runs import ModelCall, Passage, Run, Unit, UnitCall, Verdict
from labeling.models.rubric import Criterion
from tests.factories.compared_runs import HUMAN, JUDGE, SPLITS, Compared, add_chats, text_of
from tests.factories.rows import make_set

pytestmark = pytest.mark.django_db

Cells = list[tuple[str, str]]


@dataclass(frozen=True)
class Read:
    """The compared run, as one of a judge that reads knowledge: one unit a chat, all criteria in it."""

    compared: Compared
    article: ArticleVersion

    @property
    def url(self) -> str:
        return reverse("alignment:knowledge_gaps", args=[self.compared.run.pk])

    def unit(self, n: int) -> Unit:
        return Unit.objects.get(run=self.compared.run, chat__external_id=f"chat-{n}")

    def found(self, key: str, *numbers: int) -> None:
        """A passage was found for a criterion of these chats before the run finished, which is now."""
        criterion = Criterion.objects.get(key=key)
        Passage.objects.bulk_create(
            Passage(
                unit=self.unit(n),
                criterion=criterion,
                article_version=self.article,
                rank=1,
                start=0,
                end=4,
                score=1.0,
            )
            for n in numbers
        )
        Run.objects.update(finished_at=timezone.now())

    def answered(
        self, n: int, reply: str, *, role: str = "direct", step: int = 1, window: int = 0, sample: int = 0
    ) -> None:
        """Store the answer of a role on a chat."""
        key = f"{n}{role}{step}/{window}/{sample}"
        call = ModelCall.objects.create(
            key=key, endpoint="e", model="m", role=role, settings={}, parts=[], reply=reply
        )
        UnitCall.objects.create(
            unit=self.unit(n), call=call, role=role, step=step, window=window, sample=sample
        )


def make_read(compared: Compared, *, mode: str, engine: str = "direct") -> Read:
    """Every criterion but `welcome` may read an article."""
    run = compared.run
    snapshot = KnowledgeSnapshot.objects.create(content_hash="s")
    tips = KnowledgeArticle.objects.create(key="tips")
    article = ArticleVersion.objects.create(
        article=tips, number=1, title="Tips", text="Tips.", content_hash="t"
    )
    for criterion in compared.criteria:
        prompt = PromptVersion.objects.create(criterion=criterion, number=1, text="p", content_hash="p")
        JudgePrompt.objects.create(
            judge=run.judge,
            criterion=criterion,
            criterion_version=criterion.versions.get(),
            prompt_version=prompt,
            group=0,
        )
        if criterion.key != "welcome":
            SnapshotItem.objects.create(snapshot=snapshot, criterion=criterion, article_version=article)
    keys = [[criterion.key, "", "", criterion.tier] for criterion in compared.criteria]
    run.judge.config = {"knowledge": {"mode": mode}, "groups": [{"engine": engine, "criteria": keys}]}
    run.judge.snapshot = snapshot
    run.judge.save()
    read = Read(compared, article)
    add_units(read)
    return read


def add_units(read: Read) -> None:
    """A finished unit for every chat without one."""
    run = read.compared.run
    known = Unit.objects.filter(run=run).values("chat")
    for chat in run.run_chats.exclude(chat__in=known).values_list("chat_id", flat=True):
        unit = Unit.objects.create(
            run=run, chat_id=chat, group=0, state=Unit.State.DONE, finished_at=timezone.now()
        )
        Verdict.objects.filter(run=run, chat_id=chat).update(unit=unit)


@pytest.fixture
def retrieved(compared: Compared) -> Read:
    return make_read(compared, mode="retrieved")


@pytest.fixture
def static(compared: Compared) -> Read:
    return make_read(compared, mode="static")


def differing(*keys: str, to: int = 40, splits: tuple[str, ...] = SPLITS) -> Cells:
    return sorted(
        (f"chat-{n}", key)
        for n in range(1, to + 1)
        for key in keys
        if HUMAN[key](n) != JUDGE[key](n) and SPLITS[n % 4] in splits
    )


def listed(page) -> Cells:
    keys = {"Wrong fact": "wrong_fact", "Polite": "polite", "Welcome": "welcome"}
    found = [(item.chat_id, keys[item.criterion]) for item in page.context["items"]]
    assert [number(cell) for cell in found] == sorted(number(cell) for cell in found)  # the set's order
    return sorted(found)


def number(cell: tuple[str, str]) -> int:
    return int(cell[0].removeprefix("chat-"))


# ---------- retrieved ----------


def test_disagreements_for_which_nothing_was_found_are_listed(retrieved: Read, lead: Client) -> None:
    wanted = differing("wrong_fact", "polite")
    page = lead.get(retrieved.url)
    assert listed(page) == wanted
    retrieved.found("polite", *(number(cell) for cell in differing("polite")))
    assert listed(lead.get(retrieved.url)) == differing("wrong_fact")
    assert "Disagreements without a retrieved passage" in text_of(page)


def test_a_simple_criterion_that_may_read_no_article_lacks_none(retrieved: Read, lead: Client) -> None:
    assert "welcome" not in {key for _, key in listed(lead.get(retrieved.url))}
    Criterion.objects.filter(key="welcome").update(tier="context")  # it ought to read some
    assert set(differing("welcome")) <= set(listed(lead.get(retrieved.url)))


def test_without_disagreements_there_is_no_gap(retrieved: Read, lead: Client) -> None:
    Verdict.objects.filter(run=retrieved.compared.run, criterion__key="polite").update(value=None)
    assert listed(lead.get(retrieved.url)) == differing("wrong_fact")


# ---------- True verdicts without a passage ----------


def silent_true(read: Read, *numbers: int, key: str = "polite") -> None:
    """The judge said True on these chats and found no passage, before the run finished, which is now."""
    Verdict.objects.filter(
        run=read.compared.run, criterion__key=key, chat__external_id__in=[f"chat-{n}" for n in numbers]
    ).update(value=True, flags=["true_without_passage"])
    Run.objects.update(finished_at=timezone.now())


def test_a_true_without_a_passage_is_a_gap_even_where_raters_agree(retrieved: Read, lead: Client) -> None:
    agreed = [n for n in range(1, 41) if HUMAN["polite"](n) and JUDGE["polite"](n)][:2]
    silent_true(retrieved, *agreed)
    page = lead.get(retrieved.url)
    assert [one.chat_id for one in page.context["silent"]] == [f"chat-{n}" for n in agreed]
    assert "2 True verdicts without a passage" in text_of(page)
    alone = lead.get(retrieved.url + "?criterion=wrong_fact")
    assert alone.context["silent"] == []


def test_a_true_without_a_passage_shows_authors_no_holdout_chat(retrieved: Read, author: Client) -> None:
    silent_true(retrieved, *range(1, 41))
    shown = {
        SPLITS[int(one.chat_id.removeprefix("chat-")) % 4]
        for one in author.get(retrieved.url).context["silent"]
    }
    assert shown == {"train", "dev"}


# ---------- static ----------


def test_disagreements_whose_rationale_names_no_article_are_listed(static: Read, lead: Client) -> None:
    (first, second, third, *_) = differing("polite")
    static.answered(number(first), "polite\nRude. Knowledge: **none**\n\nwrong_fact\n`knowledge: tips`")
    static.answered(number(second), "polite\nRude, knowledge: `tips`.\n\nwrong_fact\nknowledge: none")
    static.answered(number(third), "polite\nknowledge: nonesuch")
    expected = [first, *(cell for cell in differing("wrong_fact") if number(cell) == number(second))]
    page = lead.get(static.url)
    assert listed(page) == sorted(expected)
    assert "used no article" in text_of(page)


def test_a_simple_criterion_without_articles_may_name_none(static: Read, lead: Client) -> None:
    (first, *_) = differing("welcome")
    static.answered(number(first), "welcome\nknowledge: none")
    assert listed(lead.get(static.url)) == []


def test_agreement_without_knowledge_is_no_gap(static: Read, lead: Client) -> None:
    agreed = next(n for n in range(1, 41) if (f"chat-{n}", "polite") not in differing("polite"))
    static.answered(agreed, "polite\nknowledge: none")
    assert listed(lead.get(static.url)) == []


def test_in_a_debate_the_judges_word_counts_and_not_an_advocates(compared: Compared, lead: Client) -> None:
    read = make_read(compared, mode="static", engine="debate")
    (first, second, *_) = differing("polite")
    read.answered(number(first), "polite\nknowledge: none", role="customer")
    read.answered(number(first), "polite\nknowledge: tips", role="judge")
    read.answered(number(second), "polite\nknowledge: none", role="judge")
    assert listed(lead.get(read.url)) == [second]


def test_of_samples_and_windows_the_answer_that_the_verdict_was_taken_from_counts(
    static: Read, lead: Client
) -> None:
    (first, second, *_) = differing("polite")
    Verdict.objects.filter(run=static.compared.run, criterion__key="polite").update(
        flags=["from_sample:1", "windows:2", "from_window:1"]
    )
    for cell, standing, other in ((first, "none", "tips"), (second, "tips", "none")):
        static.answered(number(cell), f"polite\nknowledge: {other}")
        static.answered(number(cell), f"polite\nknowledge: {other}", window=1)
        static.answered(number(cell), f"polite\nknowledge: {standing}", window=1, sample=1)
    assert listed(lead.get(static.url)) == [first]


# ---------- the page ----------


def test_the_report_leads_to_the_gaps_and_keeps_split_and_ground_truth(retrieved: Read, lead: Client) -> None:
    query = "?split=dev&against=rater%3Acleo"
    report = lead.get(reverse("alignment:report_run", args=[retrieved.compared.run.pk]) + query)
    assert f'href="{escape(retrieved.url + query)}"' in text_of(report)
    page = lead.get(retrieved.url + query)
    assert page.context["report_url"].endswith(query)
    assert {SPLITS[number(cell) % 4] for cell in listed(page)} == {"dev"}


def test_an_author_sees_the_number_of_gaps_on_holdout_chats_only(retrieved: Read, author: Client) -> None:
    make_set(retrieved.compared.rubric, retrieved.compared.chat(5), name="gold", split="holdout")
    page = author.get(retrieved.url)
    wanted = [
        cell for cell in differing("wrong_fact", "polite", splits=("dev", "train")) if cell[0] != "chat-5"
    ]
    assert listed(page) == wanted
    # The single chat of dev that is held out elsewhere is not even counted: the figure would tell of it.
    assert page.context["hidden"] == len(differing("wrong_fact", "polite", splits=("holdout",))) > 0
    alone = author.get(retrieved.url + "?split=holdout")
    assert listed(alone) == []
    assert "They are on holdout chats" in text_of(alone)


def test_a_rater_finds_no_such_page(retrieved: Read, rater_user) -> None:
    client = Client()
    client.force_login(rater_user)
    assert client.get(retrieved.url).status_code == 404


def test_without_a_gap_the_page_says_so(static: Read, lead: Client) -> None:
    assert "No knowledge gaps" in text_of(lead.get(static.url))


def test_a_judge_that_reads_no_knowledge_has_none_to_miss(compared: Compared, lead: Client) -> None:
    url = reverse("alignment:knowledge_gaps", args=[compared.run.pk])
    assert "No knowledge in use" in text_of(lead.get(url))
    report = lead.get(reverse("alignment:report_run", args=[compared.run.pk]))
    assert url not in text_of(report)


@pytest.mark.heavy
@pytest.mark.parametrize("mode", ["retrieved", "static"])
def test_the_number_of_queries_does_not_grow_with_chats(compared: Compared, lead: Client, mode: str) -> None:
    read = make_read(compared, mode=mode)

    def queries() -> int:
        lead.get(read.url)  # what is kept is looked up once
        with CaptureQueriesContext(connection) as captured:
            lead.get(read.url)
        return len(captured)

    before = queries()
    add_chats(compared, to=200)
    add_units(read)
    assert queries() == before
