"""The OpenAPI document: valid, and each component keeps its own name."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from labeling.models.people import User
from tests.world import make_world


def test_the_document_is_valid_and_component_names_are_unique(tmp_path: Path) -> None:
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "schema.yml"))


def document() -> dict[str, Any]:
    return dict(SchemaGenerator().get_schema(request=None, public=True))


def test_a_list_in_pages_is_described_as_a_page_with_its_parameters() -> None:
    paths, described = document()["paths"], set()
    for operation in (path["get"] for path in paths.values() if "get" in path):
        schema = (
            operation["responses"]["200"].get("content", {}).get("application/json", {}).get("schema", {})
        )
        if "Paginated" in schema.get("$ref", ""):
            names = {one["name"] for one in operation["parameters"] if one["in"] == "query"}
            assert names & {"cursor", "page", "offset"}, operation["operationId"]
            described.add(operation["operationId"])
    assert {"jobs", "runs", "labels", "adjudication_queue", "misalignments", "regressions"} <= described
    assert {"criterion_versions", "rubric_guidelines", "prompt_versions", "notes"} <= described


@pytest.mark.parametrize("name", ["set", "chat_id"])
def test_a_name_has_one_meaning_in_the_whole_document(name: str) -> None:
    whole = document()
    parts = [part.get("properties", {}) for part in whole["components"]["schemas"].values()]
    types = {part[name]["type"] for part in parts if name in part}
    operations = [one for path in whole["paths"].values() for one in path.values()]
    parameters = [one for operation in operations for one in operation.get("parameters", ())]
    types |= {one["schema"]["type"] for one in parameters if one["name"] == name}
    assert types == {"string"}


@pytest.mark.django_db
@pytest.mark.sweep
def test_every_get_refuses_an_unknown_parameter_by_name(everybody: User) -> None:
    world, client = make_world(), Client()
    client.force_login(everybody)
    asked = 0
    for address, operations in document()["paths"].items():
        if "get" not in operations:
            continue
        values = {one: world.args.get(one, 1) for one in re.findall(r"{(\w+)}", address)}
        answer = client.get(address.format(**values) + "?nonsense=1")
        assert (answer.status_code, list(answer.json())) == (400, ["nonsense"]), address
        assert "'nonsense'" in answer.json()["nonsense"][0]
        asked += 1
    assert asked > 30


def test_enums_of_fields_with_the_same_name_have_fixed_names() -> None:
    parts = SchemaGenerator().get_schema(request=None, public=True)["components"]["schemas"]
    for name, values in {
        "SplitEnum": ["train", "dev", "holdout"],
        "CertificateStateEnum": ["valid", "expired", "revoked"],
        "MisalignmentStateEnum": ["open", "triaged", "closed"],
    }.items():
        assert parts[name]["enum"] == values
    assert "undoes" in parts["TriageChangeOutput"]["properties"]
