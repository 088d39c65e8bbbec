from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ....http import AuthenticatedClient, Client
from ... import errors
from ...models.detail_output import DetailOutput
from ...models.new_version_input import NewVersionInput
from ...models.problem_output import ProblemOutput
from ...models.prompt_version_write_response_400 import PromptVersionWriteResponse400
from ...models.written_version import WrittenVersion
from ...types import Response


def _get_kwargs(
    key: str,
    *,
    body: NewVersionInput,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/criteria/{key}/prompts/".format(
            key=quote(str(key), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> DetailOutput | ProblemOutput | PromptVersionWriteResponse400 | WrittenVersion | None:
    if response.status_code == 200:
        response_200 = WrittenVersion.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = WrittenVersion.from_dict(response.json())

        return response_201

    if response.status_code == 400:
        response_400 = PromptVersionWriteResponse400.from_dict(response.json())

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

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[DetailOutput | ProblemOutput | PromptVersionWriteResponse400 | WrittenVersion]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    key: str,
    *,
    client: AuthenticatedClient,
    body: NewVersionInput,
) -> Response[DetailOutput | ProblemOutput | PromptVersionWriteResponse400 | WrittenVersion]:
    """Save a version and delete an equal draft. 200 with the earlier version if it has the same content.

    409 if versions newer than `base` are not `confirmed`; `versions` lists them.

    Args:
        key (str):
        body (NewVersionInput): A new version; `base` is the number of the version it started
            from, by default the champion.

            `confirmed` is the number of the newest version that you know.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | ProblemOutput | PromptVersionWriteResponse400 | WrittenVersion]
    """

    kwargs = _get_kwargs(
        key=key,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    key: str,
    *,
    client: AuthenticatedClient,
    body: NewVersionInput,
) -> DetailOutput | ProblemOutput | PromptVersionWriteResponse400 | WrittenVersion | None:
    """Save a version and delete an equal draft. 200 with the earlier version if it has the same content.

    409 if versions newer than `base` are not `confirmed`; `versions` lists them.

    Args:
        key (str):
        body (NewVersionInput): A new version; `base` is the number of the version it started
            from, by default the champion.

            `confirmed` is the number of the newest version that you know.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | ProblemOutput | PromptVersionWriteResponse400 | WrittenVersion
    """

    return sync_detailed(
        key=key,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    key: str,
    *,
    client: AuthenticatedClient,
    body: NewVersionInput,
) -> Response[DetailOutput | ProblemOutput | PromptVersionWriteResponse400 | WrittenVersion]:
    """Save a version and delete an equal draft. 200 with the earlier version if it has the same content.

    409 if versions newer than `base` are not `confirmed`; `versions` lists them.

    Args:
        key (str):
        body (NewVersionInput): A new version; `base` is the number of the version it started
            from, by default the champion.

            `confirmed` is the number of the newest version that you know.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | ProblemOutput | PromptVersionWriteResponse400 | WrittenVersion]
    """

    kwargs = _get_kwargs(
        key=key,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    key: str,
    *,
    client: AuthenticatedClient,
    body: NewVersionInput,
) -> DetailOutput | ProblemOutput | PromptVersionWriteResponse400 | WrittenVersion | None:
    """Save a version and delete an equal draft. 200 with the earlier version if it has the same content.

    409 if versions newer than `base` are not `confirmed`; `versions` lists them.

    Args:
        key (str):
        body (NewVersionInput): A new version; `base` is the number of the version it started
            from, by default the champion.

            `confirmed` is the number of the newest version that you know.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | ProblemOutput | PromptVersionWriteResponse400 | WrittenVersion
    """

    return (
        await asyncio_detailed(
            key=key,
            client=client,
            body=body,
        )
    ).parsed
