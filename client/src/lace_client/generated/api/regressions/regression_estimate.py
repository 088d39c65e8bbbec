from http import HTTPStatus
from typing import Any

import httpx

from ....http import AuthenticatedClient, Client
from ... import errors
from ...models.detail_output import DetailOutput
from ...models.estimate_output import EstimateOutput
from ...models.regression_estimate_response_400 import RegressionEstimateResponse400
from ...models.regression_input import RegressionInput
from ...types import Response


def _get_kwargs(
    *,
    body: RegressionInput,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/regressions/estimate/",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> DetailOutput | EstimateOutput | RegressionEstimateResponse400 | None:
    if response.status_code == 200:
        response_200 = EstimateOutput.from_dict(response.json())

        return response_200

    if response.status_code == 400:
        response_400 = RegressionEstimateResponse400.from_dict(response.json())

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
) -> Response[DetailOutput | EstimateOutput | RegressionEstimateResponse400]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    body: RegressionInput,
) -> Response[DetailOutput | EstimateOutput | RegressionEstimateResponse400]:
    """Calls and cost of both judges, and the power that the labels allow. Sends no requests.

    Args:
        body (RegressionInput): A test to start: a `criterion` and a `version`, or a
            `candidate_profile` for a whole judge.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | EstimateOutput | RegressionEstimateResponse400]
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
    body: RegressionInput,
) -> DetailOutput | EstimateOutput | RegressionEstimateResponse400 | None:
    """Calls and cost of both judges, and the power that the labels allow. Sends no requests.

    Args:
        body (RegressionInput): A test to start: a `criterion` and a `version`, or a
            `candidate_profile` for a whole judge.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | EstimateOutput | RegressionEstimateResponse400
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    body: RegressionInput,
) -> Response[DetailOutput | EstimateOutput | RegressionEstimateResponse400]:
    """Calls and cost of both judges, and the power that the labels allow. Sends no requests.

    Args:
        body (RegressionInput): A test to start: a `criterion` and a `version`, or a
            `candidate_profile` for a whole judge.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | EstimateOutput | RegressionEstimateResponse400]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    body: RegressionInput,
) -> DetailOutput | EstimateOutput | RegressionEstimateResponse400 | None:
    """Calls and cost of both judges, and the power that the labels allow. Sends no requests.

    Args:
        body (RegressionInput): A test to start: a `criterion` and a `version`, or a
            `candidate_profile` for a whole judge.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | EstimateOutput | RegressionEstimateResponse400
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
