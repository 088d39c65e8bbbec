"""Metric rows for A/B platforms: pages that go on later, files, and the scope of a token."""

import csv
import io
from datetime import date, timedelta
from typing import Any

import pandas as pd
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import escape
from pyarrow import parquet

from alignment.experiments.core.parquet import metric_parquet
from alignment.models.experiments import ExperimentMetric
from evaluation.models.judges import Judge
from labeling.models.chats import ChatSetMember
from labeling.models.people import Role
from labeling.models.rubric import Rubric
from labeling.people.services.tokens import token_create
from tests.factories.experiments import UnitChats, counted, judged_night, units
from tests.factories.pages import page_text
from tests.factories.rows import make_rubric, make_set, make_user
from tests.factories.verdicts import make_judge

pytestmark = pytest.mark.django_db
MONDAY = date(2026, 11, 2)
COLUMNS = ["unit_id", "timestamp", "experiment_id", "variation_id", "metric", "value", "weight"]


@pytest.fixture
def rubric() -> Rubric:
    return make_rubric("polite", "brief")


@pytest.fixture
def judge(rubric: Rubric) -> Judge:
    return make_judge(rubric)


@pytest.fixture
def night(rubric: Rubric, judge: Judge) -> None:
    arms = {"a": units("a", passing=3, failing=1), "b": [UnitChats("", 1, 1)]}
    judged_night(MONDAY, arms, judge=judge, rubric=rubric, probability=0.5)
    counted()


class Platform:
    """A program with a token."""

    def __init__(self, *scopes: str, role: Role = Role.LEAD) -> None:
        user = make_user(f"{role}{'-'.join(scopes)}", role)
        secret = token_create(user=user, name="ab", scopes=scopes, days=None).secret
        self.client = Client(headers={"Authorization": f"Token {secret}"})

    def get(self, route: str = "api_experiment_metrics", *args: str, **query: Any) -> Any:
        return self.client.get(reverse(route, args=["greeting", *args]), query)

    def page(self, **query: Any) -> dict[str, Any]:
        answer = self.get(**query)
        assert answer.status_code == 200, answer.content
        found: dict[str, Any] = answer.json()
        return found

    def read(self, cursor: str = "0", size: int = 3) -> tuple[list[dict[str, Any]], str]:
        """All rows from a cursor on, and the cursor after them."""
        rows: list[dict[str, Any]] = []
        more = True
        while more:
            page = self.page(cursor=cursor, page_size=size)
            rows += page["results"]
            cursor, more = page["cursor"], page["has_more"]
        return rows, cursor

    def file(self, kind: str) -> bytes:
        answer = self.get("api_experiment_export", kind)
        assert answer.status_code == 200
        return b"".join(answer.streaming_content)


def test_a_row_has_the_shape_that_warehouses_read(night: None) -> None:
    rows = Platform("read_metrics").page()["results"]
    assert list(rows[0]) == COLUMNS
    first = next(row for row in rows if row["unit_id"] == "a3" and row["metric"] == "polite")
    assert first == {
        "unit_id": "a3",
        "timestamp": "2026-11-02T12:00:00Z",
        "experiment_id": "greeting",
        "variation_id": "a",
        "metric": "polite",
        "value": 0,
        "weight": 2.0,
    }
    assert len(rows) == 10
    own = {row["unit_id"] for row in rows if row["variation_id"] == "b"}
    assert all(unit.startswith("chat:") for unit in own)


def test_a_cursor_stays_right_while_rows_are_added_and_goes_on_from_the_end(
    night: None, rubric: Rubric, judge: Judge
) -> None:
    platform = Platform("read_metrics")
    first = platform.page(page_size=4)
    more = {"a": units("late", passing=2, failing=0)}
    judged_night(MONDAY - timedelta(days=9), more, judge=judge, rubric=rubric)  # older chats, newer rows
    counted()
    rest, end = platform.read(first["cursor"])
    everything, _ = platform.read()
    assert first["results"] + rest == everything
    assert len(everything) == len({(row["unit_id"], row["metric"]) for row in everything}) == 14
    assert platform.page(cursor=end) == {"results": [], "cursor": end, "has_more": False}
    judged_night(MONDAY, {"b": units("new", passing=1, failing=0)}, judge=judge, rubric=rubric)
    counted()
    later, _ = platform.read(end)
    assert {row["unit_id"] for row in later} == {"new0"}


@pytest.mark.parametrize("query", [{"cursor": "x"}, {"cursor": "-1"}, {"page_size": 20_000}, {"page": 2}])
def test_a_wrong_query_is_refused_by_name(night: None, query: dict[str, Any]) -> None:
    answer = Platform("read_metrics").get(**query)
    assert (answer.status_code, list(answer.json())) == (400, list(query))


def test_csv_and_parquet_hold_the_same_rows_as_the_pages(night: None) -> None:
    platform = Platform("read_metrics")
    expected = pd.DataFrame(platform.read()[0])
    expected["timestamp"] = pd.to_datetime(expected["timestamp"], utc=True).astype("datetime64[us, UTC]")
    table = pd.read_csv(io.BytesIO(platform.file("csv")), parse_dates=["timestamp"])
    table["timestamp"] = table["timestamp"].astype("datetime64[us, UTC]")
    pd.testing.assert_frame_equal(table, expected, check_dtype=False)
    whole = parquet.read_table(io.BytesIO(platform.file("parquet")))
    assert whole.column_names == COLUMNS
    pd.testing.assert_frame_equal(whole.to_pandas(), expected, check_dtype=False)


def test_an_experiment_without_rows_has_files_with_their_columns(rubric: Rubric, judge: Judge) -> None:
    arms = {"a": units("a", passing=1, failing=0)}
    judged_night(MONDAY, arms, judge=judge, rubric=rubric)
    counted()
    ExperimentMetric.objects.all().delete()
    platform = Platform("read_metrics")
    assert platform.file("csv").decode("utf-8-sig").split() == [",".join(COLUMNS)]
    assert parquet.read_table(io.BytesIO(platform.file("parquet"))).num_rows == 0


def test_parquet_comes_in_pieces_of_one_group_of_rows() -> None:
    stamp = pd.Timestamp("2026-11-02T12:00:00Z").to_pydatetime()
    row = dict(zip(COLUMNS, ("u", stamp, "x", "a", "polite", 1, 1.0), strict=True))
    taken: list[int] = []

    def rows() -> Any:
        for number in range(50_000):
            taken.append(number)
            yield row

    pieces = metric_parquet(rows())
    first = next(pieces)
    assert len(taken) == 20_000
    assert parquet.read_table(io.BytesIO(b"".join([first, *pieces]))).num_rows == 50_000


def test_a_token_for_metrics_opens_experiments_and_nothing_else(night: None) -> None:
    platform, other = Platform("read_metrics"), Platform("see_judge")
    assert platform.client.get(reverse("api_experiments")).json()["results"][0]["key"] == "greeting"
    assert platform.get("api_experiment").status_code == 200
    assert platform.client.get(reverse("api_monitoring")).status_code == 404
    url = reverse("api_experiment", args=["greeting"])
    assert platform.client.patch(url, {"alpha": 0.1}, content_type="application/json").status_code == 404
    assert other.get().status_code == 404
    assert Client().get(reverse("api_experiments")).status_code == 403


def test_holdout_chats_need_the_scope_for_them(night: None, rubric: Rubric) -> None:
    chat = ExperimentMetric.objects.filter(unit="a0").earliest("pk").chat
    ChatSetMember.objects.create(
        chat_set=make_set(rubric, name="secret"), chat=chat, split="holdout", position=1
    )
    assert len(Platform("read_metrics").read()[0]) == 8
    author = Platform("read_metrics", role=Role.AUTHOR)
    assert len(author.read()[0]) == 8
    assert len(Platform("read_metrics", "see_holdout").read()[0]) == 10
    file = author.file("parquet")
    assert parquet.read_table(io.BytesIO(file)).num_rows == 8


def test_a_page_takes_the_same_queries_for_more_rows(night: None, rubric: Rubric, judge: Judge) -> None:
    platform, taken = Platform("read_metrics"), []
    for n in range(2):
        platform.page()
        with CaptureQueriesContext(connection) as queries:
            platform.page()
        taken.append(len(queries))
        arms = {"a": units(f"more{n}", passing=40, failing=10)}
        judged_night(MONDAY, arms, judge=judge, rubric=rubric)
        counted()
    assert taken[0] == taken[1]


@pytest.mark.parametrize(
    "key",
    [
        "greeting/metrics",
        "bot/greeting v2",
        "metrics",
        "greeting/metrics.csv",
        "50% off?",
        "a #b&c=d",
        "ä+ö/…",
    ],
)
def test_whatever_its_key_an_experiment_has_addresses_and_a_page_of_its_own(
    key: str, night: None, rubric: Rubric, judge: Judge
) -> None:
    arms = {"a": units("x", passing=1, failing=0), "b": units("y", passing=1, failing=0)}
    judged_night(MONDAY, arms, judge=judge, rubric=rubric, experiment=key, probability=0.5)
    row, platform = counted(key), Platform("read_metrics")
    for name in (key, "greeting"):
        detail = platform.client.get(reverse("api_experiment", args=[name])).json()
        assert detail["key"] == name
        metrics = platform.client.get(reverse("api_experiment_metrics", args=[name])).json()
        assert {one["experiment_id"] for one in metrics["results"]} == {name}
        file = platform.client.get(reverse("api_experiment_export", args=[name, "csv"]))
        assert {line["experiment_id"] for line in csv.DictReader(_text(file))} == {name}
    lead = Client()
    lead.force_login(make_user("lead", Role.LEAD))
    assert escape(key) in page_text(lead.get(reverse("experiments:detail", args=[row.pk])))


def _text(file: Any) -> io.StringIO:
    return io.StringIO(b"".join(file.streaming_content).decode("utf-8-sig"))
