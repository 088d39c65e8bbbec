"""Serve a coding agent over the Model Context Protocol."""

import os
from typing import Any

from common.commands import WorkbenchCommand
from common.problems import InputProblem

TOKEN = "LACE_AGENT_TOKEN"  # noqa: S105  # the name of a variable


class Command(WorkbenchCommand):
    help = "Serve a coding agent by MCP on stdin and stdout, with the API token in LACE_AGENT_TOKEN."
    on_stop = "drafts and tests are kept"

    def handle(self, *args: Any, **options: Any) -> None:
        secret = os.environ.get(TOKEN, "").strip()
        if not secret:
            raise InputProblem(f"{TOKEN} is not set: create a token on the page API tokens")
        try:
            from alignment.agents.server import serve_stdio
        except ModuleNotFoundError as missing:
            raise InputProblem("coding agents need requirements-mcp.txt to be installed") from missing
        serve_stdio(secret=secret)
