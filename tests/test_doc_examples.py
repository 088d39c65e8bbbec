"""Every example in the docs is run, in its order and as it stands; those that can't be have a reason here."""

import base64
import json
import re
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import LazySettings
from django.conf import settings as project
from django.test import Client
from django.urls import resolve

from alignment.certificates.core.signatures import sign
from evaluation.gateway.prices import read_prices
from evaluation.models.runs import Run
from evaluation.webhooks.core import signed_headers
from labeling.models.chats import Chat
from labeling.models.labels import Label
from labeling.models.people import Role
from labeling.people.services.roles import PERMISSIONS
from labeling.people.services.tokens import token_create
from tests.factories.doc_pages import DOCS, FENCE, blocks
from tests.factories.rows import make_user
from tests.files import run
from tests.world import World, make_world, rolled_back

PAGES = sorted([*DOCS.rglob("*.md"), project.BASE_DIR / "README.md"])

# Blocks that nothing here runs, by page: how many, and why.
NOT_RUN = {
    "agents.md": (2, "an installation; tests/alignment/agents start the server with this configuration"),
    "README.md": (3, "make and the first commands: the same as in get-started.md"),
    "back-up.md": (4, "tests/test_backup.py and tests/alignment/archive run the commands; cron"),
    "client.md": (8, "tests/client/test_client_docs.py executes them against a server"),
    "deploy.md": (9, "tests/deploy walks image and units, which are the same steps; no engine, no cluster"),
    "faults.md": (1, "half an hour; tests/test_faults.py does six of them"),
    "gate.md": (1, "a workflow for another program; tests/alignment/regression run its command"),
    "get-started.md": (4, "make and evaluate: tests/test_journey.py"),
    "judging.md": (1, "what a model answers: tests/evaluation/engines"),
    "label.md": (1, "tests/labeling/sets/test_set_kinds.py"),
    "load.md": (1, "benchmarks of hours; the commands are the names of modules in bench/"),
    "production.md": (5, "a download; tests of ingest, webhooks and experiments make the same calls"),
    "run-it.md": (5, "processes: tests/test_serve.py; settings; a proxy's own files"),
    "tutorial.md": (9, "the demo's own runs and tests; every command has tests of its own"),
    "watch.md": (3, "a log line: tests/watch/test_logs.py; Prometheus's own file; a download"),
}


RUN_HERE = {
    "files.md": len(blocks(DOCS / "reference" / "files.md")),
    "api.md": len(blocks(DOCS / "reference" / "api.md")),
    "get-started.md": 4,  # three files and their import
    "production.md": 3,  # chats, topic rules, a signature
    "review-alignment.md": 1,
    "run-it.md": 1,  # prices
}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_no_fence_is_left_open(page: Path) -> None:
    assert "```" not in FENCE.sub("", page.read_text(encoding="utf-8"))


def test_every_block_is_run_or_has_a_reason() -> None:
    counts = {page.name: len(found) for page in PAGES if (found := blocks(page))}
    not_run = {page: number - RUN_HERE.get(page, 0) for page, number in counts.items()}
    assert {page: number for page, (number, _) in NOT_RUN.items()} == {k: n for k, n in not_run.items() if n}


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
def test_every_call_of_the_api_page_is_answered(settings: LazySettings) -> None:
    settings.OPENAI_API_KEY = "no-worker-uses-it"
    settings.LACE_REASONING_MODEL = "gpt-5-mini"  # a budget needs a model with a price
    world = make_world()
    secret = token_create(user=world.users["lead"], name="docs", scopes=PERMISSIONS[Role.LEAD], days=1).secret
    lines = [line for block in blocks(DOCS / "reference" / "api.md") for line in block.text.splitlines()]
    calls = [line for line in lines if line.startswith("curl")]
    assert len(calls) >= 7
    for line in calls:
        with rolled_back():
            assert answered(line, world, secret) < 300, line


def answered(line: str, world: World, secret: str) -> int:
    """The status of a curl line, on the world's run and set instead of the numbers in the docs."""
    words = shlex.split(line)
    url = urlsplit(words[-1].replace("$url", "/api"))
    body = json.loads(words[words.index("-d") + 1]) if "-d" in words else None
    numbers = {"runs": world.args["run_id"], "sets": world.args["set_id"]}
    path = re.sub(r"(runs|sets)/\d+", lambda match: f"{match[1]}/{numbers[match[1]]}", url.path)
    assert resolve(path)
    query = url.query.replace("rater=Ada", f"rater={world.desk.rater.name}")
    method = words[words.index("-X") + 1] if "-X" in words else "GET"
    client = Client(headers={"Authorization": f"Token {secret}"})
    text = json.dumps(body) if body else ""
    full = f"{path}?{query}" if query else path
    return int(client.generic(method, full, text, content_type="application/json").status_code)


def the_block(page: str, language: str, heading: str) -> str:
    """The text of the first block in a language below a heading."""
    return next(
        block.text for block in blocks(DOCS / page) if (block.language, block.heading) == (language, heading)
    )


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
