import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ....http import AuthenticatedClient, Client
from ... import errors
from ...models.detail_output import DetailOutput
from ...models.problem_output import ProblemOutput
from ...models.run_report_response_200 import RunReportResponse200
from ...models.run_report_response_400 import RunReportResponse400
from ...models.run_report_split import RunReportSplit
from ...types import UNSET, Response, Unset


def _get_kwargs(
    run_id: int,
    *,
    against: str | Unset = UNSET,
    since: datetime.date | Unset = UNSET,
    split: RunReportSplit | Unset = UNSET,
    topic: str | Unset = UNSET,
    until: datetime.date | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["against"] = against

    json_since: str | Unset = UNSET
    if not isinstance(since, Unset):
        json_since = since.isoformat()
    params["since"] = json_since

    json_split: str | Unset = UNSET
    if not isinstance(split, Unset):
        json_split = split.value

    params["split"] = json_split

    params["topic"] = topic

    json_until: str | Unset = UNSET
    if not isinstance(until, Unset):
        json_until = until.isoformat()
    params["until"] = json_until

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/runs/{run_id}/alignment_report/".format(
            run_id=quote(str(run_id), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> DetailOutput | ProblemOutput | RunReportResponse200 | RunReportResponse400 | None:
    if response.status_code == 200:
        response_200 = RunReportResponse200.from_dict(response.json())

        return response_200

    if response.status_code == 400:
        response_400 = RunReportResponse400.from_dict(response.json())

        return response_400

    if response.status_code == 401:
        response_401 = DetailOutput.from_dict(response.json())

        return response_401

    if response.status_code == 403:
        response_403 = DetailOutput.from_dict(response.json())

        return response_403

    if response.status_code == 404:
        response_404 = DetailOutput.from_dict(response.json())

        return response_404

    if response.status_code == 406:
        response_406 = DetailOutput.from_dict(response.json())

        return response_406

    if response.status_code == 409:
        response_409 = ProblemOutput.from_dict(response.json())

        return response_409

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[DetailOutput | ProblemOutput | RunReportResponse200 | RunReportResponse400]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    run_id: int,
    *,
    client: AuthenticatedClient,
    against: str | Unset = UNSET,
    since: datetime.date | Unset = UNSET,
    split: RunReportSplit | Unset = UNSET,
    topic: str | Unset = UNSET,
    until: datetime.date | Unset = UNSET,
) -> Response[DetailOutput | ProblemOutput | RunReportResponse200 | RunReportResponse400]:
    """Agreement of a run's judge with the raters, by criterion.

    Args:
        run_id (int):
        against (str | Unset):
        since (datetime.date | Unset):
        split (RunReportSplit | Unset):
        topic (str | Unset):
        until (datetime.date | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | ProblemOutput | RunReportResponse200 | RunReportResponse400]
    """

    kwargs = _get_kwargs(
        run_id=run_id,
        against=against,
        since=since,
        split=split,
        topic=topic,
        until=until,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    run_id: int,
    *,
    client: AuthenticatedClient,
    against: str | Unset = UNSET,
    since: datetime.date | Unset = UNSET,
    split: RunReportSplit | Unset = UNSET,
    topic: str | Unset = UNSET,
    until: datetime.date | Unset = UNSET,
) -> DetailOutput | ProblemOutput | RunReportResponse200 | RunReportResponse400 | None:
    """Agreement of a run's judge with the raters, by criterion.

    Args:
        run_id (int):
        against (str | Unset):
        since (datetime.date | Unset):
        split (RunReportSplit | Unset):
        topic (str | Unset):
        until (datetime.date | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | ProblemOutput | RunReportResponse200 | RunReportResponse400
    """

    return sync_detailed(
        run_id=run_id,
        client=client,
        against=against,
        since=since,
        split=split,
        topic=topic,
        until=until,
    ).parsed


async def asyncio_detailed(
    run_id: int,
    *,
    client: AuthenticatedClient,
    against: str | Unset = UNSET,
    since: datetime.date | Unset = UNSET,
    split: RunReportSplit | Unset = UNSET,
    topic: str | Unset = UNSET,
    until: datetime.date | Unset = UNSET,
) -> Response[DetailOutput | ProblemOutput | RunReportResponse200 | RunReportResponse400]:
    """Agreement of a run's judge with the raters, by criterion.

    Args:
        run_id (int):
        against (str | Unset):
        since (datetime.date | Unset):
        split (RunReportSplit | Unset):
        topic (str | Unset):
        until (datetime.date | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | ProblemOutput | RunReportResponse200 | RunReportResponse400]
    """

    kwargs = _get_kwargs(
        run_id=run_id,
        against=against,
        since=since,
        split=split,
        topic=topic,
        until=until,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    run_id: int,
    *,
    client: AuthenticatedClient,
    against: str | Unset = UNSET,
    since: datetime.date | Unset = UNSET,
    split: RunReportSplit | Unset = UNSET,
    topic: str | Unset = UNSET,
    until: datetime.date | Unset = UNSET,
) -> DetailOutput | ProblemOutput | RunReportResponse200 | RunReportResponse400 | None:
    """Agreement of a run's judge with the raters, by criterion.

    Args:
        run_id (int):
        against (str | Unset):
        since (datetime.date | Unset):
        split (RunReportSplit | Unset):
        topic (str | Unset):
        until (datetime.date | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | ProblemOutput | RunReportResponse200 | RunReportResponse400
    """

    return (
        await asyncio_detailed(
            run_id=run_id,
            client=client,
            against=against,
            since=since,
            split=split,
            topic=topic,
            until=until,
        )
    ).parsed
