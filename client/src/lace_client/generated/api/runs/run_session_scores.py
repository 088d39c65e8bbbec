import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ....http import AuthenticatedClient, Client
from ... import errors
from ...models.detail_output import DetailOutput
from ...models.paginated_session_score_output_list import PaginatedSessionScoreOutputList
from ...models.run_session_scores_response_400 import RunSessionScoresResponse400
from ...models.run_session_scores_split import RunSessionScoresSplit
from ...types import UNSET, Response, Unset


def _get_kwargs(
    run_id: int,
    *,
    against: str | Unset = UNSET,
    cursor: str | Unset = UNSET,
    page_size: int | Unset = UNSET,
    since: datetime.date | Unset = UNSET,
    split: RunSessionScoresSplit | Unset = UNSET,
    topic: str | Unset = UNSET,
    until: datetime.date | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["against"] = against

    params["cursor"] = cursor

    params["page_size"] = page_size

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
        "url": "/api/runs/{run_id}/session_scores/".format(
            run_id=quote(str(run_id), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> DetailOutput | PaginatedSessionScoreOutputList | RunSessionScoresResponse400 | None:
    if response.status_code == 200:
        response_200 = PaginatedSessionScoreOutputList.from_dict(response.json())

        return response_200

    if response.status_code == 400:
        response_400 = RunSessionScoresResponse400.from_dict(response.json())

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
) -> Response[DetailOutput | PaginatedSessionScoreOutputList | RunSessionScoresResponse400]:
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
    cursor: str | Unset = UNSET,
    page_size: int | Unset = UNSET,
    since: datetime.date | Unset = UNSET,
    split: RunSessionScoresSplit | Unset = UNSET,
    topic: str | Unset = UNSET,
    until: datetime.date | Unset = UNSET,
) -> Response[DetailOutput | PaginatedSessionScoreOutputList | RunSessionScoresResponse400]:
    """The session scores of a run's chats, in the set's order, without chats that you cannot see.

    Args:
        run_id (int):
        against (str | Unset):
        cursor (str | Unset):
        page_size (int | Unset):
        since (datetime.date | Unset):
        split (RunSessionScoresSplit | Unset):
        topic (str | Unset):
        until (datetime.date | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | PaginatedSessionScoreOutputList | RunSessionScoresResponse400]
    """

    kwargs = _get_kwargs(
        run_id=run_id,
        against=against,
        cursor=cursor,
        page_size=page_size,
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
    cursor: str | Unset = UNSET,
    page_size: int | Unset = UNSET,
    since: datetime.date | Unset = UNSET,
    split: RunSessionScoresSplit | Unset = UNSET,
    topic: str | Unset = UNSET,
    until: datetime.date | Unset = UNSET,
) -> DetailOutput | PaginatedSessionScoreOutputList | RunSessionScoresResponse400 | None:
    """The session scores of a run's chats, in the set's order, without chats that you cannot see.

    Args:
        run_id (int):
        against (str | Unset):
        cursor (str | Unset):
        page_size (int | Unset):
        since (datetime.date | Unset):
        split (RunSessionScoresSplit | Unset):
        topic (str | Unset):
        until (datetime.date | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | PaginatedSessionScoreOutputList | RunSessionScoresResponse400
    """

    return sync_detailed(
        run_id=run_id,
        client=client,
        against=against,
        cursor=cursor,
        page_size=page_size,
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
    cursor: str | Unset = UNSET,
    page_size: int | Unset = UNSET,
    since: datetime.date | Unset = UNSET,
    split: RunSessionScoresSplit | Unset = UNSET,
    topic: str | Unset = UNSET,
    until: datetime.date | Unset = UNSET,
) -> Response[DetailOutput | PaginatedSessionScoreOutputList | RunSessionScoresResponse400]:
    """The session scores of a run's chats, in the set's order, without chats that you cannot see.

    Args:
        run_id (int):
        against (str | Unset):
        cursor (str | Unset):
        page_size (int | Unset):
        since (datetime.date | Unset):
        split (RunSessionScoresSplit | Unset):
        topic (str | Unset):
        until (datetime.date | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | PaginatedSessionScoreOutputList | RunSessionScoresResponse400]
    """

    kwargs = _get_kwargs(
        run_id=run_id,
        against=against,
        cursor=cursor,
        page_size=page_size,
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
    cursor: str | Unset = UNSET,
    page_size: int | Unset = UNSET,
    since: datetime.date | Unset = UNSET,
    split: RunSessionScoresSplit | Unset = UNSET,
    topic: str | Unset = UNSET,
    until: datetime.date | Unset = UNSET,
) -> DetailOutput | PaginatedSessionScoreOutputList | RunSessionScoresResponse400 | None:
    """The session scores of a run's chats, in the set's order, without chats that you cannot see.

    Args:
        run_id (int):
        against (str | Unset):
        cursor (str | Unset):
        page_size (int | Unset):
        since (datetime.date | Unset):
        split (RunSessionScoresSplit | Unset):
        topic (str | Unset):
        until (datetime.date | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | PaginatedSessionScoreOutputList | RunSessionScoresResponse400
    """

    return (
        await asyncio_detailed(
            run_id=run_id,
            client=client,
            against=against,
            cursor=cursor,
            page_size=page_size,
            since=since,
            split=split,
            topic=topic,
            until=until,
        )
    ).parsed
