"""The MCP server: the tools of an agent, each a few lines over queries and services."""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Concatenate, ParamSpec

from asgiref.sync import async_to_sync, sync_to_async
from django.db import close_old_connections
from django.http import Http404
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from alignment.agents import queries
from alignment.agents.core import DATA, INSTRUCTIONS
from alignment.agents.services import agent_session, draft_propose, draft_test, problem_text
from common.problems import FieldProblem, InputProblem
from labeling.models.people import User

P = ParamSpec("P")
Document = dict[str, Any]
READ = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITE = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)

Criterion = Annotated[str, Field(description="Key of a criterion.", max_length=64)]
AnyCriterion = Annotated[str, Field(description="Key of a criterion; empty for all.", max_length=64)]
RubricName = Annotated[
    str, Field(description="Name of a rubric; empty while the workspace has one.", max_length=120)
]
Page = Annotated[int, Field(description="Page of 20 entries, from 1.", ge=1, le=100_000)]
Number = Annotated[int, Field(ge=0, le=2**31 - 1)]
Id = Annotated[int, Field(ge=1, le=2**31 - 1)]
Text = Annotated[str, Field(max_length=200_000)]

_TOOLS: list[tuple[Callable[..., Any], str]] = []


def _tool(scope: str) -> Callable[[Callable[P, Document]], Callable[P, Document]]:
    """Register a tool that requires this scope; its first parameter, the user, comes from the token."""

    def register(tool: Callable[P, Document]) -> Callable[P, Document]:
        _TOOLS.append((tool, scope))
        return tool

    return register


# ---------- reading ----------


@_tool("see_judge")
def list_criteria(user: User) -> Document:
    """List the criteria with the champion's number and open disagreements, and the chat sets to test on."""
    return queries.criteria_document(user=user)


@_tool("see_judge")
def read_criterion(user: User, criterion: Criterion) -> Document:
    """Read a criterion with the agreement of its champion and the raters on train and dev."""
    return queries.criterion_document(user=user, key=criterion)


@_tool("see_judge")
def read_rubric(user: User, rubric: RubricName = "") -> Document:
    """Read the rubric as raters do: question, definition, guideline and examples of each criterion."""
    return queries.rubric_document(rubric=rubric)


@_tool("see_judge")
def read_guideline(user: User, rubric: RubricName = "") -> Document:
    """Read the raters' guideline of a rubric, in Markdown."""
    return queries.guideline_document(rubric=rubric)


@_tool("see_judge")
def list_knowledge(user: User, page: Page = 1) -> Document:
    """List the articles of business knowledge that a judge may read."""
    return queries.knowledge_list(page=page)


@_tool("see_judge")
def read_knowledge(user: User, article: str, version: Number = 0, start: Number = 0) -> Document:
    """Read an article; version 0 is the one in use. Long articles come in parts: go on from next_start."""
    return queries.article_document(key=article, version=version, start=start)


@_tool("see_judge")
def list_prompt_versions(user: User, criterion: Criterion, page: Page = 1) -> Document:
    """List the versions of a criterion's prompt, newest first, with their tests and agreement on dev."""
    return queries.versions_document(user=user, key=criterion, page=page)


@_tool("see_judge")
def read_prompt(user: User, criterion: Criterion, version: Number = 0, compare_with: Number = 0) -> Document:
    """Read a prompt version, 0 for the champion; with compare_with also the changes since that version."""
    return queries.prompt_document(user=user, key=criterion, version=version, compare_with=compare_with)


@_tool("edit_prompts")
def read_draft(user: User, criterion: Criterion) -> Document:
    """Read the author's draft of a prompt, with the revision that propose_draft needs; 0 without a draft."""
    return queries.draft_document(user=user, key=criterion)


@_tool("see_judge")
def list_disagreements(
    user: User,
    criterion: AnyCriterion = "",
    split: Annotated[str, Field(description="train or dev; empty for both.")] = "",
    state: Annotated[str, Field(description="open, triaged, closed or all; empty: not closed.")] = "",
    cause: Annotated[str, Field(description="Cause of the triage, or none; empty for all.")] = "",
    page: Page = 1,
) -> Document:
    """List chats of train and dev on which the raters' consensus and the judge's verdict differ."""
    return queries.disagreements_document(
        user=user, criterion=criterion, split=split, state=state, cause=cause, page=page
    )


@_tool("see_judge")
def read_chat(
    user: User, chat_number: Id, criterion: Criterion, run: Number = 0, first_message: Id = 1
) -> Document:
    """Read a chat of train or dev, its labels on a criterion, and how the judge reached its verdict.

    run 0 is the newest run that judged the chat. Long chats come in parts: go on from next_message.
    """
    return queries.chat_document(
        user=user, chat=chat_number, criterion=criterion, run=run, first_message=first_message
    )


@_tool("see_judge")
def list_tests(user: User, criterion: AnyCriterion = "", page: Page = 1) -> Document:
    """List regression tests on dev, newest first, with the gate's decision and reasons."""
    return queries.tests_document(user=user, criterion=criterion, page=page)


@_tool("see_judge")
def read_test(user: User, test: Id) -> Document:
    """Read a regression test on dev: progress, figures, the gate's decision and its reasons."""
    return queries.test_document(user=user, test=test)


# ---------- proposing ----------


@_tool("edit_prompts")
def propose_draft(
    user: User,
    criterion: Criterion,
    text: Text,
    revision: Number = 0,
    base: Annotated[int, Field(description="Version it starts from; 0: the champion.", ge=0)] = 0,
    examples: Annotated[
        list[Document] | None,
        Field(
            description='Worked examples from train chats: {"chat": id, "turns": [first, last], "value": '
            "true, false or null, "
            '"rationale": text}. Leave it out to keep those of the base.',
            max_length=50,
        ),
    ] = None,
) -> Document:
    """Save a prompt as the author's draft, which they see in the editor as proposed by an agent.

    Nothing is released. revision is that of read_draft, 0 without a draft. An error in findings prevents
    saving it as a version.
    """
    saved = draft_propose(
        criterion=criterion, author=user, text=text, examples=examples, base=base, revision=revision
    )
    findings = [{"level": one.level, "problem": one.line} for one in saved.findings]
    return {"criterion": criterion, "revision": saved.draft.revision, "findings": findings}


@_tool("edit_prompts")
def test_draft(
    user: User,
    criterion: Criterion,
    chat_set: Annotated[str, Field(description="Name of a labelled chat set.", max_length=120)],
    reason: Annotated[str, Field(description="What is new in the draft.", max_length=500)] = "",
    version: Annotated[int, Field(description="Test this version; 0: save the draft first.", ge=0)] = 0,
    budget_usd: Annotated[str, Field(description="Budget of each run, such as 5.00.", max_length=20)] = "",
) -> Document:
    """Save the draft as a version and start its regression test against the champion, on dev.

    It asks the judge's model, which costs money. One test at a time: read_test tells when it is decided.
    """
    test = draft_test(
        criterion=criterion,
        author=user,
        chat_set=chat_set,
        reason=reason,
        version=version,
        budget_usd=budget_usd,
    )
    return queries.test_document(user=user, test=test.pk)


# ---------- the server ----------


def agent_server(*, secret: str, between_calls: Callable[[], None] = lambda: None) -> MCPServer:
    """Return the server of the holder of this token; the token is checked at each call.

    `between_calls` is called before and after each tool.
    """
    server: MCPServer = MCPServer("lace", title="LACE workbench", instructions=INSTRUCTIONS)
    for tool, scope in _TOOLS:
        reads = tool.__name__.startswith(("list_", "read_"))
        server.add_tool(
            _served(tool, scope, secret, between_calls),
            name=tool.__name__,
            description=f"{tool.__doc__} {DATA}" if tool.__name__ in _WITH_CHATS else tool.__doc__,
            annotations=READ if reads else WRITE,
        )
    return server


_WITH_CHATS = ("list_disagreements", "read_chat")


def serve_stdio(*, secret: str) -> None:
    """Serve until stdin ends."""
    # On this thread: Django's connections belong to one, and calls come one after the other.
    # A connection that the database has dropped meanwhile is opened anew, as for requests of pages.
    server = agent_server(secret=secret, between_calls=close_old_connections)
    async_to_sync(server.run_stdio_async)()


def _served(
    tool: Callable[Concatenate[User, P], Document],
    scope: str,
    secret: str,
    between_calls: Callable[[], None],
) -> Callable[..., Any]:
    """Return the tool as the server calls it: without `user`, refusals as errors of the tool."""

    def call(program: str, arguments: dict[str, Any]) -> Document:
        between_calls()
        try:
            with agent_session(secret=secret, program=program, scope=scope) as user:
                found: Document = tool(user, **arguments)  # type: ignore[call-arg]
                return found
        except (InputProblem, FieldProblem) as problem:
            raise ToolError(problem_text(problem)) from problem
        except Http404 as problem:
            raise ToolError("Not found, or no permission.") from problem
        finally:
            between_calls()

    async def served(context: Context, **arguments: Any) -> Document:
        return await sync_to_async(call)(_program(context), arguments)

    functools.update_wrapper(served, tool, assigned=("__name__", "__qualname__", "__doc__", "__module__"))
    del served.__wrapped__  # type: ignore[attr-defined]  # else its signature would be the tool's
    _set_signature(served, tool)
    return served


def _set_signature(served: Any, tool: Callable[..., Any]) -> None:
    """Give the function the tool's parameters, with the server's context instead of the user."""
    old = inspect.signature(tool)
    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=Context)
    own = [
        one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, one in old.parameters.items()
        if name != "user"
    ]
    served.__signature__ = old.replace(parameters=[context, *own])
    served.__annotations__ = {"context": Context, "return": Document} | {
        one.name: one.annotation for one in own
    }


def _program(context: Context) -> str:
    """Return name and version of the agent's program, as it says; "" if it says nothing."""
    params = context.session.client_params
    return f"{params.client_info.name} {params.client_info.version}"[:100].strip() if params else ""
