from http import HTTPStatus
from typing import Any

import httpx

from ....http import AuthenticatedClient, Client
from ... import errors
from ...models.detail_output import DetailOutput
from ...models.set_chats_add_response_400 import SetChatsAddResponse400
from ...models.set_chats_input import SetChatsInput
from ...models.set_chats_output import SetChatsOutput
from ...types import Response


def _get_kwargs(
    *,
    body: SetChatsInput,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/sets/",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> DetailOutput | SetChatsAddResponse400 | SetChatsOutput | None:
    if response.status_code == 200:
        response_200 = SetChatsOutput.from_dict(response.json())

        return response_200

    if response.status_code == 400:
        response_400 = SetChatsAddResponse400.from_dict(response.json())

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

    if response.status_code == 415:
        response_415 = DetailOutput.from_dict(response.json())

        return response_415

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[DetailOutput | SetChatsAddResponse400 | SetChatsOutput]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    body: SetChatsInput,
) -> Response[DetailOutput | SetChatsAddResponse400 | SetChatsOutput]:
    """Add stored chats to a chat set; the same request again changes nothing.

    Args:
        body (SetChatsInput): Stored chats that are added to a set, by their ids; a set that does
            not exist is created.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | SetChatsAddResponse400 | SetChatsOutput]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    body: SetChatsInput,
) -> DetailOutput | SetChatsAddResponse400 | SetChatsOutput | None:
    """Add stored chats to a chat set; the same request again changes nothing.

    Args:
        body (SetChatsInput): Stored chats that are added to a set, by their ids; a set that does
            not exist is created.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | SetChatsAddResponse400 | SetChatsOutput
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    body: SetChatsInput,
) -> Response[DetailOutput | SetChatsAddResponse400 | SetChatsOutput]:
    """Add stored chats to a chat set; the same request again changes nothing.

    Args:
        body (SetChatsInput): Stored chats that are added to a set, by their ids; a set that does
            not exist is created.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | SetChatsAddResponse400 | SetChatsOutput]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    body: SetChatsInput,
) -> DetailOutput | SetChatsAddResponse400 | SetChatsOutput | None:
    """Add stored chats to a chat set; the same request again changes nothing.

    Args:
        body (SetChatsInput): Stored chats that are added to a set, by their ids; a set that does
            not exist is created.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | SetChatsAddResponse400 | SetChatsOutput
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
