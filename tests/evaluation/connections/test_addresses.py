"""Where an endpoint that a lead entered may lead: 0 of 20 ways reach a server that listens for them."""

import asyncio
import socket
from ipaddress import ip_network
from typing import Any

import httpx2
import pytest

from common.addresses import AddressPolicy, networks_read
from common.problems import FieldProblem
from evaluation.gateway.addresses import guarded_transport
from evaluation.gateway.client import EndpointClient
from evaluation.gateway.endpoints import Endpoint, entered_base_url
from tests.stub_endpoint import StubEndpoint, StubReply, fixed

PUBLIC = AddressPolicy()
HOME = AddressPolicy(loopback=True)

# Spellings that lead to this machine, or hide where they lead.
SPELLINGS = (
    "http://0:{port}/v1",
    "http://0.0.0.0:{port}/v1",
    "http://127.0.0.1:{port}/v1",
    "http://127.1:{port}/v1",
    "http://127.0.1:{port}/v1",
    "http://2130706433:{port}/v1",
    "http://0x7f000001:{port}/v1",
    "http://0x7f.0.0.1:{port}/v1",
    "http://0177.0.0.1:{port}/v1",
    "http://127.0.0.1.:{port}/v1",
    "http://[::1]:{port}/v1",
    "http://[::]:{port}/v1",
    "http://[::ffff:127.0.0.1]:{port}/v1",
    "http://[::ffff:7f00:1]:{port}/v1",
    "http://[64:ff9b::7f00:1]:{port}/v1",
    "http://user:secret@127.0.0.1:{port}/v1",
    "http://api.openai.com@127.0.0.1:{port}/v1",
    "http://127.0.0.1:{port}/v1#@api.openai.com",
)
# Names: what they resolve to is looked at when the connection is made.
NAMES = ("http://localhost:{port}/v1", "http://rebound.test:{port}/v1")


def sent(address: str, policy: AddressPolicy) -> str:
    """Send a request there, as a run would; the outcome's error."""
    endpoint = Endpoint(address, address, "", embedded=False, name="x", guard=policy)

    async def ask() -> str:
        async with EndpointClient(endpoint) as client:
            return (await client.send({"model": "m"}, timeout=5)).error

    return asyncio.run(ask())


@pytest.fixture
def rebound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resolver that gives a public address when it is asked first and this machine's afterwards."""
    real, asked = socket.getaddrinfo, []

    def resolve(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        if host != "rebound.test":
            return real(host, port, *args, **kwargs)
        asked.append(host)
        return real("127.0.0.1", port, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


def test_none_of_twenty_ways_reaches_a_server_on_this_machine(rebound: None) -> None:
    reached = []
    with StubEndpoint(fixed("here")) as canary:
        port = canary.base_url.rpartition(":")[2].partition("/")[0]
        for way in (*SPELLINGS, *NAMES):
            try:
                address = entered_base_url(way.format(port=port), guard=PUBLIC)
            except FieldProblem:
                if "@" not in way:  # the HTTP library itself refuses a key beside a user name
                    assert sent(way.format(port=port), PUBLIC), f"{way} connects, had it been stored"
            else:
                assert way in NAMES, f"{way} may be entered"
                assert "this machine itself" in sent(address, PUBLIC)
        reached = canary.seen
    assert len((*SPELLINGS, *NAMES)) == 20
    assert not reached


def test_the_connection_goes_to_the_checked_address_and_not_to_what_a_second_lookup_gives() -> None:
    answers = iter(["127.0.0.1", "93.184.216.34"])

    def resolve(host: str, port: int) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    with StubEndpoint(fixed("here")) as canary:
        port = int(canary.base_url.rpartition(":")[2].partition("/")[0])
        with (
            httpx2.Client(transport=guarded_transport(PUBLIC, resolve=resolve)) as client,
            pytest.raises(httpx2.ConnectError, match="this machine itself"),
        ):
            client.get(f"http://name.test:{port}/v1/files")
        assert next(answers) == "93.184.216.34"  # it was looked up once
        assert not canary.seen


def test_a_redirect_to_this_machine_is_not_followed() -> None:
    with StubEndpoint(fixed("here")) as canary:
        away = StubReply(status=302, headers={"Location": f"{canary.base_url}/chat/completions"})
        with StubEndpoint(lambda body: away) as stub:
            assert "redirects" in sent(stub.base_url, HOME)
        assert not canary.seen


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("10.0.0.4", "private network"),
        ("192.168.1.1", "private network"),
        ("100.64.0.1", "private network"),
        ("fd12::1", "private network"),
        ("169.254.1.1", "link-local"),
        ("fe80::1", "link-local"),
        ("169.254.169.254", "cloud"),
        ("fd00:ec2::254", "cloud"),
        ("224.0.0.1", "one server"),
        ("0.0.0.0", "unspecified"),  # noqa: S104
        ("2002:7f00:1::", "stands for an IPv4"),
        ("8.8.8.8", ""),
        ("2606:4700:4700::1111", ""),
    ],
)
def test_only_public_addresses_are_dialled(address: str, words: str) -> None:
    problem = PUBLIC.problem(address)
    assert words in problem if words else not problem


def test_a_setting_opens_private_networks_and_never_the_credentials_of_a_cloud() -> None:
    everything = AddressPolicy(networks=networks_read(["0.0.0.0/0", "::/0", " 10.0.0.0/8 "]))
    assert ip_network("10.0.0.0/8") in everything.networks
    assert not everything.problem("10.0.0.4") and not everything.problem("127.0.0.1")
    assert everything.problem("169.254.169.254") and everything.problem("::ffff:10.0.0.4")
    assert everything.problem("0.0.0.0")  # noqa: S104


def test_loopback_is_dialled_while_the_site_is_served_to_this_machine_alone() -> None:
    with StubEndpoint(fixed("yes")) as stub:
        assert sent(entered_base_url(stub.base_url, guard=HOME), HOME) == ""
        assert stub.count == 1
