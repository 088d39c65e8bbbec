from http import HTTPStatus
from typing import Any

import httpx

from ....http import AuthenticatedClient, Client
from ... import errors
from ...models.chats_input import ChatsInput
from ...models.chats_output import ChatsOutput
from ...models.chats_send_response_400 import ChatsSendResponse400
from ...models.detail_output import DetailOutput
from ...models.problem_output import ProblemOutput
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    body: ChatsInput,
    idempotency_key: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/chats/",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ChatsOutput | ChatsSendResponse400 | DetailOutput | ProblemOutput | None:
    if response.status_code == 200:
        response_200 = ChatsOutput.from_dict(response.json())

        return response_200

    if response.status_code == 400:
        response_400 = ChatsSendResponse400.from_dict(response.json())

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

    if response.status_code == 415:
        response_415 = DetailOutput.from_dict(response.json())

        return response_415

    if response.status_code == 503:
        response_503 = DetailOutput.from_dict(response.json())

        return response_503

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ChatsOutput | ChatsSendResponse400 | DetailOutput | ProblemOutput]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    body: ChatsInput,
    idempotency_key: str | Unset = UNSET,
) -> Response[ChatsOutput | ChatsSendResponse400 | DetailOutput | ProblemOutput]:
    """Store up to 5,000 chats; the same chats again change nothing.

    Wrong chats are named in `errors`, all others are stored. A chat may grow by messages
    until it is sampled. The body may be packed with gzip. 409 `other_body`: the Idempotency-Key came
    with
    another body. 409 `in_progress`: its first request is still at work. 503: names are to be redacted,
    and the server cannot find them now; nothing was stored, send it again.

    Args:
        idempotency_key (str | Unset):
        body (ChatsInput): The chats of one system.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ChatsOutput | ChatsSendResponse400 | DetailOutput | ProblemOutput]
    """

    kwargs = _get_kwargs(
        body=body,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    body: ChatsInput,
    idempotency_key: str | Unset = UNSET,
) -> ChatsOutput | ChatsSendResponse400 | DetailOutput | ProblemOutput | None:
    """Store up to 5,000 chats; the same chats again change nothing.

    Wrong chats are named in `errors`, all others are stored. A chat may grow by messages
    until it is sampled. The body may be packed with gzip. 409 `other_body`: the Idempotency-Key came
    with
    another body. 409 `in_progress`: its first request is still at work. 503: names are to be redacted,
    and the server cannot find them now; nothing was stored, send it again.

    Args:
        idempotency_key (str | Unset):
        body (ChatsInput): The chats of one system.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ChatsOutput | ChatsSendResponse400 | DetailOutput | ProblemOutput
    """

    return sync_detailed(
        client=client,
        body=body,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    body: ChatsInput,
    idempotency_key: str | Unset = UNSET,
) -> Response[ChatsOutput | ChatsSendResponse400 | DetailOutput | ProblemOutput]:
    """Store up to 5,000 chats; the same chats again change nothing.

    Wrong chats are named in `errors`, all others are stored. A chat may grow by messages
    until it is sampled. The body may be packed with gzip. 409 `other_body`: the Idempotency-Key came
    with
    another body. 409 `in_progress`: its first request is still at work. 503: names are to be redacted,
    and the server cannot find them now; nothing was stored, send it again.

    Args:
        idempotency_key (str | Unset):
        body (ChatsInput): The chats of one system.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ChatsOutput | ChatsSendResponse400 | DetailOutput | ProblemOutput]
    """

    kwargs = _get_kwargs(
        body=body,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    body: ChatsInput,
    idempotency_key: str | Unset = UNSET,
) -> ChatsOutput | ChatsSendResponse400 | DetailOutput | ProblemOutput | None:
    """Store up to 5,000 chats; the same chats again change nothing.

    Wrong chats are named in `errors`, all others are stored. A chat may grow by messages
    until it is sampled. The body may be packed with gzip. 409 `other_body`: the Idempotency-Key came
    with
    another body. 409 `in_progress`: its first request is still at work. 503: names are to be redacted,
    and the server cannot find them now; nothing was stored, send it again.

    Args:
        idempotency_key (str | Unset):
        body (ChatsInput): The chats of one system.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ChatsOutput | ChatsSendResponse400 | DetailOutput | ProblemOutput
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
