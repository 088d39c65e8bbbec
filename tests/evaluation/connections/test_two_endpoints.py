"""Several endpoints side by side: each role of a judge asks its own, with its prices and limits."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest
from pytest_django import Settings

from common.problems import InputProblem
from evaluation.connections.services import (
    Connection,
    EndpointInUse,
    endpoint_change,
    endpoint_connect,
    endpoint_enable,
    endpoint_remove,
)
from evaluation.gateway.current import EndpointGone, endpoint_id
from evaluation.gateway.keys import Secret
from evaluation.judges.core.spec import JudgeSpec
from evaluation.judges.queries.configs import judge_endpoint
from evaluation.judges.queries.profiles import profile_choice
from evaluation.judges.services.judges import judge_ensure
from evaluation.judges.services.profiles import ProfileRefused, endpoint_use_by_default, profile_save
from evaluation.models.endpoints import ConnectedEndpoint
from evaluation.models.judges import EndpointModel
from evaluation.models.runs import Attempt, ModelCall, Run
from evaluation.runs.services.estimates import estimate_for
from evaluation.runs.services.runs import RunChoice, RunRefused, run_start
from evaluation.runs.worker.execute import run_execute
from evaluation.runs.worker.plan import EndpointChanged, plan_load, resume_check
from labeling.models.chats import ChatSet
from labeling.models.rubric import Criterion
from tests.factories.runs import MODEL, always, answering, verdicts_of, workspace
from tests.stub_endpoint import Answer, StubEndpoint

pytestmark = pytest.mark.django_db(transaction=True)
ADVOCATES = ("customer", "support")


@contextmanager
def endpoint(answer: Answer, *, name: str = "Office", **more: Any) -> Iterator[tuple[StubEndpoint, str]]:
    """A connected endpoint with a server behind it, and its id."""
    with StubEndpoint(answer) as stub:
        more = {"models": ("office-model",), "key": Secret("office-key-0123456789"), **more}
        row = endpoint_connect(choice=Connection(name=name, address=stub.base_url, **more), by=None)
        yield stub, row.address


def debate(address: str) -> JudgeSpec:
    """The advocates at this endpoint, the judge and the formatter at the server's own."""
    return JudgeSpec(
        "debate",
        endpoints=dict.fromkeys(ADVOCATES, address),
        models=dict.fromkeys(ADVOCATES, "office-model"),
    )


def started(chat_set: ChatSet, choice: JudgeSpec, **run: Any) -> Run:
    return run_start(chat_set=chat_set, judge=choice, run=RunChoice(**run), endpoint=judge_endpoint(choice))


def test_the_roles_of_a_debate_ask_their_own_endpoints_with_their_own_keys(settings: Settings) -> None:
    chat_set = workspace(chats=2)
    with answering(settings, always(True)) as own, endpoint(always(True)) as (office, address):
        run = started(chat_set, debate(address))
        run_execute(run, on_unit=lambda failed: None)
    assert run.state == Run.State.DONE
    assert set(verdicts_of(run).values()) == {("read", True)}
    assert {body["model"] for body in own.requests} == {MODEL}
    assert {body["model"] for body in office.requests} == {"office-model"}
    assert (len(own.requests), len(office.requests)) == (2, 4)
    assert {one.headers["Authorization"] for one in office.seen} == {"Bearer office-key-0123456789"}
    assert not any("office-key" in one.headers.get("Authorization", "") for one in own.seen)
    calls = dict(ModelCall.objects.values_list("role", "endpoint"))
    assert calls["customer"] == calls["support"] == address
    assert calls["judge"] == run.judge.config["endpoint"] != address
    assert run.judge.endpoints == [run.judge.config["endpoint"], address]


def test_the_fingerprint_holds_the_endpoints_of_the_roles(settings: Settings) -> None:
    chat_set = workspace()
    criteria = list(Criterion.objects.select_related("dimension"))
    with answering(settings, always(True)), endpoint(always(True)) as (_, address):
        plain = JudgeSpec("debate", models=dict.fromkeys(ADVOCATES, "office-model"))
        judges = [
            judge_ensure(choice=choice, criteria=criteria, endpoint=judge_endpoint(choice), by=None)
            for choice in (plain, debate(address), debate(address))
        ]
    assert chat_set.pk
    assert judges[0].fingerprint != judges[1].fingerprint == judges[2].fingerprint


def test_each_endpoint_has_its_own_prices(settings: Settings) -> None:
    chat_set = workspace(chats=1)
    prices = {"office-model": {"input": "100", "output": "0"}}
    with answering(settings, always(True)), endpoint(always(True), prices=prices) as (_, address):
        choice = JudgeSpec("direct", endpoint=address)
        estimate = estimate_for(
            chat_set=chat_set, judge=choice, run=RunChoice(), endpoint=judge_endpoint(choice)
        )
        assert estimate.price_sources == ["Office"]
        run = started(chat_set, choice, budget_usd=Decimal(50))
        run_execute(run, on_unit=lambda failed: None)
        attempt = Attempt.objects.get()
        assert attempt.cost_usd == Decimal(attempt.prompt_tokens or 0) / 10_000 > 0
        # The same name elsewhere has no price.
        with pytest.raises(InputProblem, match="a budget needs a price"):
            started(chat_set, JudgeSpec("direct", model="office-model"), budget_usd=Decimal(50))


def test_its_limits_hold_and_the_servers_do_not(settings: Settings) -> None:
    chat_set = workspace(chats=6)
    settings.LACE_REQUESTS_PER_MINUTE = 7
    with answering(settings, always(True)), endpoint(always(True), max_in_flight=2) as (office, address):
        run = started(chat_set, JudgeSpec("direct", endpoint=address))
        plan = plan_load(run)
        assert (plan.max_in_flight, plan.endpoint.requests_per_minute) == (2, None)
        run_execute(run, on_unit=lambda failed: None)
    assert run.state == Run.State.DONE and office.most_in_flight <= 2


def test_what_a_model_refuses_is_learned_for_its_endpoint_alone(settings: Settings) -> None:
    chat_set = workspace(chats=1)
    with answering(settings, always(True)), endpoint(always(True)) as (_, address):
        EndpointModel.objects.create(endpoint=address, model="office-model", learned={"temperature": False})
        run = started(chat_set, JudgeSpec("direct", endpoint=address))
        profiles = plan_load(run).profiles
    assert {at.endpoint: profile.temperature for at, profile in profiles.items()} == {address: False}


def test_an_endpoint_in_use_is_neither_disabled_removed_nor_moved(settings: Settings) -> None:
    chat_set = workspace()
    with answering(settings, always(True)), endpoint(always(True)) as (_, address):
        run, row = started(chat_set, debate(address)), ConnectedEndpoint.objects.get()
        with pytest.raises(EndpointInUse, match=f"run {run.pk} uses it and is running"):
            endpoint_enable(endpoint=row, enabled=False, by=None)
        with pytest.raises(EndpointInUse):
            endpoint_remove(endpoint=row, by=None)
        moved = Connection(name="Office", address="https://other.test/v1", key=Secret("another"))
        with pytest.raises(EndpointInUse):
            endpoint_change(endpoint=row, choice=moved, by=None)
        Run.objects.update(state=Run.State.DONE)
        profile_save(name="Mixed", choice=debate(address))
        with pytest.raises(EndpointInUse, match="the judge profile Mixed uses it"):
            endpoint_remove(endpoint=row, by=None)
        endpoint_enable(endpoint=row, enabled=False, by=None)
        with pytest.raises(EndpointGone, match="Office is disabled"):
            judge_endpoint(debate(address))


def test_a_run_whose_endpoint_is_gone_does_not_go_on_elsewhere(settings: Settings) -> None:
    chat_set = workspace()
    with answering(settings, always(True)), endpoint(always(True)) as (office, address):
        run = started(chat_set, JudgeSpec("direct", endpoint=address))
        ConnectedEndpoint.objects.update(enabled=False)
        with pytest.raises(EndpointChanged, match="Office is disabled"):
            resume_check(run)
        ConnectedEndpoint.objects.all().delete()
        with pytest.raises(EndpointChanged, match="began at"):
            run_execute(run, on_unit=lambda failed: None)
        assert office.count == 0


def test_profiles_follow_an_endpoint_to_its_new_address(settings: Settings) -> None:
    with answering(settings, always(True)), endpoint(always(True)) as (_, address):
        profile = profile_save(name="Mixed", choice=debate(address))
        choice = Connection(name="Office", address="https://Other.test/v1/", key=Secret("another-key"))
        endpoint_change(endpoint=ConnectedEndpoint.objects.get(), choice=choice, by=None)
        profile.refresh_from_db()
        assert set(profile_choice(profile).endpoints.values()) == {"https://other.test/v1"}
        assert endpoint_id("Office") == endpoint_id("https://other.test/v1") == "https://other.test/v1"


def test_a_batch_needs_one_endpoint_that_has_batches(settings: Settings) -> None:
    chat_set = workspace()
    with answering(settings, always(True)), endpoint(always(True)) as (_, address):
        with pytest.raises(RunRefused, match="Office has no Batch API"):
            started(chat_set, JudgeSpec("direct", endpoint=address), mode=Run.Mode.BATCH)
        with pytest.raises(RunRefused, match="several endpoints"):
            started(chat_set, debate(address), mode=Run.Mode.BATCH)


def test_a_role_elsewhere_needs_a_model(settings: Settings) -> None:
    with answering(settings, always(True)), endpoint(always(True)) as (_, address):
        choice = JudgeSpec("debate", endpoints={"judge": address})
        with pytest.raises(InputProblem, match="choose its model"):
            judge_endpoint(choice)


def test_an_endpoint_used_by_default_is_asked_where_nobody_names_one(settings: Settings) -> None:
    with endpoint(always(True)) as (_, address):
        row = ConnectedEndpoint.objects.get(address=address)
        profile = endpoint_use_by_default(endpoint=row, by=None)
        choice = profile_choice(profile)
        assert (profile.is_default, judge_endpoint(choice).id, choice.model) == (
            True,
            address,
            "office-model",
        )
        endpoint_enable(endpoint=row, enabled=False, by=None)
        row.refresh_from_db()
        with pytest.raises(ProfileRefused, match="enable it first"):
            endpoint_use_by_default(endpoint=row, by=None)
