"""Scripts and styles: kept by the browser for good, under an address that changes with them."""

from pathlib import Path

import pytest
from django.templatetags.static import static
from django.test import Client

from lace_site import environment


def kept(client: Client, name: str) -> str:
    answer = client.get(static(name))
    assert answer.getvalue()
    assert answer.status_code == 200
    return answer["Cache-Control"]


def test_our_files_are_kept_for_good_and_others_are_not(client: Client) -> None:
    assert kept(client, "labeling/rating/rate.js") == "max-age=315360000, public, immutable"
    assert "immutable" not in kept(client, "admin/css/base.css")


def test_the_address_is_another_one_once_any_file_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "BASE_DIR", tmp_path)
    script = tmp_path / "labeling" / "static" / "labeling" / "rate.js"
    script.parent.mkdir(parents=True)
    script.write_text("one", encoding="utf-8")
    before = environment.static_mark()
    script.write_text("two", encoding="utf-8")
    assert environment.static_mark() != before
