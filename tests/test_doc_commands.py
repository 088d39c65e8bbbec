"""Commands of the docs, run as they stand in a folder as a reader has it after cloning.

Only the places of other machines are replaced: folders outside, addresses and ports.
"""

import json
import re
import shutil
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml
from django.core.management.utils import get_random_secret_key

from alignment.models.regressions import RegressionTest
from bench._workers import free_port
from evaluation.prompts.services.versions import champions_ensure
from labeling.models.people import Role
from labeling.models.rubric import Criterion
from labeling.people.services.tokens import token_create
from tests.factories.checkout import Checkout, checkout
from tests.factories.doc_pages import DOCS, Block, blocks, the_block
from tests.factories.gate_reference import MARK, judging, make_golden
from tests.factories.rows import make_user
from tests.factories.runs import KEY, MODEL, always, environment
from tests.stub_endpoint import StubEndpoint

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(900)]
README = DOCS.parent / "README.md"
EXPORTS = Path(__file__).parent / "labeling" / "ingest" / "exports"


@pytest.fixture(scope="module")
def cloned(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return checkout(tmp_path_factory.mktemp("cloned") / "lace")


@pytest.fixture(scope="module")
def model() -> Iterator[dict[str, str]]:
    """The environment that names a model."""
    with StubEndpoint(always(True)) as stub:
        yield {"OPENAI_BASE_URL": stub.base_url, "OPENAI_API_KEY": KEY, "LACE_REASONING_MODEL": MODEL}


@pytest.fixture
def new(cloned: Checkout, model: dict[str, str], tmp_path: Path) -> Checkout:
    """A terminal before the first command, with the files of get-started."""
    texts = [block.text for block in blocks(DOCS / "get-started.md") if block.language == "json"]
    for name, text in zip(("rubric.json", "chats.jsonl", "labels.jsonl"), texts, strict=True):
        (cloned.folder / name).write_text(text, encoding="utf-8")
    (cloned.folder / "knowledge").mkdir(exist_ok=True)
    (cloned.folder / "knowledge" / "returns.md").write_text("# Returns\n\nWithin 14 days.\n", "utf-8")
    return Checkout(cloned.folder, cloned.env | model | {"LACE_DATA_DIR": str(tmp_path / "data")})


@pytest.fixture(scope="module")
def migrated(cloned: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of an empty workspace."""
    folder = tmp_path_factory.mktemp("migrated") / "data"
    cloned.run(".venv/bin/python manage.py migrate --verbosity 0", {"LACE_DATA_DIR": str(folder)})
    return folder


@pytest.fixture
def terminal(new: Checkout, migrated: Path) -> Checkout:
    """A terminal with an empty workspace."""
    shutil.copytree(migrated, new.env["LACE_DATA_DIR"])
    return new


@pytest.fixture
def imported(terminal: Checkout) -> Checkout:
    """A terminal with a workspace that has a chat set."""
    terminal.run(".venv/bin/python manage.py import_rubric rubric.json")
    terminal.run(".venv/bin/python manage.py import_chats chats.jsonl --set calibration")
    return terminal


def shell_blocks(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.language == "sh"]


def serve_once(terminal: Checkout, command: str) -> None:
    """Start it, open a page and stop it."""
    with terminal.serving(command, port=free_port()) as (url, _):
        assert page(f"{url}/accounts/login/")


def test_the_readme_leads_from_nothing_to_a_report(new: Checkout) -> None:
    start, _, commands = shell_blocks(README)  # tests/test_tutorial.py runs the demo
    serve_once(new, start.text)
    assert "polite" in new.run(commands.text)


def test_get_started_leads_from_nothing_to_a_report(new: Checkout) -> None:
    _, imports, start, evaluate, report = shell_blocks(DOCS / "get-started.md")
    new.run(imports.text)
    serve_once(new, start.text)
    new.run(evaluate.text)
    assert "polite" in new.run(report.text)


def test_a_workspace_is_copied_and_brought_back_as_the_page_says(
    imported: Checkout, migrated: Path, tmp_path: Path
) -> None:
    def here(text: str) -> str:
        for place in ("/backups", "/tmp/trial", "/srv/lace"):  # noqa: S108
            folder = imported.folder if place == "/srv/lace" else tmp_path / Path(place).name
            folder.mkdir(exist_ok=True)
            text = text.replace(place, str(folder))
        return text

    there = {"LACE_DATA_DIR": str(tmp_path / "there")}
    both, nightly, trial, archive = (here(block.text) for block in shell_blocks(DOCS / "back-up.md"))
    backup, restore = both.splitlines()
    imported.run(backup)
    imported.run(restore, there)
    imported.run(nightly.split(maxsplit=5)[5])  # at once, not at 3:15
    assert len(list((tmp_path / "backups").iterdir())) == 2
    imported.run(trial)
    assert (tmp_path / "trial" / "lace.sqlite3").exists()
    export, take_in = archive.splitlines()
    imported.run(f"rm -f workspace.zip\n{export}")
    shutil.copytree(migrated, tmp_path / "elsewhere")
    imported.run(take_in, {"LACE_DATA_DIR": str(tmp_path / "elsewhere")})
    documented_archive(imported.folder / "workspace.zip")


def documented_archive(path: Path) -> None:
    """What docs/reference/files.md shows of an archive is what is in one."""
    shown = json.loads(the_block("reference/files.md", "json", "Archive"))
    with zipfile.ZipFile(path) as archive:
        found = json.loads(archive.read("manifest.json"))
    assert shown.keys() <= found.keys()
    assert (shown["kind"], shown["format"], shown["product"]) == tuple(
        found[name] for name in ("kind", "format", "product")
    )
    assert shown["migrations"].keys() <= found["migrations"].keys()
    for table, columns in shown["tables"].items():
        assert columns.keys() == found["tables"][table].keys()


def test_files_of_other_tools_and_calibration_chats_are_imported(imported: Checkout) -> None:
    calibration = the_block("label.md", "sh", "Gold and calibration sets")
    traces = shell_blocks(DOCS / "production.md")[1]
    assert traces.heading == "Send chats"
    for name, source in {"traces": "langfuse_observations_v2.jsonl", "spans": "otel_spans.jsonl"}.items():
        shutil.copy(EXPORTS / source, imported.folder / f"{name}.jsonl")
    shutil.copy(imported.folder / "chats.jsonl", imported.folder / "round-1.jsonl")
    imported.run(f"{calibration}\n{traces.text}")


@pytest.mark.skipif(not shutil.which("jq"), reason="jq is not installed")
def test_a_part_of_the_default_rubric_is_imported(terminal: Checkout) -> None:
    said = terminal.run(the_block("reference/files.md", "sh", "Default rubric"))
    assert "1 created" in said


def test_a_refused_file_is_named_as_the_page_shows(terminal: Checkout) -> None:
    shown = the_block("reference/files.md", "", "Rules for every import").strip()
    wrong = {"id": "c", "messages": [{"role": "usr", "content": "Hi"}]}
    (terminal.folder / "chats.jsonl").write_text(json.dumps(wrong), "utf-8")
    terminal.run(".venv/bin/python manage.py import_rubric rubric.json")
    said = terminal.run(".venv/bin/python manage.py import_chats chats.jsonl --set s 2>&1 || test $? = 2")
    assert said.splitlines()[-1] == shown


@pytest.mark.parametrize(("page", "extra"), [("agents.md", "mcp"), ("watch.md", "otel")])
def test_an_extra_is_installed(terminal: Checkout, page: str, extra: str) -> None:
    """Its packages are among those for developers: nothing is left to fetch."""
    (command,) = [block.text for block in shell_blocks(DOCS / page)]
    assert f"locks/requirements-{extra}.txt" in command
    assert "Would install" not in terminal.run(command, {"PIP_NO_INDEX": "1", "PIP_DRY_RUN": "1"})


# ---------- processes ----------


def test_several_machines_are_set_up_by_the_commands_with_the_settings(new: Checkout, tmp_path: Path) -> None:
    setup, _ = [one.text for one in shell_blocks(DOCS / "run-it.md") if one.heading == "Several machines"]
    settings = the_block("run-it.md", "ini", "Several machines")
    settings = settings.replace(
        "postgres://lace:PASSWORD@database.example.org:5432/lace", "sqlite:///lace.sqlite3"
    )
    settings = settings.replace("50 random characters or more", get_random_secret_key())
    settings = settings.replace("/srv/lace-data", str(tmp_path / "data"))
    said = new.run(setup, dict(line.split("=", 1) for line in settings.splitlines()))
    assert re.search(r"^https://lace\.example\.org/\S+$", said, re.MULTILINE)


def test_every_process_starts_by_its_own_command(terminal: Checkout) -> None:
    _, block = [one for one in shell_blocks(DOCS / "run-it.md") if one.heading == "Several machines"]
    *workers, clock, web = block.text.splitlines()
    port = str(free_port())
    lines = [*workers, clock, web.replace(":8000", f":{port}")]
    with terminal.background(*lines) as alive:
        deadline = time.monotonic() + 120
        while '"ok"' not in page(f"http://127.0.0.1:{port}/readyz"):  # no worker is silent
            assert alive() and time.monotonic() < deadline, terminal.log()
            time.sleep(0.5)
        assert alive()


def page(url: str) -> str:
    """The text of an address of this machine, "" while nothing answers there."""
    try:
        return str(urlopen(url, timeout=30).read().decode())  # noqa: S310
    except OSError:
        return ""


# ---------- a workflow ----------


@pytest.mark.django_db(transaction=True)
def test_the_workflow_of_the_gate_page_tests_what_a_pull_request_changes(
    cloned: Checkout, transactional_db: None
) -> None:
    job: Any = yaml.safe_load(the_block("understand/gate.md", "yaml", "Pull requests"))["jobs"]["gate"]
    (script,) = [step["run"] for step in job["steps"] if step.get("name") == "Test every changed prompt"]
    script = script.replace("${{ github.base_ref }}", "main")
    make_golden()
    make_user("ci", Role.LEAD)
    champions_ensure(criteria=list(Criterion.objects.all()), by=None)
    prompts = cloned.folder / "prompts"
    prompts.mkdir()
    git = "git -c user.name=ci -c user.email=ci@example.org -c init.defaultBranch=main"
    cloned.run(f"{git} init -q . && {git} commit -q --allow-empty -m base")
    cloned.run(f"{git} update-ref refs/remotes/origin/main HEAD")
    (prompts / "polite.md").write_text(f"# Context\nA shop.\n\n# Objective\nIs it so?\n\n# Style\n{MARK}\n")
    cloned.run(f"{git} add prompts && {git} commit -q -m prompt")
    with StubEndpoint(judging(champion=20, wrong={MARK: 0})) as stub:
        prices = cloned.folder / "prices.json"
        prices.write_text(json.dumps({MODEL: {"input": 1, "output": 2}}))
        own = environment(stub.base_url, LACE_PRICES=str(prices), GITHUB_STEP_SUMMARY="summary.md")
        own["PATH"] = f"{cloned.folder}/.venv/bin:{own['PATH']}"
        cloned.run(script, own)
    assert "Pass" in (cloned.folder / "summary.md").read_text()
    assert (cloned.folder / "gate-polite.xml").exists()
    assert RegressionTest.objects.get().result == "pass"


# ---------- calls ----------


def test_packed_chats_are_sent_by_the_line_of_the_page(
    cloned: Checkout, live_server: Any, tmp_path: Path
) -> None:
    (cloned.folder / "chats.json").write_text(the_block("production.md", "json", "Send chats"), "utf-8")
    secret = token_create(
        user=make_user("ines", Role.LEAD), name="docs", scopes=["send_chats"], days=1
    ).secret
    command = the_block("production.md", "sh", "Send chats")
    answer = cloned.run(command.replace("https://lace.example.org", live_server.url), {"LACE_TOKEN": secret})
    assert re.search(r'"created": ?1', answer), answer
