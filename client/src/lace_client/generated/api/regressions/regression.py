from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ....http import AuthenticatedClient, Client
from ... import errors
from ...models.detail_output import DetailOutput
from ...models.regression_output import RegressionOutput
from ...models.regression_response_400 import RegressionResponse400
from ...types import Response


def _get_kwargs(
    test_id: int,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/regressions/{test_id}/".format(
            test_id=quote(str(test_id), safe=""),
        ),
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> DetailOutput | RegressionOutput | RegressionResponse400 | None:
    if response.status_code == 200:
        response_200 = RegressionOutput.from_dict(response.json())

        return response_200

    if response.status_code == 400:
        response_400 = RegressionResponse400.from_dict(response.json())

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
) -> Response[DetailOutput | RegressionOutput | RegressionResponse400]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    test_id: int,
    *,
    client: AuthenticatedClient,
) -> Response[DetailOutput | RegressionOutput | RegressionResponse400]:
    """The test's progress, and its results when it is done.

    Args:
        test_id (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | RegressionOutput | RegressionResponse400]
    """

    kwargs = _get_kwargs(
        test_id=test_id,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    test_id: int,
    *,
    client: AuthenticatedClient,
) -> DetailOutput | RegressionOutput | RegressionResponse400 | None:
    """The test's progress, and its results when it is done.

    Args:
        test_id (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | RegressionOutput | RegressionResponse400
    """

    return sync_detailed(
        test_id=test_id,
        client=client,
    ).parsed


async def asyncio_detailed(
    test_id: int,
    *,
    client: AuthenticatedClient,
) -> Response[DetailOutput | RegressionOutput | RegressionResponse400]:
    """The test's progress, and its results when it is done.

    Args:
        test_id (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | RegressionOutput | RegressionResponse400]
    """

    kwargs = _get_kwargs(
        test_id=test_id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    test_id: int,
    *,
    client: AuthenticatedClient,
) -> DetailOutput | RegressionOutput | RegressionResponse400 | None:
    """The test's progress, and its results when it is done.

    Args:
        test_id (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | RegressionOutput | RegressionResponse400
    """

    return (
        await asyncio_detailed(
            test_id=test_id,
            client=client,
        )
    ).parsed
