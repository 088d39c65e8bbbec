"""The four steps of a CI job: send chats, start a run, wait, and read the report or the gate's decision."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Self, TypeVar, cast
from uuid import uuid4

import httpx

from lace_client.errors import InvalidRequest, NotFinished, Unreachable
from lace_client.generated.api.chats import chats_send
from lace_client.generated.api.criteria import criteria, prompt_version_write
from lace_client.generated.api.regressions import regression, regression_start
from lace_client.generated.api.runs import run, run_report, run_report_share, run_start
from lace_client.generated.api.sets import set_chats_add
from lace_client.generated.models.chats_input import ChatsInput
from lace_client.generated.models.chats_output import ChatsOutput
from lace_client.generated.models.criteria_output import CriteriaOutput
from lace_client.generated.models.criterion_row_output import CriterionRowOutput
from lace_client.generated.models.new_version_input import NewVersionInput
from lace_client.generated.models.regression_input import RegressionInput
from lace_client.generated.models.regression_output import RegressionOutput
from lace_client.generated.models.row_problem_output import RowProblemOutput
from lace_client.generated.models.run_input import RunInput
from lace_client.generated.models.run_output import RunOutput
from lace_client.generated.models.run_report_share_split import RunReportShareSplit
from lace_client.generated.models.run_report_split import RunReportSplit
from lace_client.generated.models.set_chats_input import SetChatsInput
from lace_client.generated.models.set_chats_output import SetChatsOutput
from lace_client.generated.models.started_output import StartedOutput
from lace_client.generated.models.written_version import WrittenVersion
from lace_client.generated.types import UNSET
from lace_client.http import AuthenticatedClient
from lace_client.reports import Report

URL, TOKEN = "LACE_URL", "LACE_TOKEN"  # names of variables
CHATS_AT_ONCE = 500
FIRST_POLL_SECONDS, POLL_SECONDS = 0.5, 5.0
T = TypeVar("T")

Chat = Mapping[str, Any]


@dataclass(slots=True)
class SentChats:
    """Counts of the chats that were sent, and why the workbench stored some of them not."""

    received: int = 0
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    refused: int = 0
    added_to_set: int = 0
    problems: list[RowProblemOutput] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PromptTest:
    """A prompt of CI: its version, and the test of it; `test` is None for the text of the champion."""

    criterion: str
    version: int
    test: int | None


class Workbench:
    """The workbench at an address, with an API token. Use it as a context manager, or close it.

    Every method raises WorkbenchError: NotAllowed, InvalidRequest, NotFinished or Unreachable.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = 60.0,
        attempts: int = 6,
        poll_seconds: float = POLL_SECONDS,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """
        Connect to a workbench.

        Parameters
        ----------
        timeout : seconds until an answer counts as broken.
        attempts : of each request, the first included.
        poll_seconds : at most, between two looks at a run or test; the first ones come sooner.
        transport, sleep : for tests.
        """
        self.client = AuthenticatedClient(
            url, token, timeout=timeout, attempts=attempts, transport=transport, sleep=sleep
        )
        self._poll_seconds, self._sleep = poll_seconds, sleep

    @classmethod
    def from_environment(cls, **options: Any) -> Self:
        """Connect to LACE_URL with LACE_TOKEN. Raises InvalidRequest where one is missing."""
        values = {name: os.environ.get(name, "").strip() for name in (URL, TOKEN)}
        if missing := [name for name, value in values.items() if not value]:
            raise InvalidRequest(f"Set the environment variable {' and '.join(missing)}.")
        return cls(values[URL], values[TOKEN], **options)

    def close(self) -> None:
        """Close the connection."""
        self.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---------- chats ----------

    def send_chats(
        self,
        chats: Iterable[Chat],
        *,
        source: str = "api",
        into: str = "",
        rubric: str = "",
        split: str = "dev",
    ) -> SentChats:
        """
        Store chats, and add those that were stored to a chat set. Sending them again changes nothing.

        Parameters
        ----------
        chats : as lines of a file of chats (docs/reference/files.md).
        source : names the system that they are from.
        into : name of the chat set, created if it is new; "" for none.
        rubric : of a new set; optional while the workspace has one rubric.
        split : dev or train.
        """
        sent = SentChats()
        for batch in _batches(chats):
            answer = self._send(batch, source)
            for name in ("received", "created", "updated", "unchanged", "refused"):
                setattr(sent, name, getattr(sent, name) + getattr(answer, name))
            sent.problems += answer.errors
            refused = {one.index for one in answer.errors}
            stored = [str(chat["id"]) for place, chat in enumerate(batch) if place not in refused]
            if into and stored:
                sent.added_to_set += self._add(stored, source, into, rubric, split).added
        return sent

    def _send(self, batch: Sequence[Chat], source: str) -> ChatsOutput:
        body = ChatsInput.from_dict({"source": source, "chats": list(batch)})
        key = str(uuid4())  # for the retries of this request
        return _expect(
            ChatsOutput, lambda: chats_send.sync(client=self.client, body=body, idempotency_key=key)
        )

    def _add(self, ids: list[str], source: str, into: str, rubric: str, split: str) -> SetChatsOutput:
        values = {"set": into, "source": source, "split": split, "chats": ids}
        body = SetChatsInput.from_dict(values | ({"rubric": rubric} if rubric else {}))
        return _expect(SetChatsOutput, lambda: set_chats_add.sync(client=self.client, body=body))

    # ---------- runs ----------

    def start_run(self, chat_set: str, *, profile: str = "", **options: Any) -> int:
        """
        Start a run of a judge over a chat set; return its number.

        Parameters
        ----------
        profile : name of a judge profile; without one name an `engine`.
        options : further fields of `POST /api/runs/`, such as split, budget_usd, criteria.
        """
        named = {"profile": profile} if profile else {}
        values = {"set": chat_set, "client_id": str(uuid4())} | named | options
        body = RunInput.from_dict(values)
        return _expect(StartedOutput, lambda: run_start.sync(client=self.client, body=body)).id

    def wait_for_run(self, run_id: int, *, timeout: float = 3600.0) -> RunOutput:
        """Wait until a run is done, with or without failed units.

        Raises NotFinished for a run that is paused, cancelled or not done in time.
        """

        def look() -> RunOutput | None:
            row = _expect(RunOutput, lambda: run.sync(run_id, client=self.client))
            if row.state in ("paused", "cancelled"):
                why = f": {row.error}" if row.error else ""
                raise NotFinished(f"Run {run_id} is {row.state_label.lower()}{why}.")
            return None if row.state == "running" else row

        return self._wait(look, f"Run {run_id}", timeout)

    def report(self, run_id: int, *, split: str = "", timeout: float = 600.0) -> Report:
        """Return the alignment report of a run; of a large one once a worker has computed it."""
        try:
            found = run_report.sync(
                run_id, client=self.client, split=RunReportSplit(split) if split else UNSET
            )
        except InvalidRequest as problem:
            if problem.status != 409:
                raise

            def shared() -> Any:
                share_split = RunReportShareSplit(split) if split else UNSET
                return run_report_share.sync(run_id, client=self.client, split=share_split)

            found = self._wait(shared, f"The report of run {run_id}", timeout)
        return Report(cast(Any, found).to_dict())

    # ---------- the gate ----------

    def test_prompt(
        self,
        criterion: str,
        text: str,
        *,
        chat_set: str,
        reason: str,
        examples: Sequence[Mapping[str, Any]] = (),
        split: str = "dev",
        **options: Any,
    ) -> PromptTest:
        """
        Save a prompt as a version and start its regression test against the champion.

        Nothing is released. A text that is saved already is the version it was, and the champion's own text
        needs no test.

        Parameters
        ----------
        text : the prompt in Markdown.
        reason : what is new in it.
        examples : worked examples, as lines of an examples file.
        options : further fields of `POST /api/regressions/`, such as profile, budget_usd.
        """
        known = self._criterion(criterion)
        values = {"text": text, "examples": [dict(one) for one in examples], "reason": reason}
        # A version of somebody else since the champion is no obstacle: the test compares with the champion.
        body = NewVersionInput.from_dict(values | {"confirmed": 2**31 - 1})
        version = _expect(
            WrittenVersion, lambda: prompt_version_write.sync(criterion, client=self.client, body=body)
        ).number
        if version == known.champion:
            return PromptTest(criterion, version, None)
        asked = {"set": chat_set, "split": split, "criterion": criterion, "version": version}
        start = RegressionInput.from_dict(asked | {"client_id": str(uuid4())} | options)
        test = _expect(RegressionOutput, lambda: regression_start.sync(client=self.client, body=start))
        return PromptTest(criterion, version, test.test)

    def wait_for_test(self, test_id: int, *, timeout: float = 3600.0) -> RegressionOutput:
        """Wait for the gate's decision: `gate` is pass, fail or inconclusive.

        Raises NotFinished for a test that is cancelled, whose run is paused, or that takes too long.
        """

        def look() -> RegressionOutput | None:
            row = _expect(RegressionOutput, lambda: regression.sync(test_id, client=self.client))
            if row.state == "cancelled":
                raise NotFinished(f"Regression test {test_id} was cancelled.")
            for one in row.runs:
                if one.state == "paused":
                    raise NotFinished(f"Run {one.run} of regression test {test_id} is paused.")
            return row if row.gate else None

        return self._wait(look, f"Regression test {test_id}", timeout)

    def _criterion(self, key: str) -> CriterionRowOutput:
        rows = _expect(CriteriaOutput, lambda: criteria.sync(client=self.client)).criteria
        found = next((row for row in rows if row.key == key), None)
        if found is None:
            raise InvalidRequest(f"There is no criterion {key!r}.")
        return found

    def _wait(self, look: Callable[[], T | None], what: str, timeout: float) -> T:
        deadline, pause = time.monotonic() + timeout, min(FIRST_POLL_SECONDS, self._poll_seconds)
        while (found := look()) is None:
            if time.monotonic() >= deadline:
                raise NotFinished(f"{what} is not done after {timeout:.0f} seconds.")
            self._sleep(pause)
            pause = min(2 * pause, self._poll_seconds)
        return found


def _batches(chats: Iterable[Chat]) -> Iterator[list[Chat]]:
    rows = iter(chats)
    while batch := list(islice(rows, CHATS_AT_ONCE)):
        yield batch


def _expect(kind: type[T], ask: Callable[[], object]) -> T:
    """Return the answer. Raises Unreachable for one of another shape: that of another version."""
    try:
        found = ask()
    except (AttributeError, KeyError, TypeError, ValueError):
        found = None
    if not isinstance(found, kind):
        raise Unreachable("The workbench gave an answer that this client does not know. Update the client.")
    return found
