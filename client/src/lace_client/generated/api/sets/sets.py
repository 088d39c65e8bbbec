from http import HTTPStatus
from typing import Any

import httpx

from ....http import AuthenticatedClient, Client
from ... import errors
from ...models.detail_output import DetailOutput
from ...models.sets_output import SetsOutput
from ...models.sets_response_400 import SetsResponse400
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    plan: int | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["plan"] = plan

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/sets/",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> DetailOutput | SetsOutput | SetsResponse400 | None:
    if response.status_code == 200:
        response_200 = SetsOutput.from_dict(response.json())

        return response_200

    if response.status_code == 400:
        response_400 = SetsResponse400.from_dict(response.json())

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
) -> Response[DetailOutput | SetsOutput | SetsResponse400]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    plan: int | Unset = UNSET,
) -> Response[DetailOutput | SetsOutput | SetsResponse400]:
    """Every chat set by name, with the id that other addresses use; those of sample plans by `plan`.

    Args:
        plan (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | SetsOutput | SetsResponse400]
    """

    kwargs = _get_kwargs(
        plan=plan,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    plan: int | Unset = UNSET,
) -> DetailOutput | SetsOutput | SetsResponse400 | None:
    """Every chat set by name, with the id that other addresses use; those of sample plans by `plan`.

    Args:
        plan (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | SetsOutput | SetsResponse400
    """

    return sync_detailed(
        client=client,
        plan=plan,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    plan: int | Unset = UNSET,
) -> Response[DetailOutput | SetsOutput | SetsResponse400]:
    """Every chat set by name, with the id that other addresses use; those of sample plans by `plan`.

    Args:
        plan (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | SetsOutput | SetsResponse400]
    """

    kwargs = _get_kwargs(
        plan=plan,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    plan: int | Unset = UNSET,
) -> DetailOutput | SetsOutput | SetsResponse400 | None:
    """Every chat set by name, with the id that other addresses use; those of sample plans by `plan`.

    Args:
        plan (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | SetsOutput | SetsResponse400
    """

    return (
        await asyncio_detailed(
            client=client,
            plan=plan,
        )
    ).parsed
