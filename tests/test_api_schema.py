"""The OpenAPI document: valid, and each component keeps its own name."""

from pathlib import Path

from django.core.management import call_command
from drf_spectacular.generators import SchemaGenerator


def test_the_document_is_valid_and_component_names_are_unique(tmp_path: Path) -> None:
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "schema.yml"))


def test_enums_of_fields_with_the_same_name_have_fixed_names() -> None:
    parts = SchemaGenerator().get_schema(request=None, public=True)["components"]["schemas"]
    for name, values in {
        "SplitEnum": ["train", "dev", "holdout"],
        "CertificateStateEnum": ["valid", "expired", "revoked"],
        "MisalignmentStateEnum": ["open", "triaged", "closed"],
    }.items():
        assert parts[name]["enum"] == values
    assert "undoes" in parts["TriageChangeOutput"]["properties"]
