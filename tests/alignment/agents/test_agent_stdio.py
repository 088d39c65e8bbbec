"""A program starts `manage.py mcp` as docs/agents.md configures it, and talks to it over its pipes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings as project
from django.db import connections
from mcp import Client, StdioServerParameters
from mcp.types import Implementation

from evaluation.models.prompts import PromptDraft
from evaluation.prompts.services.versions import champions_ensure
from labeling.models.people import AuditEvent, User
from tests.factories.agents import token_of
from tests.factories.compared_runs import make_compared
from tests.factories.runs import environment

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.heavy]

ROOT: Path = project.BASE_DIR
PROGRAM = Implementation(name="coding-agent", version="1.2")


def configured() -> tuple[list[str], dict[str, str]]:
    """Arguments and environment of the configuration in the docs, for this folder."""
    (block,) = re.findall(r"(?s)```json\n(.*?)```", (ROOT / "docs" / "agents.md").read_text(encoding="utf-8"))
    server = json.loads(block)["mcpServers"]["lace"]
    assert server["command"].endswith("/.venv/bin/python")
    return [one.replace("/opt/lace/", f"{ROOT}/") for one in server["args"]], server["env"]


def test_an_agent_reads_and_proposes_over_the_pipes(transactional_db: None, author_user: User) -> None:
    champions_ensure(criteria=make_compared(chats=8).criteria, by=None)
    args, env = configured()
    env = {name: token_of(author_user) for name in env}
    connections.close_all()
    parameters = StdioServerParameters(
        command=sys.executable, args=args, env=environment("") | env, cwd=str(ROOT)
    )

    async def work() -> tuple[list[str], Any, Any]:
        async with Client(parameters, client_info=PROGRAM, read_timeout_seconds=150) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            listed = await client.call_tool("list_criteria", {})
            text = {"criterion": "polite", "text": "# Objective\nWas it polite?\n"}
            return names, listed, await client.call_tool("propose_draft", text)

    names, listed, proposed = async_to_sync(work)()
    assert "read_chat" in names
    keys = [row["key"] for row in listed.structured_content["criteria"]]
    assert sorted(keys) == ["polite", "welcome", "wrong_fact"]
    assert proposed.structured_content["revision"] == 1
    assert PromptDraft.objects.get().author == author_user
    assert AuditEvent.objects.get(verb="draft proposed").token_name == "agent"


def test_without_a_token_the_server_does_not_start() -> None:
    command = [sys.executable, "manage.py", "mcp"]
    env = {name: value for name, value in os.environ.items() if name != "LACE_AGENT_TOKEN"}
    done = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=150, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "LACE_AGENT_TOKEN is not set" in done.stderr
