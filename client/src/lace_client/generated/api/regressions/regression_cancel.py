from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ....http import AuthenticatedClient, Client
from ... import errors
from ...models.detail_output import DetailOutput
from ...models.problem_output import ProblemOutput
from ...models.regression_cancel_response_400 import RegressionCancelResponse400
from ...models.regression_output import RegressionOutput
from ...types import Response


def _get_kwargs(
    test_id: int,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/regressions/{test_id}/cancel/".format(
            test_id=quote(str(test_id), safe=""),
        ),
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> DetailOutput | ProblemOutput | RegressionCancelResponse400 | RegressionOutput | None:
    if response.status_code == 200:
        response_200 = RegressionOutput.from_dict(response.json())

        return response_200

    if response.status_code == 400:
        response_400 = RegressionCancelResponse400.from_dict(response.json())

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

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[DetailOutput | ProblemOutput | RegressionCancelResponse400 | RegressionOutput]:
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
) -> Response[DetailOutput | ProblemOutput | RegressionCancelResponse400 | RegressionOutput]:
    """Cancel a test. Returns the test in its new state.

    Args:
        test_id (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | ProblemOutput | RegressionCancelResponse400 | RegressionOutput]
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
) -> DetailOutput | ProblemOutput | RegressionCancelResponse400 | RegressionOutput | None:
    """Cancel a test. Returns the test in its new state.

    Args:
        test_id (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | ProblemOutput | RegressionCancelResponse400 | RegressionOutput
    """

    return sync_detailed(
        test_id=test_id,
        client=client,
    ).parsed


async def asyncio_detailed(
    test_id: int,
    *,
    client: AuthenticatedClient,
) -> Response[DetailOutput | ProblemOutput | RegressionCancelResponse400 | RegressionOutput]:
    """Cancel a test. Returns the test in its new state.

    Args:
        test_id (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | ProblemOutput | RegressionCancelResponse400 | RegressionOutput]
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
) -> DetailOutput | ProblemOutput | RegressionCancelResponse400 | RegressionOutput | None:
    """Cancel a test. Returns the test in its new state.

    Args:
        test_id (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | ProblemOutput | RegressionCancelResponse400 | RegressionOutput
    """

    return (
        await asyncio_detailed(
            test_id=test_id,
            client=client,
        )
    ).parsed
