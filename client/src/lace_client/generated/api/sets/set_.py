from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ....http import AuthenticatedClient, Client
from ... import errors
from ...models.detail_output import DetailOutput
from ...models.set_output import SetOutput
from ...models.set_response_400 import SetResponse400
from ...types import Response


def _get_kwargs(
    set_id: int,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/sets/{set_id}/".format(
            set_id=quote(str(set_id), safe=""),
        ),
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> DetailOutput | SetOutput | SetResponse400 | None:
    if response.status_code == 200:
        response_200 = SetOutput.from_dict(response.json())

        return response_200

    if response.status_code == 400:
        response_400 = SetResponse400.from_dict(response.json())

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
) -> Response[DetailOutput | SetOutput | SetResponse400]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    set_id: int,
    *,
    client: AuthenticatedClient,
) -> Response[DetailOutput | SetOutput | SetResponse400]:
    """The chat set with its numbers of chats and open jobs.

    Args:
        set_id (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | SetOutput | SetResponse400]
    """

    kwargs = _get_kwargs(
        set_id=set_id,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    set_id: int,
    *,
    client: AuthenticatedClient,
) -> DetailOutput | SetOutput | SetResponse400 | None:
    """The chat set with its numbers of chats and open jobs.

    Args:
        set_id (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | SetOutput | SetResponse400
    """

    return sync_detailed(
        set_id=set_id,
        client=client,
    ).parsed


async def asyncio_detailed(
    set_id: int,
    *,
    client: AuthenticatedClient,
) -> Response[DetailOutput | SetOutput | SetResponse400]:
    """The chat set with its numbers of chats and open jobs.

    Args:
        set_id (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | SetOutput | SetResponse400]
    """

    kwargs = _get_kwargs(
        set_id=set_id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    set_id: int,
    *,
    client: AuthenticatedClient,
) -> DetailOutput | SetOutput | SetResponse400 | None:
    """The chat set with its numbers of chats and open jobs.

    Args:
        set_id (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | SetOutput | SetResponse400
    """

    return (
        await asyncio_detailed(
            set_id=set_id,
            client=client,
        )
    ).parsed
