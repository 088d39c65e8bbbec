"""The docs site is built strictly, has every page, and asks no other host for anything."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

# What a browser loads by itself; a link that a reader follows may lead anywhere.
LOADED = re.compile(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"([^\"]+)\"|<link\b[^>]*\bhref=\"([^\"]+)\"")


@pytest.mark.heavy
def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=settings.BASE_DIR,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        loaded = [one or other for one, other in LOADED.findall(page.read_text("utf-8"))]
        assert loaded
        assert [address for address in loaded if re.match(r"(https?:)?//", address)] == [], page.name
    assert (tmp_path / "site/llms.txt").exists() and (tmp_path / "site/label.md").exists()
    assert not re.search(r"url\(\s*['\"]?(https?:)?//", (tmp_path / "site/site.css").read_text())
