"""A mail server on this machine, over real SMTP."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage

from pytest_django import Settings


@dataclass
class OwnMailServer:
    """What came in; with `refuses` no recipient is taken."""

    port: int = 0
    refuses: bool = False
    mails: list[EmailMessage] = field(default_factory=list)


def _session(server: OwnMailServer) -> type[socketserver.StreamRequestHandler]:
    class Session(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.answer("220 mail.test")
            while line := self.rfile.readline().decode().strip():
                word = line[:4].upper()
                if word == "RCPT" and server.refuses:
                    self.answer("550 no such user")
                elif word == "DATA":
                    self.answer("354 go on")
                    server.mails.append(message_from_bytes(self.body(), policy=policy.default))
                    self.answer("250 taken")
                else:
                    self.answer("221 bye" if word == "QUIT" else "250 mail.test")
                if word == "QUIT":
                    return

        def body(self) -> bytes:
            lines = []
            while (line := self.rfile.readline()) not in (b".\r\n", b""):
                lines.append(line)
            return b"".join(lines)

        def answer(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

    return Session


@contextmanager
def own_mail_server(settings: Settings) -> Iterator[OwnMailServer]:
    """Send what the workbench sends to a server of our own; links lead to https://lace.example.org."""
    server = OwnMailServer()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.INBOX_MAIL, settings.SITE_URL = True, "https://lace.example.org"
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _session(server)) as listening:
        listening.daemon_threads = True
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", listening.server_address[1]
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        listening.shutdown()
        thread.join()


def mail_server_down(settings: Settings) -> None:
    """Let nothing listen where the mail server should."""
    settings.EMAIL_PORT = 9
