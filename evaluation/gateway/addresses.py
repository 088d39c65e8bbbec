"""Clients that dial only what an address policy allows: the address that is really dialled is checked."""

import socket
from collections.abc import Callable
from functools import partial
from typing import Any

import aiohttp
import httpcore2
import httpx2

from common.addresses import AddressPolicy, AddressRefused


def guarded_session(
    policy: AddressPolicy, *, limit: int, ssl: Any, keep_alive: float | None = None
) -> aiohttp.ClientSession:
    """Return a session that dials only what the policy allows. Call it inside the running loop."""
    connector = aiohttp.TCPConnector(
        limit=limit,
        ssl=ssl,
        keepalive_timeout=keep_alive,
        socket_factory=partial(_guarded_socket, policy),
    )
    return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())


def _guarded_socket(policy: AddressPolicy, address: Any) -> socket.socket:
    """Return the socket with which aiohttp then connects to exactly this resolved address."""
    family, kind, protocol, _, target = address
    if problem := policy.problem(str(target[0])):
        raise AddressRefused(problem)
    return socket.socket(family=family, type=kind, proto=protocol)


Resolve = Callable[[str, int], list[Any]]


def _resolve(host: str, port: int) -> list[Any]:
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))


class _GuardedNetwork(httpcore2.SyncBackend):
    """Resolves a host itself and hands only an allowed address on."""

    def __init__(self, policy: AddressPolicy, resolve: Resolve) -> None:
        self._policy, self._resolve = policy, resolve

    def connect_tcp(self, host: str, port: int, *args: Any, **kwargs: Any) -> httpcore2.NetworkStream:
        try:
            found = self._resolve(host, port)
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error
        target = str(found[0][4][0]) if found else host
        if problem := self._policy.problem(target):
            raise httpcore2.ConnectError(problem) from AddressRefused(problem)
        return super().connect_tcp(target, port, *args, **kwargs)


def guarded_transport(policy: AddressPolicy, *, resolve: Resolve = _resolve) -> httpx2.HTTPTransport:
    """Return the transport of a blocking client that dials only what the policy allows."""
    transport = httpx2.HTTPTransport(trust_env=False)
    transport._pool = httpcore2.ConnectionPool(
        ssl_context=httpx2.create_ssl_context(trust_env=False),
        network_backend=_GuardedNetwork(policy, resolve),
    )
    return transport
