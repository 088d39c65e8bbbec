from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ....http import AuthenticatedClient, Client
from ... import errors
from ...models.detail_output import DetailOutput
from ...models.paginated_version_output_list import PaginatedVersionOutputList
from ...models.prompt_versions_response_400 import PromptVersionsResponse400
from ...types import UNSET, Response, Unset


def _get_kwargs(
    key: str,
    *,
    page: int | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["page"] = page

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/criteria/{key}/prompts/".format(
            key=quote(str(key), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> DetailOutput | PaginatedVersionOutputList | PromptVersionsResponse400 | None:
    if response.status_code == 200:
        response_200 = PaginatedVersionOutputList.from_dict(response.json())

        return response_200

    if response.status_code == 400:
        response_400 = PromptVersionsResponse400.from_dict(response.json())

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
) -> Response[DetailOutput | PaginatedVersionOutputList | PromptVersionsResponse400]:
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
    page: int | Unset = UNSET,
) -> Response[DetailOutput | PaginatedVersionOutputList | PromptVersionsResponse400]:
    """Versions of a prompt, newest first, with state, tests and measured alignment, without texts.

    Args:
        key (str):
        page (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | PaginatedVersionOutputList | PromptVersionsResponse400]
    """

    kwargs = _get_kwargs(
        key=key,
        page=page,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    key: str,
    *,
    client: AuthenticatedClient,
    page: int | Unset = UNSET,
) -> DetailOutput | PaginatedVersionOutputList | PromptVersionsResponse400 | None:
    """Versions of a prompt, newest first, with state, tests and measured alignment, without texts.

    Args:
        key (str):
        page (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | PaginatedVersionOutputList | PromptVersionsResponse400
    """

    return sync_detailed(
        key=key,
        client=client,
        page=page,
    ).parsed


async def asyncio_detailed(
    key: str,
    *,
    client: AuthenticatedClient,
    page: int | Unset = UNSET,
) -> Response[DetailOutput | PaginatedVersionOutputList | PromptVersionsResponse400]:
    """Versions of a prompt, newest first, with state, tests and measured alignment, without texts.

    Args:
        key (str):
        page (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DetailOutput | PaginatedVersionOutputList | PromptVersionsResponse400]
    """

    kwargs = _get_kwargs(
        key=key,
        page=page,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    key: str,
    *,
    client: AuthenticatedClient,
    page: int | Unset = UNSET,
) -> DetailOutput | PaginatedVersionOutputList | PromptVersionsResponse400 | None:
    """Versions of a prompt, newest first, with state, tests and measured alignment, without texts.

    Args:
        key (str):
        page (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DetailOutput | PaginatedVersionOutputList | PromptVersionsResponse400
    """

    return (
        await asyncio_detailed(
            key=key,
            client=client,
            page=page,
        )
    ).parsed
