"""Every package that is installed has a pinned version and hashes, and what is released is listed."""

import re
from pathlib import Path

import pytest
from django.conf import settings

from deploy import audit, release, sbom
from deploy.artefacts import ROOT

LOCKS = ROOT / "locks"
INPUTS = sorted(path.name for path in ROOT.glob("requirements*.txt"))
MANIFESTS = sorted((ROOT / "deploy/kubernetes").glob("*.yaml"))
# Where files name an image, a tag or an archive.
VERSIONS = re.compile(
    r"(?:lace-workbench:(?:\$\{LACE_VERSION:-)?|newTag: |lace-workbench-)(\d[\w.]*?)(?=\}|\.tar|\s)"
)
PIN = re.compile(r"^([A-Za-z0-9_.\-]+)(?:\[[\w,]+\])?==([^ ;#\n]+)", re.MULTILINE)


def name_of(package: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", package).lower()


def pins(path: Path) -> dict[str, str]:
    """The pinned versions of a file by package."""
    return {name_of(name): version for name, version in PIN.findall(path.read_text("utf-8"))}


def blocks(lock: str) -> list[str]:
    """The packages of a lock, each with the lines of its hashes."""
    text = (LOCKS / lock).read_text("utf-8")
    return re.findall(r"(?m)^[a-z0-9][^\n]*(?:\n    [^\n]+)*", text)


@pytest.mark.parametrize("name", INPUTS)
def test_every_requirements_file_has_a_lock_with_its_versions(name: str) -> None:
    assert sorted(path.name for path in LOCKS.iterdir()) == INPUTS
    wanted, locked = pins(ROOT / name), pins(LOCKS / name)
    assert {package: locked.get(package) for package in wanted} == wanted, "run `make lock`"


@pytest.mark.parametrize("name", INPUTS)
def test_every_locked_package_has_hashes(name: str) -> None:
    found = blocks(name)
    assert found
    assert [block for block in found if not re.search(r"--hash=sha256:[0-9a-f]{64}", block)] == []


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_what_packages_pull_in_here_is_pinned_with_its_reason_or_heading(name: str) -> None:
    """A lock has more packages only for other systems and Pythons, by their markers."""
    here = {PIN.match(block)[1] for block in blocks(name) if " ; " not in block.splitlines()[0]}  # type: ignore[index]
    extras = [ROOT / f"requirements-{extra}.txt" for extra in ("names", "otel", "docs", "mcp")]
    named = {package for file in [ROOT / "requirements.txt", *extras, ROOT / name] for package in pins(file)}
    assert sorted(package for package in map(name_of, here) if package not in named) == []


def test_the_locks_come_from_the_public_index_alone() -> None:
    for lock in LOCKS.iterdir():
        assert not re.search(r"://|--index-url|--find-links|@ ", lock.read_text("utf-8")), lock.name


@pytest.mark.parametrize("name", ["Makefile", "Dockerfile"])
def test_nothing_is_installed_without_hashes(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    assert len(re.findall("locks/requirements", text)) >= 2
    for line in re.findall(r"pip install.*", text):
        assert "--require-hashes" in line


def test_an_audit_says_what_it_found_and_what_it_could_not_find() -> None:
    vulnerability = {"id": "PYSEC-1", "fix_versions": ["2.0"]}
    document = {
        "dependencies": [
            {"name": "good", "version": "1.0", "vulns": []},
            {"name": "bad", "version": "1.0", "vulns": [vulnerability]},
            {"name": "other", "skip_reason": "not found"},
        ]
    }
    found = audit.read(document)
    assert found == audit.Audit(2, 1, ("bad 1.0: PYSEC-1, fixed in 2.0",))
    assert audit.verdict(found) == (1, "audit: 1 known vulnerabilities in 2 packages")


@pytest.mark.parametrize("found", [None, audit.Audit(0, 84, ())], ids=["no answer", "knows nothing"])
def test_an_audit_that_cannot_be_done_says_so_and_fails_nothing(found: audit.Audit | None) -> None:
    code, line = audit.verdict(found, error="timed out")
    assert (code, line.startswith("audit: NOT DONE, the database ")) == (0, True)


def test_the_bill_of_materials_names_every_vendored_file_with_its_licence_and_hash() -> None:
    listed = sbom.vendored(sbom.VENDORED.read_text("utf-8"))
    files = {path.name for path in sbom.VENDORED.parent.iterdir() if path.suffix in (".js", ".css")}
    assert {one["description"] for one in listed} == {f"file {name}" for name in files}
    assert {one["licenses"][0]["license"]["id"] for one in listed} == {"0BSD", "MIT"}


def test_the_version_is_written_in_one_place_and_followed_everywhere() -> None:
    name, version = release.project()
    assert {"name": name, "version": version} == settings.SOFTWARE
    texts = ["compose.yaml", "docs/deploy.md", *(str(path.relative_to(ROOT)) for path in MANIFESTS)]
    for text in texts:
        assert set(VERSIONS.findall((ROOT / text).read_text("utf-8"))) <= {version}, text
    assert f"## {version}" in (ROOT / "docs/release-notes.md").read_text("utf-8")
    assert version in (ROOT / "CHANGELOG.md").read_text("utf-8")
