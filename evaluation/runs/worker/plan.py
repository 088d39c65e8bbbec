"""Loads what a worker needs for a run: the judge's groups as engines need them, and the endpoint."""

from dataclasses import replace
from typing import Any, cast

from django.conf import settings

from common.problems import OPERATOR, InputProblem
from evaluation.core.types import Article, Criterion, Example, Sampling, Setup, Tier, Windows
from evaluation.endpoints.queries import profiles_at
from evaluation.gateway.current import (
    EndpointGone,
    current_endpoint,
    endpoint_at,
    prices_at,
)
from evaluation.gateway.endpoints import Endpoint, endpoint_name
from evaluation.judges.core.fingerprint import has_current_texts
from evaluation.models.endpoints import ConnectedEndpoint
from evaluation.models.judges import Judge, JudgePrompt
from evaluation.models.prompts import SnapshotItem
from evaluation.models.runs import Run
from evaluation.prompts.queries.examples import examples_of
from evaluation.runs.worker.process_units import Group, Plan
from labeling.models.people import Workspace


class EndpointChanged(InputProblem):
    """The settings name a different endpoint than the run's judge."""


def texts_problem(run: Run) -> str:
    """Return why a run cannot go on if its judge was made with earlier fixed texts; "" if it was not."""
    if has_current_texts(run.judge.config):
        return ""
    advice = "start a new run"
    if run.state in (Run.State.RUNNING, Run.State.PAUSED):
        advice += "; cancel this one to keep its verdicts"
    return f"run {run.pk} began with earlier texts of the judge's prompts, which an upgrade changed: {advice}"


def texts_check(run: Run) -> None:
    """Raise InputProblem if the run's judge was made with earlier fixed texts: never mix both in one run."""
    if problem := texts_problem(run):
        raise InputProblem(problem)


def run_endpoints(run: Run) -> list[Endpoint]:
    """Return the endpoints of a run's judge, its own first: one run never mixes the answers of others.

    Raises EndpointChanged where one is gone, and KeyUnreadable.
    """
    found = []
    for endpoint in run.judge.endpoints:
        try:
            found.append(endpoint_at(endpoint))
        except EndpointGone as gone:
            raise _changed(run, endpoint, gone) from gone
    return found


def _changed(run: Run, begun: str, gone: EndpointGone) -> InputProblem:
    """Return why a run cannot go on: its endpoint was the server's own, or was removed or disabled."""
    try:
        own = current_endpoint()
    except InputProblem as problem:
        return problem
    if ConnectedEndpoint.objects.filter(address=begun).exists():
        return EndpointChanged(f"run {run.pk}: {gone}")
    names = f"run {run.pk} began at {endpoint_name(begun)}, but the server is set to {endpoint_name(own.id)}"
    if own.embedded and begun.startswith("embedded:"):
        names = f"run {run.pk} began with another endpoint: an older file of the embedded model"
    return EndpointChanged(
        f"{names}. Ask {OPERATOR} to set the endpoint back and restart the workers, or start a new run",
        settings=("OPENAI_BASE_URL", "OPENAI_API_KEY"),
    )


def resume_check(run: Run) -> None:
    """Raise InputProblem if a run must not go on: other texts of the prompts, or another endpoint, by now.

    Answers of both would be mixed in one run. Also raises what current_endpoint raises.
    """
    texts_check(run)
    run_endpoints(run)


def plan_load(run: Run, *, max_in_flight: int | None = None) -> Plan:
    """Return the plan of a run.

    Raises EndpointChanged, EndpointError, PriceFileError or EmbeddedModelMissing.
    """
    endpoint, *others = run_endpoints(run)
    prompts = list(run.judge.prompts.select_related("criterion", "criterion_version", "prompt_version"))
    in_flight = max_in_flight or int(run.options.get("max_in_flight") or settings.LACE_MAX_IN_FLIGHT)
    plan = plan_without_run(
        endpoint=endpoint,
        groups=judge_groups(run.judge, prompts),
        max_in_flight=in_flight,
        others=tuple(others),
    )
    return replace(
        plan,
        run_id=run.pk,
        replicate=run.replicate,
        samples=run.judge.config.get("samples", 1),
        audit=float(run.options.get("audit") or 0),
        fingerprint=run.judge.fingerprint,
        began=run.units_done > 0,
        budget_usd=run.budget_usd,
        criterion_ids={prompt.criterion.key: prompt.criterion_id for prompt in prompts},
    )


def plan_without_run(
    *,
    endpoint: Endpoint,
    groups: dict[int, Group],
    max_in_flight: int,
    others: tuple[Endpoint, ...] = (),
) -> Plan:
    """Return what asking an endpoint needs: limits, time-outs, prices and profiles of the groups' models.

    Raises PriceFileError or EmbeddedModelMissing.
    """
    plan = Plan(
        run_id=0,
        replicate=0,
        groups=groups,
        criterion_ids={},
        fence_secret=bytes(Workspace.current().fence_secret),
        endpoint=endpoint,
        prices={},
        max_in_flight=max(one.slots(max_in_flight) for one in (endpoint, *others)),
        timeout=float(settings.LACE_REQUEST_TIMEOUT),
        reasoning_timeout=float(settings.LACE_REASONING_TIMEOUT),
        others=others,
        broker_url=settings.CELERY_BROKER_URL,
    )
    plan.prices.update(prices_at(plan.models))
    plan.profiles.update(profiles_at(plan.models))
    return plan


def judge_groups(judge: Judge, prompts: list[JudgePrompt]) -> dict[int, Group]:
    """Return the judge's groups by number, as engines need them."""
    config, articles = judge.config, _articles(judge)
    examples = examples_of([prompt.prompt_version_id for prompt in prompts])
    grouped: dict[int, list[Criterion]] = {}
    for prompt in prompts:
        criterion = _criterion(
            prompt,
            articles=articles.get(prompt.criterion_id, ()),
            examples=examples.get(prompt.prompt_version_id, ()),
        )
        grouped.setdefault(prompt.group, []).append(criterion)
    return {
        number: Group(tuple(criteria), _setup(config, config["groups"][number]["engine"]))
        for number, criteria in grouped.items()
    }


def _criterion(
    prompt: JudgePrompt, *, articles: tuple[Article, ...], examples: tuple[Example, ...]
) -> Criterion:
    version = prompt.criterion_version
    return Criterion(
        key=prompt.criterion.key,
        question=version.question,
        definition=version.definition,
        tier=cast("Tier", prompt.criterion.tier),
        passes_when=version.passes_when,
        allow_na=version.allow_na,
        prompt=prompt.prompt_version.text,
        articles=articles,
        examples=examples,
    )


def _articles(judge: Judge) -> dict[int, tuple[Article, ...]]:
    """Return what each criterion may read, by criterion id, ordered by key."""
    articles: dict[int, tuple[Article, ...]] = {}
    items = SnapshotItem.objects.filter(snapshot=judge.snapshot_id or 0)
    for item in items.select_related("article_version__article").order_by("article_version__article__key"):
        row = item.article_version
        article = Article(row.article.key, row.number, row.title, row.text)
        articles[item.criterion_id] = (*articles.get(item.criterion_id, ()), article)
    return articles


def _setup(config: dict[str, Any], engine: Any) -> Setup:
    """Return an engine's setup; judges before schema 2 name fewer settings and had the defaults."""
    knowledge = config["knowledge"]
    return Setup(
        engine=engine,
        roles={role: Sampling(**sampling) for role, sampling in config["roles"].items()},
        layout=config["layout"],
        size=config["size"],
        role_in=config["role_in"],
        order_seed=config["order_seed"],
        samples=config.get("samples", 1),
        knowledge=knowledge["mode"],
        passage_tokens=knowledge.get("tokens", 0),
        embedding_model=knowledge.get("embedding_model", ""),
        windows=_windows(config.get("windows")),
        ablation=config.get("ablation", ""),
    )


def _windows(config: dict[str, Any] | None) -> Windows | None:
    if config is None:
        return None
    return Windows(tokens=config["tokens"], overlap=config["overlap"], rule=config["rule"])
