from http import HTTPStatus
from typing import Any

import httpx

from ....http import AuthenticatedClient, Client
from ... import errors
from ...models.detail_output import DetailOutput
from ...models.run_input import RunInput
from ...models.run_start_response_400 import RunStartResponse400
from ...models.started_output import StartedOutput
from ...types import Response


def _get_kwargs(
    *,
    body: RunInput,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/runs/",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> DetailOutput | RunStartResponse400 | StartedOutput | None:
    if response.status_code == 200:
        response_200 = StartedOutput.from_dict(response.json())

        return response_200

    if response.status_code == 202:
        response_202 = StartedOutput.from_dict(response.json())

        return response_202

    if response.status_code == 400:
        response_400 = RunStartResponse400.from_dict(response.json())

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
) -> Response[DetailOutput | RunStartResponse400 | StartedOutput]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    body: RunInput,
) -> Response[DetailOutput | RunStartResponse400 | StartedOutput]:
    """Plan a run; workers process it. 200 if the same `client_id` has started it before.

    Args:
        body (RunInput): A run to start. The judge: a `profile`, an `engine`, or both; settings
            override the profile's.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | RunStartResponse400 | StartedOutput]
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
    body: RunInput,
) -> DetailOutput | RunStartResponse400 | StartedOutput | None:
    """Plan a run; workers process it. 200 if the same `client_id` has started it before.

    Args:
        body (RunInput): A run to start. The judge: a `profile`, an `engine`, or both; settings
            override the profile's.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | RunStartResponse400 | StartedOutput
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    body: RunInput,
) -> Response[DetailOutput | RunStartResponse400 | StartedOutput]:
    """Plan a run; workers process it. 200 if the same `client_id` has started it before.

    Args:
        body (RunInput): A run to start. The judge: a `profile`, an `engine`, or both; settings
            override the profile's.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | RunStartResponse400 | StartedOutput]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    body: RunInput,
) -> DetailOutput | RunStartResponse400 | StartedOutput | None:
    """Plan a run; workers process it. 200 if the same `client_id` has started it before.

    Args:
        body (RunInput): A run to start. The judge: a `profile`, an `engine`, or both; settings
            override the profile's.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | RunStartResponse400 | StartedOutput
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
