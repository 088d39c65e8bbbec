import datetime
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ....http import AuthenticatedClient, Client
from ... import errors
from ...models.detail_output import DetailOutput
from ...models.run_report_share_response_201 import RunReportShareResponse201
from ...models.run_report_share_split import RunReportShareSplit
from ...types import UNSET, Response, Unset


def _get_kwargs(
    run_id: int,
    *,
    against: str | Unset = UNSET,
    since: datetime.date | Unset = UNSET,
    split: RunReportShareSplit | Unset = UNSET,
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
        "method": "post",
        "url": "/api/runs/{run_id}/alignment_report/".format(
            run_id=quote(str(run_id), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Any | DetailOutput | RunReportShareResponse201 | None:
    if response.status_code == 201:
        response_201 = RunReportShareResponse201.from_dict(response.json())

        return response_201

    if response.status_code == 202:
        response_202 = cast(Any, None)
        return response_202

    if response.status_code == 400:
        response_400 = cast(Any, None)
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

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[Any | DetailOutput | RunReportShareResponse201]:
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
    split: RunReportShareSplit | Unset = UNSET,
    topic: str | Unset = UNSET,
    until: datetime.date | Unset = UNSET,
) -> Response[Any | DetailOutput | RunReportShareResponse201]:
    """Store the report under an id that stays. 202 while a worker computes it: repeat the request.

    Args:
        run_id (int):
        against (str | Unset):
        since (datetime.date | Unset):
        split (RunReportShareSplit | Unset):
        topic (str | Unset):
        until (datetime.date | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | DetailOutput | RunReportShareResponse201]
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
    split: RunReportShareSplit | Unset = UNSET,
    topic: str | Unset = UNSET,
    until: datetime.date | Unset = UNSET,
) -> Any | DetailOutput | RunReportShareResponse201 | None:
    """Store the report under an id that stays. 202 while a worker computes it: repeat the request.

    Args:
        run_id (int):
        against (str | Unset):
        since (datetime.date | Unset):
        split (RunReportShareSplit | Unset):
        topic (str | Unset):
        until (datetime.date | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | DetailOutput | RunReportShareResponse201
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
    split: RunReportShareSplit | Unset = UNSET,
    topic: str | Unset = UNSET,
    until: datetime.date | Unset = UNSET,
) -> Response[Any | DetailOutput | RunReportShareResponse201]:
    """Store the report under an id that stays. 202 while a worker computes it: repeat the request.

    Args:
        run_id (int):
        against (str | Unset):
        since (datetime.date | Unset):
        split (RunReportShareSplit | Unset):
        topic (str | Unset):
        until (datetime.date | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | DetailOutput | RunReportShareResponse201]
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
    split: RunReportShareSplit | Unset = UNSET,
    topic: str | Unset = UNSET,
    until: datetime.date | Unset = UNSET,
) -> Any | DetailOutput | RunReportShareResponse201 | None:
    """Store the report under an id that stays. 202 while a worker computes it: repeat the request.

    Args:
        run_id (int):
        against (str | Unset):
        since (datetime.date | Unset):
        split (RunReportShareSplit | Unset):
        topic (str | Unset):
        until (datetime.date | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | DetailOutput | RunReportShareResponse201
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
