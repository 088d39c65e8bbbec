"""Dashboard, alert rules and docs name only metrics that the site exports, with their labels."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.http.request import validate_host
from prometheus_client.parser import text_string_to_metric_families

from lace_site.watch.metrics import exposition
from lace_site.watch.pages_timed import page_timed

pytestmark = pytest.mark.django_db
ROOT: Path = settings.BASE_DIR
DASHBOARD = json.loads((ROOT / "deploy/grafana/lace.json").read_text("utf-8"))
RULES = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text("utf-8"))["groups"][0]["rules"]
EXAMPLE = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text("utf-8"))
DOCS = (ROOT / "docs/watch.md").read_text("utf-8")
NAME = re.compile(r"\b(lace_[a-z_]+)\b")
# Families that need a call or an answer before they have a sample.
LABELS = {
    "lace_calls": {"endpoint", "model", "outcome"},
    "lace_tokens": {"endpoint", "model", "kind"},
    "lace_cost_usd": {"endpoint", "model"},
    "lace_endpoint_circuit_open": {"endpoint", "model"},
    "lace_http_request_seconds": {"route", "method", "le"},
    "lace_http_responses": {"route", "method", "status"},
}


@pytest.fixture
def exported() -> dict[str, set[str]]:
    """Every exported family with its labels."""
    page_timed(route="home", method="GET", status=200, seconds=0.1)
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(exposition().decode()):
        found[family.name] = {label for one in family.samples for label in one.labels} or LABELS.get(
            family.name, set()
        )
    return found


def family(name: str) -> str:
    """The family of a sample's name."""
    return re.sub(r"_(total|bucket|count|sum|created)$", "", name)


def expressions() -> list[str]:
    panels = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
    return [*panels, *(rule["expr"] for rule in RULES)]


def test_dashboard_and_rules_name_only_exported_metrics(exported: dict[str, set[str]]) -> None:
    names = {name for one in expressions() for name in NAME.findall(one)}
    assert len(names) > 15
    assert {family(name) for name in names} <= set(exported)
    # The dashboard shows all there is.
    shown = {family(name) for one in expressions()[: -len(RULES)] for name in NAME.findall(one)}
    assert set(exported) - shown == set()


def test_selectors_use_labels_that_the_metric_has(exported: dict[str, set[str]]) -> None:
    for one in expressions():
        assert one.count("(") == one.count(")")
        for name, selector in re.findall(r"\b(lace_[a-z_]+)\{([^}]*)\}", one):
            used = set(re.findall(r"(\w+)\s*[!=]~?", selector))
            assert used <= exported[family(name)] | {"job", "instance"}, one


def test_counters_are_read_by_their_exported_name(exported: dict[str, set[str]]) -> None:
    text = exposition().decode()
    counters = set(re.findall(r"^# TYPE (\S+) counter$", text, re.M))
    for one in expressions():
        for name in NAME.findall(one):
            if family(name) + "_total" in counters:
                assert name.endswith("_total"), one


def test_panels_fill_the_grid_without_overlap() -> None:
    cells: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place: dict[str, Any] = panel["gridPos"]
        own = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not own & cells, panel["title"]
        assert place["x"] + place["w"] <= 24
        cells |= own
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_every_rule_has_a_severity_a_summary_and_a_row_in_the_docs() -> None:
    names = [rule["alert"] for rule in RULES]
    assert re.findall(r"^\| `(Lace\w+)`", DOCS, re.M) == names
    for rule in RULES:
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"]


def test_the_docs_name_every_metric_and_no_other(exported: dict[str, set[str]]) -> None:
    documented = {family(name) for name in re.findall(r"`(lace_[a-z_]+)`", DOCS)}
    assert documented == set(exported)


def test_the_example_reads_the_rules_and_sends_a_token() -> None:
    assert EXAMPLE["rule_files"] == ["alerts.yml"]
    (job,) = EXAMPLE["scrape_configs"]
    assert job["job_name"] == "lace"
    assert "credentials_file" in job["authorization"]


def test_the_example_for_a_cluster_asks_web_pods_by_a_name_that_they_answer_to() -> None:
    text = (ROOT / "deploy/prometheus/kubernetes.yml").read_text("utf-8")
    (job,) = yaml.safe_load(text)["scrape_configs"]
    keep, rename = job["relabel_configs"]
    web = yaml.safe_load((ROOT / "deploy/kubernetes/web.yaml").read_text("utf-8").split("---")[0])
    pod = web["spec"]["template"]
    assert pod["metadata"]["labels"]["app.kubernetes.io/component"] == keep["regex"]
    assert keep["source_labels"] == ["__meta_kubernetes_pod_label_app_kubernetes_io_component"]
    found = re.fullmatch(rename["regex"], "10.1.20.3")
    assert found
    host, _, port = found.expand(rename["replacement"].replace("$", "\\")).partition(":")
    (name,) = re.findall(r"(?m)^# ALLOWED_HOSTS .*: lace\.example\.org,(\S+)$", text)
    assert host == "10-1-20-3.lace.pod.cluster.local" and validate_host(host, [name])
    assert int(port) == pod["spec"]["containers"][0]["ports"][0]["containerPort"]
    assert job["http_headers"] == {"X-Forwarded-Proto": {"values": ["https"]}}
