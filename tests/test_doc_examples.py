"""Every example in the docs is run, in its order and as it stands; those that can't be have a reason here."""

import base64
import json
import logging
import pkgutil
import re
import shlex
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import LazySettings
from django.conf import settings as project
from django.test import Client, RequestFactory
from django.urls import resolve, reverse
from kombu.exceptions import OperationalError
from structlog.contextvars import bound_contextvars

import bench
from alignment.certificates.core.signatures import sign
from evaluation.core.types import Criterion
from evaluation.engines.core.verdicts import read_answer
from evaluation.gateway.prices import read_prices
from evaluation.models.outbox import OutboxEvent
from evaluation.models.runs import Run
from evaluation.webhooks.core import signed_headers
from labeling.models.chats import Chat
from labeling.models.labels import Label
from labeling.models.people import Role, User
from labeling.people.services.roles import PERMISSIONS
from labeling.people.services.tokens import token_create
from lace_site.watch.logs import current_request, formatter
from tests.factories.doc_pages import DOCS, FENCE, blocks, the_block
from tests.factories.rows import make_user
from tests.files import run
from tests.world import World, make_world, rolled_back

HERE = "tests/test_doc_examples.py"
PAGES = sorted([*DOCS.rglob("*.md"), project.BASE_DIR / "README.md"])

COMMANDS = "tests/test_doc_commands.py"
# Blocks that tests run, by page: how many in which file.
RUN = {
    "README.md": {COMMANDS: 2, "tests/test_tutorial.py": 1},
    "agents.md": {COMMANDS: 1, "tests/alignment/agents/test_agent_stdio.py": 1},
    "api.md": {HERE: 2},
    "back-up.md": {COMMANDS: 4},
    "client.md": {"tests/client/test_client_docs.py": 7},
    "files.md": {HERE: 11, COMMANDS: 3},
    "gate.md": {COMMANDS: 1},
    "get-started.md": {HERE: 3, COMMANDS: 4, "tests/test_tutorial.py": 1},
    "judging.md": {HERE: 1},
    "label.md": {COMMANDS: 1},
    "production.md": {HERE: 5, COMMANDS: 2},
    "review-alignment.md": {HERE: 1},
    "run-it.md": {HERE: 1, COMMANDS: 3},
    "tutorial.md": {"tests/test_tutorial.py": 9},
    "watch.md": {HERE: 2, COMMANDS: 1},
}
# The others, by page and first words: why no test can run them.
NOT_RUN = {
    ("client.md", "pip install ./client"): "fetches the programs that build a package",
    ("deploy.md", "printf 'SECRET_KEY="): "needs a container engine; `make walk` does the image's steps",
    ("deploy.md", "docker build"): "needs a container engine; `make walk` does the image's steps",
    ("deploy.md", "docker compose stop"): "needs a container engine; tests/test_backup.py restores backups",
    ("deploy.md", "kubectl create"): "needs a cluster; tests/deploy reads the manifests",
    ("deploy.md", "kubectl --namespace lace scale"): "needs a cluster; tests/deploy reads the manifests",
    ("deploy.md", "version="): "needs root and a machine; `make walk` does these steps",
    ("deploy.md", "runuser -u postgres"): "needs root and a server of the machine",
    ("deploy.md", "systemctl enable"): "needs systemd; `make walk` starts what the units start",
    ("deploy.md", "systemctl stop"): "needs systemd; tests/test_backup.py restores backups",
    ("faults.md", "make faults"): "takes half an hour; tests/test_faults.py does six of them",
    ("load.md", "make bench"): "takes hours; a test below checks that each benchmark exists",
    ("run-it.md", "server {"): "a file of nginx",
    ("run-it.md", "lace.example.org {"): "a file of Caddy",
    ("production.md", ".venv/bin/pip install"): "downloads a model of names",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_no_fence_is_left_open(page: Path) -> None:
    assert "```" not in FENCE.sub("", page.read_text(encoding="utf-8"))


def test_every_block_is_run_or_has_a_reason() -> None:
    counts = {page.name: len(found) for page in PAGES if (found := blocks(page))}
    texts = {page.name: [block.text for block in blocks(page)] for page in PAGES}
    for (page, begins), reason in NOT_RUN.items():
        assert len([text for text in texts[page] if text.startswith(begins)]) == 1, (page, begins)
        assert reason
    explained = Counter(page for page, _ in NOT_RUN)
    assert counts == {page: explained[page] + sum(RUN.get(page, {}).values()) for page in {*RUN, *explained}}


def test_a_test_that_runs_the_blocks_of_a_page_reads_that_page() -> None:
    for page, files in RUN.items():
        for file in files:
            assert page in (project.BASE_DIR / file).read_text(encoding="utf-8"), (page, file)


def test_every_benchmark_that_is_named_exists() -> None:
    names = re.findall(r"-m bench (\w+)", the_block("understand/load.md", "sh", "Load"))
    assert len(names) >= 4
    assert set(names) <= {module.name for module in pkgutil.iter_modules(bench.__path__)}


# ---------- files ----------


@pytest.fixture
def examples() -> dict[str, list[str]]:
    """The blocks of files.md by heading."""
    found: dict[str, list[str]] = {}
    for block in blocks(DOCS / "reference" / "files.md"):
        found.setdefault(block.heading, []).append(block.text)
    return found


def chats_beside(first: str) -> str:
    """The example's chat in one line, and the others that labels, decisions and worked examples name."""
    said = ("Where is it?", "Bad luck", "Really?", "I said so.", "Please look.", "Look yourself.")
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(said)]
    train = [message | {"content": f"{message['content']} Thanks."} for message in messages]
    others = [{"id": "r-002", "messages": messages}, {"id": "r-007", "split": "train", "messages": train}]
    return "".join(f"{json.dumps(chat)}\n" for chat in (json.loads(first), *others))


@pytest.mark.django_db
def test_the_files_can_be_imported_one_after_the_other(
    tmp_path: Path, examples: dict[str, list[str]]
) -> None:
    def file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    file("knowledge/returns.md", "# Returns\n\nWithin 14 days.\n")
    assert run("import_knowledge", tmp_path / "knowledge").document["created"] == 1
    assert run("import_rubric", file("rubric.json", examples["Rubric"][0])).document["created"] == 2
    chats = file("chats.jsonl", chats_beside(examples["Chats"][0]))
    assert run("import_chats", chats, "--set", "returns").document["created"] == 3
    assert run("import_labels", file("labels.jsonl", examples["Labels"][0])).document["created"] == 2
    mapping, studio, argilla = examples["Labels from other tools"]
    by_map = ("--map", file("map.json", mapping))
    run("import_labels", file("studio.json", studio), "--format", "label-studio", *by_map)
    run("import_labels", file("argilla.json", argilla), "--format", "argilla", *by_map)
    assert Label.objects.count() == 4  # on two criteria of two chats, by one rater
    decided = run("import_adjudications", file("decisions.jsonl", examples["Adjudications"][0]))
    assert decided.document["created"] == 1
    run("import_verdicts", file("verdicts.jsonl", examples["Verdicts"][0]), "--set", "returns")
    assert Run.objects.get().judge.name == "other-tool"
    prompt = file("polite.md", re.sub("(?s)# Context.*", PROMPT, examples["Prompts"][0]))
    worked = file("polite.examples.jsonl", examples["Worked examples"][0])
    added = run("add_prompt", "--criterion", "polite", "--prompt", prompt, "--examples", worked)
    assert added.document["version"] == 2
    prices = json.loads(examples["Prices"][0])
    assert prices["my-model"]["input"] > prices["my-model"]["cached_input"]


@pytest.mark.django_db
def test_the_first_files_are_imported_as_get_started_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = blocks(DOCS / "get-started.md")
    monkeypatch.chdir(tmp_path)
    Path("knowledge").mkdir()
    Path("knowledge", "returns.md").write_text("# Returns\n\nWithin 14 days.\n", encoding="utf-8")
    texts = [block.text for block in found if block.language == "json"]
    for name, text in zip(("rubric.json", "chats.jsonl", "labels.jsonl"), texts, strict=True):
        Path(name).write_text(text, encoding="utf-8")
    (commands,) = [block.text for block in found if block.heading == "Import" and block.language == "sh"]
    imports = re.findall(r"manage\.py (import_[^#\n]+)", commands)
    assert len(imports) == 4
    for line in imports:
        assert run(*shlex.split(line)).document["created"] == 1, line
    assert Label.objects.get().chat.external_id == "r-001"


PROMPT = """# Context
A shop's bot.

# Objective
Was the bot polite in every message?

# Style
Plain.

# Tone
Calm.

# Audience
Leads.

# Response
True or False, with the messages that show it.
"""


# ---------- calls ----------


@pytest.mark.django_db
@pytest.mark.sweep
def test_every_call_of_the_docs_is_answered(settings: LazySettings) -> None:
    settings.OPENAI_API_KEY = "no-worker-uses-it"
    settings.LACE_REASONING_MODEL = "gpt-5-mini"  # a budget needs a model with a price
    world = make_world()
    OutboxEvent.objects.update(created_at=datetime(2026, 11, 1, 12, tzinfo=UTC))  # in the docs' period
    secret = token_create(user=world.users["lead"], name="docs", scopes=PERMISSIONS[Role.LEAD], days=1).secret
    texts = [block.text for block in blocks(DOCS / "reference" / "api.md")]
    texts += [the_block("production.md", "sh", heading) for heading in CALLS_OF_PRODUCTION]
    lines = "".join(texts).replace("\\\n", " ").splitlines()
    calls = [line for line in lines if line.startswith("curl")]
    assert len(calls) >= 15
    for line in calls:
        with rolled_back():
            assert answered(line, world, secret) < 300, line


CALLS_OF_PRODUCTION = ("Read results by program", "Webhooks by API")


def answered(line: str, world: World, secret: str) -> int:
    """The status of a curl line, on what the world has instead of the numbers and names in the docs."""
    words = shlex.split(line)
    url = urlsplit(words[-1].replace("$url", "/api"))
    body = json.loads(words[words.index("-d") + 1]) if "-d" in words else None
    own = {"runs": "run_id", "sets": "set_id", "webhooks": "webhook_id", "experiments": "experiment_key"}
    named = r"(runs|sets|webhooks|experiments)/(?:\d+|greeting)"
    path = re.sub(named, lambda match: f"{match[1]}/{world.args[own[match[1]]]}", url.path)
    assert resolve(path)
    query = url.query.replace("rater=Ada", f"rater={world.desk.rater.name}")
    method = words[words.index("-X") + 1] if "-X" in words else "GET"
    client = Client(headers={"Authorization": f"Token {secret}"})
    text = json.dumps(body) if body else ""
    full = f"{path}?{query}" if query else path
    return int(client.generic(method, full, text, content_type="application/json").status_code)


@pytest.mark.django_db
def test_chats_and_topic_rules_are_taken_as_the_docs_send_them() -> None:
    lead = make_user("lead", Role.LEAD)
    secret = token_create(user=lead, name="docs", scopes=["send_chats", "manage_labeling"], days=1).secret
    client = Client(headers={"Authorization": f"Token {secret}"})
    rules = json.loads(the_block("production.md", "json", "Incoming chats"))
    changed = client.patch("/api/incoming/", {"topic_rules": rules}, content_type="application/json")
    assert (changed.status_code, len(changed.json()["topic_rules"])) == (200, 2)
    chats = json.loads(the_block("production.md", "json", "Send chats"))
    assert client.post("/api/chats/", chats, content_type="application/json").json()["errors"] == []
    assert Chat.objects.get().external_id == "c-1"


# ---------- programs ----------


def test_a_receiver_knows_a_genuine_webhook() -> None:
    names: dict[str, Any] = {}
    exec(the_block("production.md", "python", "Check a signature"), names)  # noqa: S102
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    headers = signed_headers([secret], event_id="e", timestamp=1, body=b"{}")
    assert names["is_genuine"](secret, headers, b"{}")
    assert not names["is_genuine"](secret, headers, b"{ }")


def test_a_certificate_is_verified_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    key, body = Ed25519PrivateKey.generate(), {"judge": "direct", "topics": ["Rückgabe"]}
    Path("certificate.json").write_text(json.dumps({"body": body, "signature": sign(body, key)}))
    public = base64.b64encode(key.public_key().public_bytes_raw()).decode()
    (program,) = [block.text for block in blocks(DOCS / "review-alignment.md") if block.language == "python"]
    program = program.replace("json.load(open(", "json.loads(Path(").replace(
        '.json"))', '.json").read_text())'
    )
    exec(re.sub('public = ".*"', f'public = "{public}"', program), {"Path": Path})  # noqa: S102


def test_the_price_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text(the_block("run-it.md", "json", "Costs and budgets"), encoding="utf-8")
    assert list(read_prices(path)) == ["my-model"]


# ---------- what the workbench and its models write ----------


def test_the_block_that_ends_an_answer_is_read() -> None:
    text = the_block("understand/judging.md", "", "Reading answers")
    keys = re.findall(r"(?m)^(\w+):", text)
    criteria = [Criterion(key, "So?", "", "simple", True, True, "", ()) for key in keys]
    values = read_answer(f"What was said.\n\n{text}", criteria=criteria).values
    assert dict(values) == dict(zip(keys, (True, False, None), strict=True))


def test_a_line_of_the_log_is_as_it_is_shown(rf: RequestFactory) -> None:
    shown = json.loads(the_block("watch.md", "json", "Logs"))
    request = rf.generic(shown["method"], "/")
    request.user = User(pk=shown["user"])
    request.resolver_match = resolve(reverse(shown["route"]))
    refused = OperationalError("[Errno 111] Connection refused")
    words = ("run %s was not enqueued: %s", (7, refused))
    record = logging.LogRecord(shown["logger"], logging.WARNING, __file__, 1, *words, None)
    token = current_request.set(request)
    try:
        with bound_contextvars(request_id=shown["request_id"]):
            line = formatter(form="json", debug=False).format(record)
    finally:
        current_request.reset(token)
    assert json.loads(line) | {"timestamp": shown["timestamp"]} == shown


@pytest.mark.django_db
def test_prometheus_reads_the_metrics_with_the_configuration_that_is_shown(settings: LazySettings) -> None:
    settings.LACE_METRICS_TOKEN = "a-token-of-prometheus"
    (job,) = yaml.safe_load(the_block("watch.md", "yaml", "Metrics"))["scrape_configs"]
    # Prometheus's own defaults: the path, and the kind of authorization.
    assert not {"metrics_path", "basic_auth"} & job.keys() and "type" not in job["authorization"]
    headers = {"Authorization": f"Bearer {settings.LACE_METRICS_TOKEN}"}
    assert "lace_build_info" in Client(headers=headers).get("/metrics").content.decode()
