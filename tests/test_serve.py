"""`serve` says why it cannot serve, and ends with what it started."""

import socket

import pytest
from django.core.management import CommandError, call_command


def test_a_busy_port_is_one_clear_line_and_exit_4() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(CommandError, match=f"port {port} cannot be used") as refused:
            call_command("serve", "--port", str(port))
    assert refused.value.returncode == 4


@pytest.mark.parametrize("port", [0, 99_999])
def test_a_port_that_does_not_exist_is_wrong_usage(port: int) -> None:
    with pytest.raises(CommandError, match="--port must be from 1 to 65535") as refused:
        call_command("serve", "--port", str(port))
    assert refused.value.returncode == 2
