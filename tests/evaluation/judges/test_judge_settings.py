"""A judge's recipe reaches each role as chosen; older judges and profiles keep their meaning."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from evaluation.core.types import Role, Setup, Windows
from evaluation.gateway.current import current_endpoint
from evaluation.gateway.endpoints import Endpoint, resolve_endpoint
from evaluation.judges.core.spec import JudgeSpec, spec_to_json
from evaluation.judges.queries.configs import groups_of, model_of
from evaluation.judges.queries.profiles import profile_choice
from evaluation.judges.services.judges import judge_ensure
from evaluation.knowledge.services import knowledge_import
from evaluation.models.judges import Judge, JudgeProfile
from evaluation.models.prompts import CriterionArticle, FewShotExample, KnowledgeArticle, PromptVersion
from evaluation.runs.services.runs import RunChoice, run_start
from evaluation.runs.worker.execute import run_execute
from evaluation.runs.worker.plan import judge_groups
from labeling.models.chats import ChatSet
from labeling.models.rubric import Criterion
from tests.factories.rows import make_chat, make_criterion, make_rubric
from tests.factories.runs import (
    always,
    answering,
    by_role,
    evaluate,
    formatted,
    rubric_of,
    the_run,
    workspace,
)
from tests.stub_endpoint import Body

pytestmark = pytest.mark.django_db

ENDPOINT = resolve_endpoint(base_url="http://localhost:8001/v1", api_key="")
EMBEDDED = Endpoint(id="embedded:abc", base_url="", api_key="", embedded=True)
DEBATE = JudgeSpec(
    engine="debate",
    model="strong",
    formatter="clerk",
    models={"customer": "o3", "support": "cheap"},
    temperatures={"support": 0.9, "customer": 0.9},
    efforts={"customer": "high", "support": "high"},
)
SCHEMA_1 = ("ablation", "windows")


@pytest.fixture
def criteria() -> list[Criterion]:
    return list(rubric_of("polite", "wrong_fact").criteria.select_related("dimension"))


def setup_of(criteria: list[Criterion], choice: JudgeSpec) -> Setup:
    judge = judge_ensure(choice=choice, criteria=criteria, endpoint=ENDPOINT, by=None)
    groups = judge_groups(judge, list(judge.prompts.all()))
    return groups[0].setup


def start(chat_set: ChatSet, choice: JudgeSpec, *, audit: float = 0.0) -> None:
    run = run_start(chat_set=chat_set, judge=choice, run=RunChoice(audit=audit), endpoint=current_endpoint())
    run_execute(run, on_unit=lambda failed: None)


def text_of(body: Body) -> str:
    return "\n".join(message["content"] for message in body["messages"])


def of_duty(bodies: list[Body], duty: str) -> Body:
    (found,) = [body for body in bodies if f"# Your duty: {duty}\n" in text_of(body)]
    return found


# each role


def test_models_temperatures_and_efforts_go_by_role(criteria: list[Criterion]) -> None:
    roles = setup_of(criteria, DEBATE).roles
    assert {role: sampling.model for role, sampling in roles.items()} == {
        "customer": "o3",
        "support": "cheap",
        "judge": "strong",
        "formatter": "clerk",
    }
    assert (roles["customer"].temperature, roles["customer"].reasoning_effort) == (None, "high")
    assert (roles["support"].temperature, roles["support"].reasoning_effort) == (0.9, "high")
    assert (roles["customer"].max_tokens, roles["support"].max_tokens) == (24_100, 100)


def test_a_judge_is_known_by_the_models_that_reason(criteria: list[Criterion]) -> None:
    judge = judge_ensure(choice=replace(DEBATE, samples=3), criteria=criteria, endpoint=ENDPOINT, by=None)
    assert judge.name == "debate × 3, strong + o3 + cheap"
    assert judge.model == "strong + o3 + cheap"


def test_formatter_is_the_roles_model_then_the_choices_then_the_settings(settings: Settings) -> None:
    settings.LACE_REASONING_MODEL, settings.LACE_FORMATTER_MODEL = "big", "small"

    def formatter(**given: Any) -> str:
        return model_of("formatter", choice=JudgeSpec("direct", **given), endpoint=ENDPOINT)

    assert formatter(models={"formatter": "mine"}, formatter="theirs") == "mine"
    assert formatter(formatter="theirs") == "theirs"
    assert formatter() == "small"
    settings.LACE_FORMATTER_MODEL = ""
    assert formatter(model="chosen") == "chosen"


def test_grouping_by_itself_asks_the_embedded_model_one_criterion_a_call(criteria: list[Criterion]) -> None:
    for grouping, groups in (("auto", 2), ("rubric", 1)):
        choice = JudgeSpec("direct", grouping=grouping)  # type: ignore[arg-type]
        judge = judge_ensure(choice=choice, criteria=criteria, endpoint=EMBEDDED, by=None)
        assert len(judge.config["groups"]) == groups
    assert (
        len(judge_ensure(choice=DEBATE, criteria=criteria, endpoint=ENDPOINT, by=None).config["groups"]) == 1
    )


@pytest.mark.parametrize(
    ("recipe", "debated"),
    [
        ({"engine": "auto", "auto_debates": "context_subjective"}, ["context", "subjective"]),
        ({"engine": "auto", "auto_debates": "context"}, ["context"]),
        ({"engine": "auto"}, ["context"]),  # stored before the rule was a setting
        (spec_to_json(JudgeSpec("auto")), ["context", "subjective"]),
    ],
)
@pytest.mark.django_db
def test_auto_debates_the_tiers_that_the_recipe_names(recipe: dict[str, Any], debated: list[str]) -> None:
    rubric = make_rubric()
    tiers = [make_criterion(tier, rubric=rubric, tier=tier) for tier in ("simple", "context", "subjective")]
    choice = profile_choice(JudgeProfile(name="mine", config=recipe))
    groups = groups_of(choice=choice, endpoint=ENDPOINT, criteria=tiers)
    assert [key for engine, keys in groups if engine == "debate" for key in keys] == debated
    assert {engine for engine, _ in groups} == {"direct", "debate"}


def test_embedded_model_answers_every_role() -> None:
    choice = JudgeSpec("debate", model="gpt", models={"judge": "o3"})
    models = {model_of(role, choice=choice, endpoint=EMBEDDED) for role in ("judge", "customer", "formatter")}
    assert len(models) == 1
    assert not models & {"gpt", "o3"}


def test_beside_a_model_that_reasons_the_formatter_is_a_cheap_one_of_the_vendor(settings: Settings) -> None:
    settings.LACE_REASONING_MODEL = settings.LACE_FORMATTER_MODEL = ""
    openai = resolve_endpoint(base_url="https://api.openai.com/v1", api_key="k")
    dear, own = JudgeSpec("direct", model="o3"), JudgeSpec("direct", model="o3", formatter="gpt-4o")
    assert model_of("formatter", choice=dear, endpoint=openai) == "gpt-4.1-mini"
    assert model_of("formatter", choice=own, endpoint=openai) == "gpt-4o"
    assert model_of("formatter", choice=dear, endpoint=ENDPOINT) == "o3"  # no cheap one is known there


@pytest.mark.django_db(transaction=True)
def test_each_role_of_a_debate_asks_its_own_model_over_http(settings: Settings) -> None:
    chat_set = workspace("polite", chats=1)
    with answering(settings, always(True)) as stub:
        start(chat_set, DEBATE)
    bodies = [of_duty(stub.requests, duty) for duty in ("the customer's brief", "the bot's brief", "judge")]
    assert [body["model"] for body in bodies] == ["o3", "cheap", "strong"]
    assert [body.get("temperature") for body in bodies] == [None, 0.9, 0.0]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("role_in", "place"), [("user", 1), ("system", 0)])
def test_duty_is_where_the_recipe_says(settings: Settings, role_in: Any, place: int) -> None:
    chat_set = workspace("polite", chats=1)
    with answering(settings, always(True)) as stub:
        start(chat_set, JudgeSpec("direct", role_in=role_in))
    (body,) = stub.requests
    places = [n for n, message in enumerate(body["messages"]) if "# Your duty: review" in message["content"]]
    assert places == [place]


@pytest.mark.django_db(transaction=True)
def test_layout_says_what_comes_first(settings: Settings) -> None:
    chat_set = workspace("polite", chats=1)
    with answering(settings, always(True)) as stub:
        start(chat_set, JudgeSpec("direct", layout="chat_first"))
        start(chat_set, JudgeSpec("direct", layout="auto"))
    texts = [text_of(body) for body in stub.requests]
    order = [text.index("## Criterion `polite`") > text.index("In case c0") for text in texts]
    assert order == [True, False]


# what a plan holds


def test_plan_holds_samples_windows_knowledge_and_ablation(criteria: list[Criterion]) -> None:
    setup = setup_of(
        criteria,
        replace(
            DEBATE,
            samples=3,
            windows=Windows(tokens=900, overlap=2, rule="last_decides"),
            knowledge="retrieved",
            passage_tokens=700,
            ablation="no_briefs",
        ),
    )
    assert (setup.samples, setup.knowledge, setup.passage_tokens) == (3, "retrieved", 700)
    assert setup.windows == Windows(tokens=900, overlap=2, rule="last_decides")
    assert (setup.ablation, setup.role_in) == ("no_briefs", "user")


@pytest.mark.parametrize("mode", ["static", "retrieved"])
def test_plan_pins_the_articles_that_are_shown_or_searched(
    criteria: list[Criterion], tmp_path: Path, mode: Any
) -> None:
    (tmp_path / "payment.md").write_text("# Payment\n\nShoppers pay by card.\n")
    knowledge_import(folder=tmp_path)
    CriterionArticle.objects.create(criterion=criteria[0], article=KnowledgeArticle.objects.get())
    judge = judge_ensure(
        choice=JudgeSpec("direct", knowledge=mode), criteria=criteria, endpoint=ENDPOINT, by=None
    )
    (tmp_path / "payment.md").write_text("# Payment\n\nNobody pays.\n")
    knowledge_import(folder=tmp_path)
    (group,) = judge_groups(judge, list(judge.prompts.all())).values()
    assert [len(criterion.articles) for criterion in group.criteria] == [1, 0]
    assert "by card" in group.criteria[0].articles[0].text


def test_plan_holds_the_prompts_worked_examples(criteria: list[Criterion]) -> None:
    judge_ensure(choice=JudgeSpec("direct"), criteria=criteria, endpoint=ENDPOINT, by=None)
    turns = [("user", "Where is it?"), ("assistant", "Dunno.\nAsk."), ("user", "Rude."), ("assistant", "Hm.")]
    chat = make_chat(messages=turns)
    FewShotExample.objects.create(
        prompt_version=PromptVersion.objects.get(criterion=criteria[0]),
        position=1,
        chat=chat,
        first_turn=2,
        last_turn=3,
        value=False,
        rationale="It shrugs.",
    )
    judge = judge_ensure(choice=JudgeSpec("direct"), criteria=criteria, endpoint=ENDPOINT, by=None)
    (group,) = judge_groups(judge, list(judge.prompts.all())).values()
    (example,) = group.criteria[0].examples
    assert example.excerpt == "m02 bot| Dunno.\nm02 bot| Ask.\nm03 customer| Rude."
    assert (example.content_hash, example.value) == (chat.content_hash, False)
    assert example.rationale == "It shrugs."
    assert group.criteria[1].examples == ()


@pytest.mark.django_db(transaction=True)
def test_a_chat_never_sees_itself_as_an_example(settings: Settings) -> None:
    chat_set = workspace("polite", chats=2)
    with answering(settings, always(True)) as stub:
        evaluate("--set", chat_set.name, "--engine", "direct")
        FewShotExample.objects.create(
            prompt_version=PromptVersion.objects.get(),
            position=1,
            chat=chat_set.members.get(chat__external_id="c0").chat,
            first_turn=2,
            last_turn=2,
            value=True,
            rationale="Kind to a fault.",
        )
        first = stub.count
        assert evaluate("--set", chat_set.name, "--engine", "direct").code == 0
    (other,) = stub.requests[first:]  # the example's own chat is asked as before, so its answer is known
    assert "In case c1:" in text_of(other)
    assert "Kind to a fault." in text_of(other)


def test_judges_made_before_schema_2_load_with_what_they_had(criteria: list[Criterion]) -> None:
    judge = judge_ensure(choice=JudgeSpec("direct", model="m"), criteria=criteria, endpoint=ENDPOINT, by=None)
    judge.config = _as_schema_1(judge)
    (group,) = judge_groups(judge, list(judge.prompts.all())).values()
    assert group.setup == setup_of(criteria, JudgeSpec("direct", model="m"))


def _as_schema_1(judge: Judge) -> dict[str, Any]:
    """The config as the first schema had it."""
    config = {name: value for name, value in judge.config.items() if name not in SCHEMA_1}
    roles: Mapping[Role, dict[str, Any]] = config["roles"]
    later = ("reasoning_effort", "logprobs")
    plain = {
        role: {name: value for name, value in sampling.items() if name not in later}
        for role, sampling in roles.items()
    }
    return {**config, "schema": 1, "roles": plain}


# profiles


def test_judge_names_the_profile_that_it_first_came_from(criteria: list[Criterion]) -> None:
    choice = JudgeSpec("direct")
    plain = judge_ensure(choice=choice, criteria=criteria, endpoint=ENDPOINT, by=None)
    assert plain.profile is None
    first, second = (JudgeProfile.objects.create(name=name, config={}) for name in ("first", "second"))
    for profile in (first, second):
        same = judge_ensure(choice=choice, criteria=criteria, endpoint=ENDPOINT, profile=profile, by=None)
        assert (same, same.profile) == (plain, first)


@pytest.mark.django_db(transaction=True)
def test_share_to_audit_is_the_runs_and_not_the_judges(settings: Settings) -> None:
    chat_set = workspace("polite", chats=2)
    answer = by_role(reasoning=always(True), formatter=lambda body: formatted({"polite": "false"}))
    with answering(settings, answer) as stub:
        for share in (0.0, 1.0):
            start(chat_set, JudgeSpec("direct"), audit=share)
    assert Judge.objects.count() == 1
    assert stub.count == 3  # two chats with the same prose, which is audited once
    found = [(verdict.value, verdict.flags) for verdict in the_run().verdicts.all()]
    assert found == [(True, ["audit_contradicts"])] * 2
