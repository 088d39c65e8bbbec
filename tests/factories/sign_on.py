"""A provider of single sign-on on this machine: OpenID Connect over real HTTP, with signed tokens."""

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

CLIENT, SECRET = "workbench", "the secret of the workbench"


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@dataclass
class OwnProvider:
    """The provider; what it says of the person is in `claims`, and what it does wrong in the rest."""

    issuer: str = ""
    key: ec.EllipticCurvePrivateKey = field(default_factory=new_key)
    claims: dict[str, Any] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=dict)  # overrides of what it says of itself
    signs_with: ec.EllipticCurvePrivateKey | None = None
    user_info: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def of_itself(self) -> dict[str, Any]:
        paths = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        own = {name: f"{self.issuer}/{path}" for name, path in paths.items()}
        own["userinfo_endpoint"] = f"{self.issuer}/userinfo"
        ways = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
        return {"issuer": self.issuer, **own, **ways, **self.names}

    def keys(self) -> dict[str, Any]:
        public = json.loads(ECAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**public, "kid": "one", "alg": "ES256", "use": "sig"}]}

    def code(self, query: dict[str, str]) -> str:
        code = f"code-{len(self.codes)}"
        self.codes[code] = query
        return code

    def token(self, body: dict[str, str]) -> dict[str, Any] | None:
        """The token for a code, once; None where the secret or the proof of the asker is wrong."""
        asked = self.codes.pop(body.get("code", ""), None)
        proof = hashlib.sha256(body.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(proof).rstrip(b"=").decode()
        if asked is None or body.get("client_secret") != SECRET or asked["code_challenge"] != challenge:
            return None
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 60, **self.claims}
        signed = jwt.encode(claims, self.signs_with or self.key, algorithm="ES256", headers={"kid": "one"})
        return {"access_token": "access", "token_type": "Bearer", "id_token": signed}


class _Handler(BaseHTTPRequestHandler):
    provider: OwnProvider

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        url, provider = urlsplit(self.path), self.provider
        provider.asked.append(url.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path == "/.well-known/openid-configuration":
            self.answer(provider.of_itself())
        elif url.path == "/keys":
            self.answer(provider.keys())
        elif url.path == "/userinfo":
            self.answer(provider.user_info)
        elif url.path == "/authorize":  # the person is signed in here, and agrees
            back = {"code": provider.code(query), "state": query["state"]}
            self.send_response(302)
            self.send_header("Location", f"{query['redirect_uri']}?{urlencode(back)}")
            self.end_headers()
        else:
            self.answer({}, 404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.provider.asked.append(self.path)
        token = self.provider.token({name: values[0] for name, values in parse_qs(body).items()})
        self.answer(token or {"error": "invalid_grant"}, 200 if token else 400)

    def answer(self, content: dict[str, Any], status: int = 200) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def own_provider(**claims: Any) -> Iterator[OwnProvider]:
    """Serve a provider at which this person is signed in."""
    person = {"sub": "p-1", "email": "mara@example.org", "email_verified": True, "name": "Mara M."}
    provider = OwnProvider(claims=person | claims)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"provider": provider}))
    provider.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def use_provider(settings: Any, provider: OwnProvider, **more: Any) -> None:
    """Set the workbench up for this provider."""
    app = {"provider_id": "sso", "name": "Acme", "client_id": CLIENT, "secret": SECRET}
    options = {"server_url": provider.issuer, "oauth_pkce_enabled": True}
    settings.SOCIALACCOUNT_PROVIDERS = {
        "openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": [{**app, "settings": options}]}
    }
    values = {"ISSUER": provider.issuer, "NAME": "Acme", "DOMAINS": [], "ROLE": "", "TRUST_EMAIL": False}
    for name, value in (values | more).items():
        setattr(settings, f"LACE_SSO_{name}", value)
