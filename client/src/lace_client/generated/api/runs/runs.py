from http import HTTPStatus
from typing import Any

import httpx

from ....http import AuthenticatedClient, Client
from ... import errors
from ...models.detail_output import DetailOutput
from ...models.paginated_run_row_output_list import PaginatedRunRowOutputList
from ...models.runs_purpose import RunsPurpose
from ...models.runs_response_400 import RunsResponse400
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    cursor: str | Unset = UNSET,
    purpose: RunsPurpose | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    json_purpose: str | Unset = UNSET
    if not isinstance(purpose, Unset):
        json_purpose = purpose.value

    params["purpose"] = json_purpose

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/runs/",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> DetailOutput | PaginatedRunRowOutputList | RunsResponse400 | None:
    if response.status_code == 200:
        response_200 = PaginatedRunRowOutputList.from_dict(response.json())

        return response_200

    if response.status_code == 400:
        response_400 = RunsResponse400.from_dict(response.json())

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
) -> Response[DetailOutput | PaginatedRunRowOutputList | RunsResponse400]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    purpose: RunsPurpose | Unset = UNSET,
) -> Response[DetailOutput | PaginatedRunRowOutputList | RunsResponse400]:
    """One page of runs, newest first.

    Args:
        cursor (str | Unset):
        purpose (RunsPurpose | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | PaginatedRunRowOutputList | RunsResponse400]
    """

    kwargs = _get_kwargs(
        cursor=cursor,
        purpose=purpose,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    purpose: RunsPurpose | Unset = UNSET,
) -> DetailOutput | PaginatedRunRowOutputList | RunsResponse400 | None:
    """One page of runs, newest first.

    Args:
        cursor (str | Unset):
        purpose (RunsPurpose | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | PaginatedRunRowOutputList | RunsResponse400
    """

    return sync_detailed(
        client=client,
        cursor=cursor,
        purpose=purpose,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    purpose: RunsPurpose | Unset = UNSET,
) -> Response[DetailOutput | PaginatedRunRowOutputList | RunsResponse400]:
    """One page of runs, newest first.

    Args:
        cursor (str | Unset):
        purpose (RunsPurpose | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | PaginatedRunRowOutputList | RunsResponse400]
    """

    kwargs = _get_kwargs(
        cursor=cursor,
        purpose=purpose,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    purpose: RunsPurpose | Unset = UNSET,
) -> DetailOutput | PaginatedRunRowOutputList | RunsResponse400 | None:
    """One page of runs, newest first.

    Args:
        cursor (str | Unset):
        purpose (RunsPurpose | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | PaginatedRunRowOutputList | RunsResponse400
    """

    return (
        await asyncio_detailed(
            client=client,
            cursor=cursor,
            purpose=purpose,
        )
    ).parsed
