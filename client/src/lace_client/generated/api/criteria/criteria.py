from http import HTTPStatus
from typing import Any

import httpx

from ....http import AuthenticatedClient, Client
from ... import errors
from ...models.criteria_output import CriteriaOutput
from ...models.criteria_response_400 import CriteriaResponse400
from ...models.detail_output import DetailOutput
from ...types import Response


def _get_kwargs() -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/criteria/",
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> CriteriaOutput | CriteriaResponse400 | DetailOutput | None:
    if response.status_code == 200:
        response_200 = CriteriaOutput.from_dict(response.json())

        return response_200

    if response.status_code == 400:
        response_400 = CriteriaResponse400.from_dict(response.json())

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
) -> Response[CriteriaOutput | CriteriaResponse400 | DetailOutput]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
) -> Response[CriteriaOutput | CriteriaResponse400 | DetailOutput]:
    """Criteria by rubric and dimension, retired ones last, with the text in force and the champion.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CriteriaOutput | CriteriaResponse400 | DetailOutput]
    """

    kwargs = _get_kwargs()

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
) -> CriteriaOutput | CriteriaResponse400 | DetailOutput | None:
    """Criteria by rubric and dimension, retired ones last, with the text in force and the champion.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CriteriaOutput | CriteriaResponse400 | DetailOutput
    """

    return sync_detailed(
        client=client,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
) -> Response[CriteriaOutput | CriteriaResponse400 | DetailOutput]:
    """Criteria by rubric and dimension, retired ones last, with the text in force and the champion.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CriteriaOutput | CriteriaResponse400 | DetailOutput]
    """

    kwargs = _get_kwargs()

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
) -> CriteriaOutput | CriteriaResponse400 | DetailOutput | None:
    """Criteria by rubric and dimension, retired ones last, with the text in force and the champion.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CriteriaOutput | CriteriaResponse400 | DetailOutput
    """

    return (
        await asyncio_detailed(
            client=client,
        )
    ).parsed
