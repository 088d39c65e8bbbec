"""Whatever reaches a model changes the judge's fingerprint; nothing else does."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from evaluation.core.types import Windows
from evaluation.gateway.endpoints import Endpoint, resolve_endpoint
from evaluation.judges.core.sampling_defaults import default_sampling
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.queries import configs
from evaluation.judges.services.judges import judge_ensure
from evaluation.knowledge.core.retrieval import RETRIEVER
from evaluation.knowledge.services import knowledge_import
from evaluation.models.judges import Judge
from evaluation.models.prompts import (
    CriterionArticle,
    FewShotExample,
    KnowledgeArticle,
    Promotion,
    PromptVersion,
)
from evaluation.runs.worker.plan import judge_groups
from labeling.models.chats import ChatSet
from labeling.models.rubric import Criterion, CriterionVersion
from tests.factories.rows import make_chat, make_criterion, make_set
from tests.factories.runs import always, answering, evaluate, rubric_of, the_run

pytestmark = pytest.mark.django_db

ENDPOINT = resolve_endpoint(base_url="http://localhost:8001/v1", api_key="")
DIRECT = JudgeSpec(engine="direct", model="m-1")


@pytest.fixture
def criteria(tmp_path: Path) -> list[Criterion]:
    """Two criteria of one dimension; the second reads an article."""
    rubric = rubric_of("polite")
    second = make_criterion("wrong_fact", rubric=rubric, tier="simple", passes_when=False)
    write_article(tmp_path, "Shoppers pay by card.")
    CriterionArticle.objects.create(criterion=second, article=KnowledgeArticle.objects.get())
    return list(rubric.criteria.select_related("dimension"))


def write_article(folder: Path, text: str) -> None:
    (folder / "payment.md").write_text(f"# Payment\n\n{text}\n")
    knowledge_import(folder=folder)


def ensure(criteria: list[Criterion], choice: JudgeSpec = DIRECT, endpoint: Endpoint = ENDPOINT) -> Judge:
    return judge_ensure(choice=choice, criteria=criteria, endpoint=endpoint, by=None)


def new_text(criterion: Criterion, **changes: object) -> None:
    """The next version of a criterion's text."""
    newest = criterion.versions.latest("number")
    fields = ("question", "definition", "passes_when", "allow_na")
    text = {name: getattr(newest, name) for name in fields} | changes
    CriterionVersion.objects.create(
        criterion=criterion, number=newest.number + 1, content_hash=digest(repr(text)), **text
    )


def promote(criterion: Criterion, text: str) -> None:
    prompt = PromptVersion.objects.create(criterion=criterion, number=2, text=text, content_hash=digest(text))
    Promotion.objects.create(criterion=criterion, version=prompt)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


DEBATE = JudgeSpec(engine="debate", model="m-1")
RETRIEVED = replace(DIRECT, knowledge="retrieved")
THINKING = JudgeSpec(engine="direct", model="o4-mini")
IN_WINDOWS = replace(DIRECT, windows=Windows(tokens=1000))
# Two choices each that ask a model something else.
FURTHER: dict[str, tuple[JudgeSpec, JudgeSpec]] = {
    "samples": (DIRECT, replace(DIRECT, samples=3)),
    "a role's model": (DEBATE, replace(DEBATE, models={"customer": "m-2"})),
    "the formatter's model as a role's": (DIRECT, replace(DIRECT, models={"formatter": "m-2"})),
    "a role's temperature": (DIRECT, replace(DIRECT, temperatures={"direct": 0.3})),
    "a role's effort": (THINKING, replace(THINKING, efforts={"direct": "high"})),
    "role_in": (DIRECT, replace(DIRECT, role_in="system")),
    "layout": (DIRECT, replace(DIRECT, layout="chat_first")),
    "logprobs": (DIRECT, replace(DIRECT, logprobs=True)),
    "windows": (DIRECT, IN_WINDOWS),
    "a window's tokens": (IN_WINDOWS, replace(DIRECT, windows=Windows(tokens=999))),
    "a window's overlap": (IN_WINDOWS, replace(DIRECT, windows=Windows(tokens=1000, overlap=1))),
    "the windows' rule": (IN_WINDOWS, replace(DIRECT, windows=Windows(tokens=1000, rule="last_decides"))),
    "knowledge retrieved": (DIRECT, RETRIEVED),
    "passage tokens": (RETRIEVED, replace(RETRIEVED, passage_tokens=99)),
    "an embedding model": (RETRIEVED, replace(RETRIEVED, embedding_model="e-1")),
    "another embedding model": (
        replace(RETRIEVED, embedding_model="e-1"),
        replace(RETRIEVED, embedding_model="e-2"),
    ),
    "ablation": (DEBATE, replace(DEBATE, ablation="no_briefs")),
}
# Two choices each that ask every model the same.
SAME: dict[str, tuple[JudgeSpec, JudgeSpec]] = {
    "the settings' model by name": (
        JudgeSpec(engine="direct"),
        JudgeSpec(engine="direct", model="judge-model"),
    ),
    "the layout that auto takes": (DIRECT, replace(DIRECT, layout="criteria_first")),
    "passage tokens where nothing is retrieved": (DIRECT, replace(DIRECT, passage_tokens=99)),
    "an embedding model where nothing is retrieved": (DIRECT, replace(DIRECT, embedding_model="e-1")),
    "an ablation of briefs that nobody writes": (DIRECT, replace(DIRECT, ablation="no_briefs")),
    "a model for a role the engine has not": (DIRECT, replace(DIRECT, models={"judge": "m-2"})),
    "an effort for a model that takes none": (
        replace(DIRECT, model="grok-4"),
        replace(DIRECT, model="grok-4", efforts={"direct": "high"}),
    ),
    "a temperature for a model that takes none": (
        THINKING,
        replace(THINKING, temperatures={"direct": 0.3}),
    ),
    "logprobs of a model that gives none": (THINKING, replace(THINKING, logprobs=True)),
}
CHOICES = {
    "engine": replace(DIRECT, engine="debate"),
    "model": replace(DIRECT, model="m-2"),
    "formatter": replace(DIRECT, formatter="m-3"),
    "grouping": replace(DIRECT, grouping="criterion"),
    "knowledge mode": replace(DIRECT, knowledge="none"),
}
TEXTS: dict[str, Callable[[Criterion], None]] = {
    "prompt": lambda row: promote(row, "# Objective\nAnother way to ask."),
    "question": lambda row: new_text(row, question="Was it really so?"),
    "definition": lambda row: new_text(row, definition="True when it really was."),
    "passes_when": lambda row: new_text(row, passes_when=False),
    "allow_na": lambda row: new_text(row, allow_na=True),
}
VERSIONS = ("FENCE_VERSION", "READER_VERSION", "FORMATTER_SCHEMA_VERSION")
SAMPLING = (
    "temperature",
    "max_tokens",
    "max_tokens_per_criterion",
    "top_p",
    "seed",
    "reasoning_effort",
    "logprobs",
)


def test_the_same_ingredients_are_the_same_judge(criteria: list[Criterion]) -> None:
    first = ensure(criteria)
    assert ensure(criteria) == first
    assert Judge.objects.count() == 1
    assert first.prompts.count() == 2
    assert [len(group.criteria) for group in judge_groups(first, list(first.prompts.all())).values()] == [2]


@pytest.mark.parametrize("part", list(CHOICES))
def test_every_choice_that_reaches_a_model_changes_the_fingerprint(
    criteria: list[Criterion], part: str
) -> None:
    assert ensure(criteria, CHOICES[part]).fingerprint != ensure(criteria).fingerprint


@pytest.mark.parametrize("part", list(FURTHER))
def test_every_setting_of_the_recipe_that_reaches_a_model_changes_the_fingerprint(
    criteria: list[Criterion], part: str
) -> None:
    one, another = FURTHER[part]
    assert ensure(criteria, one).fingerprint != ensure(criteria, another).fingerprint


@pytest.mark.parametrize("part", list(SAME))
def test_settings_that_reach_no_model_do_not_change_it(
    settings: Settings, criteria: list[Criterion], part: str
) -> None:
    settings.LACE_REASONING_MODEL, settings.LACE_FORMATTER_MODEL = "judge-model", ""
    one, another = SAME[part]
    assert ensure(criteria, one) == ensure(criteria, another)


def test_the_retriever_changes_the_fingerprint_of_judges_that_retrieve(
    criteria: list[Criterion], monkeypatch: pytest.MonkeyPatch
) -> None:
    static, retrieved = ensure(criteria), ensure(criteria, RETRIEVED)
    monkeypatch.setattr(configs, "RETRIEVER", {**RETRIEVER, "k1": 99})
    assert ensure(criteria, RETRIEVED) != retrieved
    assert ensure(criteria) == static


def test_examples_change_the_fingerprint_by_whatever_of_them_is_shown(criteria: list[Criterion]) -> None:
    prints = [ensure(criteria).fingerprint]
    prompt = PromptVersion.objects.get(criterion=criteria[0])
    row = FewShotExample.objects.create(
        prompt_version=prompt,
        position=1,
        chat=make_chat(),
        first_turn=1,
        last_turn=2,
        value=True,
        rationale="It was so.",
    )
    prints.append(ensure(criteria).fingerprint)
    changes = {"chat": make_chat(), "last_turn": 1, "value": None, "rationale": "It was not so."}
    for name, value in changes.items():
        FewShotExample.objects.filter(pk=row.pk).update(**{name: value})
        prints.append(ensure(criteria).fingerprint)
    assert len(set(prints)) == len(prints)


@pytest.mark.parametrize("part", list(TEXTS))
def test_every_text_that_reaches_a_model_changes_the_fingerprint(
    criteria: list[Criterion], part: str
) -> None:
    before = ensure(criteria)
    TEXTS[part](criteria[0])
    after = ensure(criteria)
    assert after.fingerprint != before.fingerprint
    assert after.prompts.get(criterion=criteria[1]).prompt_version.number == 1


def test_an_articles_text_changes_the_fingerprint(criteria: list[Criterion], tmp_path: Path) -> None:
    before = ensure(criteria)
    write_article(tmp_path, "Shoppers pay with a company card.")
    after = ensure(criteria)
    assert after.fingerprint != before.fingerprint
    assert after.snapshot_id != before.snapshot_id
    assert before.snapshot is not None
    assert "by card" in before.snapshot.items.get().article_version.text


def test_the_endpoint_changes_the_fingerprint_and_its_key_does_not(criteria: list[Criterion]) -> None:
    before = ensure(criteria).fingerprint
    elsewhere = resolve_endpoint(base_url="http://localhost:8002/v1", api_key="")
    with_key = resolve_endpoint(base_url="http://LOCALHOST:8001/v1/", api_key="sk-another")
    assert ensure(criteria, endpoint=elsewhere).fingerprint != before
    assert ensure(criteria, endpoint=with_key).fingerprint == before


@pytest.mark.parametrize("name", VERSIONS)
def test_fence_reader_and_schema_versions_change_the_fingerprint(
    criteria: list[Criterion], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    before = ensure(criteria).fingerprint
    monkeypatch.setattr(configs, name, 99)
    assert ensure(criteria).fingerprint != before


def test_our_own_prompt_texts_change_the_fingerprint(
    criteria: list[Criterion], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = ensure(criteria).fingerprint
    monkeypatch.setattr(configs, "template_hash", lambda: "another wording")
    assert ensure(criteria).fingerprint != before


@pytest.mark.parametrize("field", SAMPLING)
def test_sampling_settings_change_the_fingerprint(
    criteria: list[Criterion], monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    before = ensure(criteria).fingerprint
    changed: dict[str, Any] = {field: 1}
    monkeypatch.setattr(
        configs, "default_sampling", lambda **given: replace(default_sampling(**given), **changed)
    )
    assert ensure(criteria).fingerprint != before


def another_set() -> ChatSet:
    chat_set = ChatSet.objects.select_related("rubric").get(name="calibration")
    return make_set(chat_set.rubric, make_chat(), make_chat(), name="another", split="holdout")


@pytest.mark.django_db(transaction=True)
def test_concurrency_price_set_split_limit_and_replicate_do_not_change_it(
    settings: Settings, tmp_path: Path
) -> None:
    make_set(rubric_of("polite"), make_chat(), make_chat())
    another_set()
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"judge-model": {"input": 1, "output": 2}}))
    args = ("--engine", "direct", "--set")
    with answering(settings, always(True)):
        evaluate(*args, "calibration")
        evaluate(*args, "calibration", "--max-in-flight", "1")
        evaluate(*args, "calibration", "--replicate", "3")
        evaluate(*args, "calibration", "--split", "dev", "--limit", "1")
        evaluate(*args, "another", "--split", "holdout")
        settings.LACE_PRICES, settings.LACE_REQUEST_TIMEOUT, settings.LACE_MAX_IN_FLIGHT = str(prices), 7, 2
        evaluate(*args, "another", "--replicate", "4")
    assert the_run().cost_usd is not None
    assert Judge.objects.count() == 1
    assert Judge.objects.get().runs.count() == 6
