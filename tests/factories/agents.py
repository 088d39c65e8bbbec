"""A coding agent: an MCP client in this process, or of a server started as its own process."""

import json
from typing import Any

from asgiref.sync import async_to_sync
from mcp import Client

from alignment.agents.server import agent_server
from labeling.models.people import User
from labeling.people.services.tokens import token_create

AUTHOR_SCOPES = ("see_judge", "edit_prompts")


def token_of(user: User, *scopes: str) -> str:
    return token_create(user=user, name="agent", scopes=scopes or AUTHOR_SCOPES, days=1).secret


class Agent:
    """Calls tools with a token."""

    def __init__(self, secret: str) -> None:
        self._server = agent_server(secret=secret)

    def tools(self) -> list[Any]:
        async def listed() -> list[Any]:
            async with Client(self._server) as client:
                return list((await client.list_tools()).tools)

        return async_to_sync(listed)()

    def answer(self, tool: str, **arguments: Any) -> tuple[bool, str]:
        """Whether the tool refused, and all that it said."""

        async def called() -> tuple[bool, str]:
            async with Client(self._server) as client:
                result = await client.call_tool(tool, arguments)
            texts = [getattr(part, "text", "") for part in result.content]
            structured = json.dumps(result.structured_content) if result.structured_content else ""
            return bool(result.is_error), "\n".join([*texts, structured])

        return async_to_sync(called)()

    def read(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The document that the tool gives."""
        refused, said = self.answer(tool, **arguments)
        assert not refused, said
        return dict(json.loads(said.splitlines()[-1]))

    def refusal(self, tool: str, **arguments: Any) -> str:
        """Why the tool refused."""
        refused, said = self.answer(tool, **arguments)
        assert refused, said
        return said.strip()
