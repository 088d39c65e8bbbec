"""The OpenAPI document: every part of it has one name of its own, which stays when parts are added."""

from pathlib import Path

from django.core.management import call_command
from drf_spectacular.generators import SchemaGenerator


def test_the_document_is_valid_and_no_two_parts_share_a_name(tmp_path: Path) -> None:
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "schema.yml"))


def test_choices_of_fields_with_one_name_have_names_of_ours() -> None:
    parts = SchemaGenerator().get_schema(request=None, public=True)["components"]["schemas"]
    for name, values in {
        "SplitEnum": ["train", "dev", "holdout"],
        "CertificateStateEnum": ["valid", "expired", "revoked"],
        "MisalignmentStateEnum": ["open", "triaged", "closed"],
    }.items():
        assert parts[name]["enum"] == values
    assert "undoes" in parts["TriageChangeOutput"]["properties"]
