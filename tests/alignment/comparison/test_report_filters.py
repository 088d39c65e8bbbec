"""Reports on one topic or period, and who may see them."""

from datetime import UTC, datetime

import pytest
from django.test import Client

from alignment.comparison.queries.requested_scope import requested_scope
from alignment.comparison.queries.scope import Scope
from alignment.models.reports import Report
from labeling.jobs.services import job_open
from labeling.models.chats import Chat, Topic
from labeling.models.people import Role, User
from labeling.people.services.roles import rater_for
from tests.factories.compared_runs import SPLITS, Compared, urls
from tests.factories.page_text import words_of
from tests.factories.rows import make_user

pytestmark = pytest.mark.django_db

REFUND = range(1, 21)
EARLY = range(11, 31)


@pytest.fixture
def parts(compared: Compared) -> Compared:
    """Forty chats: the first twenty about a refund, those from 11 to 30 in May, the others in June."""
    topic = Topic.objects.create(key="refund", name="Refund")
    refund, early = ([f"chat-{n}" for n in places] for places in (REFUND, EARLY))
    Chat.objects.filter(external_id__in=refund).update(topic=topic)
    Chat.objects.update(started_at=datetime(2026, 6, 1, tzinfo=UTC))
    Chat.objects.filter(external_id__in=early).update(started_at=datetime(2026, 5, 31, 23, 59, tzinfo=UTC))
    return compared


def covered(scope: Scope) -> list[int]:
    names = scope.members.values_list("chat__external_id", flat=True)
    return [int(name.removeprefix("chat-")) for name in names]


def asked(compared: Compared, user: User, **query: str) -> Scope:
    scope = requested_scope(compared.chat_set, compared.run, query, user)
    assert scope is not None
    return scope


@pytest.mark.parametrize(
    ("query", "places"),
    [
        ({"topic": "refund"}, set(REFUND)),
        ({"topic": "delivery"}, set(range(21, 41))),
        ({"until": "2026-05-31"}, set(EARLY)),
        ({"since": "2026-06-01"}, set(range(1, 41)) - set(EARLY)),
        ({"since": "2026-05-31", "until": "2026-06-01"}, set(range(1, 41))),
        ({"topic": "refund", "until": "2026-05-31"}, set(range(11, 21))),
        ({"topic": "refund", "split": "dev"}, {n for n in REFUND if SPLITS[n % 4] == "dev"}),
    ],
)
def test_a_part_covers_its_chats_alone(
    parts: Compared, lead_user: User, query: dict[str, str], places: set[int]
) -> None:
    assert set(covered(asked(parts, lead_user, **query))) == places


def test_a_chat_without_a_time_is_of_no_day(parts: Compared, lead_user: User) -> None:
    Chat.objects.filter(external_id="chat-1").update(started_at=None)
    assert 1 not in covered(asked(parts, lead_user, since="2000-01-01"))
    assert 1 in covered(asked(parts, lead_user))


@pytest.mark.parametrize(
    "query", ["topic=nonsense", "since=yesterday", "until=2026-02-31", "since=2026-06-01T00:00"]
)
def test_nonsense_is_not_found_and_named_by_the_api(parts: Compared, lead: Client, query: str) -> None:
    assert lead.get(f"{urls(parts)['report']}?{query}").status_code == 404
    answer = lead.get(f"{urls(parts)['api_run']}?{query}")
    assert (answer.status_code, list(answer.json())) == (400, [query.partition("=")[0]])


def test_each_part_is_a_report_of_its_own_that_names_it(parts: Compared, lead: Client) -> None:
    url = urls(parts)["api_run"]
    whole, part = lead.get(url).json(), lead.get(f"{url}?topic=refund&until=2026-05-31").json()
    assert (whole["chats"], whole["topic"], whole["until"]) == (40, None, None)
    assert (part["chats"], part["topic"], part["until"]) == (10, "refund", "2026-05-31")
    assert lead.get(f"{url}?topic=refund&until=2026-05-31").json() == part
    assert not Report.objects.exists()


def test_the_page_keeps_the_part_on_the_way_to_cells_and_lists(parts: Compared, lead: Client) -> None:
    answer = lead.get(f"{urls(parts)['report']}?topic=refund&since=2026-05-01")
    shown = answer.content.decode()
    assert 'value="refund" selected' in shown
    assert 'name="since" value="2026-05-01"' in " ".join(shown.split())
    assert "disagreements/?topic=refund&amp;since=2026-05-01" in shown
    items = lead.get(f"{urls(parts)['disagreements']}?topic=refund").context["items"]
    assert {int(item.chat_id.removeprefix("chat-")) for item in items} <= set(REFUND)


def test_an_author_sees_parts_without_the_holdout(parts: Compared, author_user: User) -> None:
    assert len(covered(asked(parts, author_user))) == 40
    for query in ({"topic": "refund"}, {"since": "2026-06-01"}):
        scope = asked(parts, author_user, **query)
        assert scope.without_holdout
        assert not {n for n in covered(scope) if SPLITS[n % 4] == "holdout"}


def test_a_rater_with_chats_left_to_label_sees_the_whole(parts: Compared, client: Client) -> None:
    user = make_user("both", Role.LEAD, Role.RATER)
    client.force_login(user)
    assert asked(parts, user, topic="refund").topic == "refund"
    job_open(
        chat_set=parts.chat_set,
        name="June",
        criteria=parts.criteria,
        raters=[rater_for(user=user)],
        overlap=1,
        by=None,
    )
    scope = asked(parts, user, topic="refund")
    assert (scope.topic, scope.kept_whole) == ("", True)
    told = "Filters are off, and the whole report is shown, until you have labelled your own chats in it"
    for name in ("report", "set", "criterion report", "cell", "disagreements", "gaps"):
        assert told in words_of(client.get(f"{urls(parts)[name]}?topic=refund"))
        assert told not in words_of(client.get(urls(parts)[name]))
