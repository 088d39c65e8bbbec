"""Single sign-on with OpenID Connect: whom the provider's answer signs in, and how its server is asked."""

import re
import socket
from functools import partial
from typing import Any, cast
from urllib.parse import urlsplit

import jwt
import requests
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.internal import jwtkit
from allauth.socialaccount.models import SocialAccount
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest
from django.shortcuts import render
from django.urls import reverse
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import NewConnectionError

from common.addresses import AddressPolicy, networks_read
from common.problems import InputProblem
from labeling.models.people import User
from labeling.people.queries.people import open_invitations
from labeling.people.services.audit import audit
from labeling.people.services.people import account_make
from labeling.people.services.sign_in_log import sign_in_failed

PROVIDER = "sso"
INVITED = "invited"
KEPT = ("sub", "email", "email_verified", "name", "preferred_username")
TIMEOUT = 10
SIGNED_WITH = {f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512)} | {"EdDSA"}

NO_EMAIL = "{name} sent no e-mail address that it has verified. Ask whoever runs it."
OTHER_DOMAIN = "Accounts of {domain} may not sign in here."
NOT_INVITED = "Nobody has invited {email}. Ask a lead for an invitation."
HAS_ACCOUNT = (
    "There is an account with {email} already. Sign in with its password, then connect {name} on your "
    "account page."
)
DEACTIVATED = "This account is deactivated. Ask a lead to activate it again."
FAILED = "{name} did not confirm who you are. Try again, or sign in with a password."


class SignOnRefused(Exception):
    """The person at the provider may not sign in; the message says why and what to do."""


# ---------- whom an answer signs in ----------


class SignOnAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """What the workbench does otherwise than allauth."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        """Nobody signs up by allauth's form: `pre_social_login` makes the account."""
        return False

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Find or make the account; refuse with a page that says why."""
        try:
            user = _account_for(request, sociallogin)
        except SignOnRefused as refusal:
            raise ImmediateHttpResponse(refused(request, str(refusal))) from None
        if user is not None:
            sociallogin.connect(request, user)

    def on_authentication_error(self, request: HttpRequest, provider: Any, **details: Any) -> None:
        """Answer with our own page, which says nothing of the cause."""
        raise ImmediateHttpResponse(refused(request, _words(FAILED)))

    def get_connect_redirect_url(self, request: HttpRequest, socialaccount: SocialAccount) -> str:
        """Return to the account page."""
        return reverse("mfa_index")

    def get_requests_session(self) -> requests.Session:
        """Return a client that follows no redirect and dials only what the policy allows."""
        return guarded_client()


def refused(request: HttpRequest, why: str) -> Any:
    """Return the page for somebody who is not signed in, and log it."""
    sign_in_failed(request=request, login="", because="single sign-on refused")
    return render(request, "labeling/people/sign_on_refused.html", {"why": why}, status=403)


def _words(text: str, **more: str) -> str:
    return text.format(name=settings.LACE_SSO_NAME, **more)


def _account_for(request: HttpRequest, sociallogin: Any) -> User | None:
    """Return the account to connect; None where it is connected already. Raises SignOnRefused."""
    claims = sociallogin.account.extra_data
    email = str(claims.get("email") or "").strip().lower()
    if not email or not (claims.get("email_verified") is True or settings.LACE_SSO_TRUST_EMAIL):
        raise SignOnRefused(_words(NO_EMAIL))
    domain = email.rpartition("@")[2]
    if settings.LACE_SSO_DOMAINS and domain not in settings.LACE_SSO_DOMAINS:
        raise SignOnRefused(_words(OTHER_DOMAIN, domain=domain))
    if sociallogin.is_existing or sociallogin.state.get("process") == "connect":
        return None
    return _with_email(email) or _new_account(claims, email)


def _with_email(email: str) -> User | None:
    """Return the account that a lead made for this person and that has no password yet.

    NB: one with a password may be another person's, who entered this address: its owner connects it.
    """
    user = User.objects.filter(email__iexact=email).first()
    if user is None:
        return None
    if not user.is_active:
        raise SignOnRefused(DEACTIVATED)
    if user.has_usable_password() or SocialAccount.objects.filter(user=user).exists():
        raise SignOnRefused(_words(HAS_ACCOUNT, email=email))
    return user


@transaction.atomic
def _new_account(claims: dict[str, Any], email: str) -> User:
    """Make an account: with the role of the person's invitation, else with that of the setting."""
    open_ones = open_invitations().filter(email__iexact=email)
    invitation = open_ones.select_for_update(of=("self",)).first()
    if invitation is None and settings.LACE_SSO_ROLE == INVITED:
        raise SignOnRefused(_words(NOT_INVITED, email=email))
    role = invitation.role if invitation else settings.LACE_SSO_ROLE
    user = account_make(
        by=None,
        username=_free_name(str(claims.get("preferred_username") or email)),
        name=str(claims.get("name") or ""),
        email=email,
        roles=[role] if role else [],
    )
    if invitation is not None:
        invitation.used_by, invitation.used_at = user, user.date_joined
        invitation.save(update_fields=["used_by", "used_at"])
        audit(actor=user, verb="invitation accepted", obj=invitation, role=invitation.role)
    return user


def _free_name(wanted: str) -> str:
    """Return a user name that nobody has: the part before the @, with a number if need be."""
    name = re.sub(r"[^\w.+-]", "", wanted.partition("@")[0])[:140] or "user"
    taken = {one.lower() for one in User.objects.values_list("username", flat=True)}
    number, free = 1, name
    while free.lower() in taken:
        number += 1
        free = f"{name}{number}"
    return free


@transaction.atomic
def sign_on_disconnect(*, user: User) -> None:
    """Disconnect the account from the provider. Raises InputProblem where nothing else signs it in."""
    if not user.has_usable_password():
        raise InputProblem("Set a password first: nothing else signs you in.")
    if SocialAccount.objects.filter(user=user).delete()[0]:
        audit(actor=user, verb="sign-on disconnected", obj=user, user=user.get_username())


def connected(*, sociallogin: Any, **_: Any) -> None:
    """Log that an account was connected."""
    user = cast(User, sociallogin.user)
    audit(actor=user, verb="sign-on connected", obj=user, user=user.get_username())


# ---------- the provider's server ----------


class Provider(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """An OpenID Connect provider whose answers are all checked."""

    @property
    def openid_config(self) -> dict[str, Any]:
        """Return what the provider says of itself. Raises OAuth2Error where it is another one's."""
        config = cast(dict[str, Any], super().openid_config)
        if str(config.get("issuer", "")).rstrip("/") != settings.LACE_SSO_ISSUER:
            raise OAuth2Error("the provider names another issuer")
        addresses = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri")
        for name in addresses:
            if name in config and not is_safe_address(str(config[name])):
                raise OAuth2Error(f"{name} is no https address")
        return config

    def complete_login(self, request: HttpRequest, app: Any, token: Any, **kwargs: Any) -> Any:
        """Return the sign-in of whom the signed token names; the user info adds what it lacks."""
        try:
            claims = self._claims(app, token, str(kwargs["response"].get("id_token", "")))
        except (jwt.PyJWTError, KeyError, TypeError, ValueError) as error:
            raise OAuth2Error("the provider's answer cannot be read") from error
        kept = {name: claims[name] for name in KEPT if name in claims}
        return self.get_provider().sociallogin_from_response(request, kept)

    def get_callback_url(self, request: HttpRequest, app: Any) -> str:
        """Return the address to which the provider sends the person back."""
        return str(request.build_absolute_uri(reverse("sign_on_callback")))

    def _claims(self, app: Any, token: Any, id_token: str) -> dict[str, Any]:
        claims = self._decode_id_token(app, id_token)
        if "email" in claims or "userinfo_endpoint" not in self.openid_config:
            return claims
        more = cast(dict[str, Any], self._fetch_user_info(token.token))
        if more["sub"] != claims["sub"]:
            raise OAuth2Error("the user info is about another person")
        return {**more, **claims}

    def _decode_id_token(self, app: Any, id_token: str) -> dict[str, Any]:
        """Return the claims of a token that the provider signed for us. Raises OAuth2Error."""
        if jwt.get_unverified_header(id_token).get("alg") not in SIGNED_WITH:
            raise OAuth2Error("the token is not signed with a key pair")
        claims = jwtkit.verify_and_decode(
            credential=id_token,
            keys_url=self.openid_config["jwks_uri"],
            issuer=self.openid_config["issuer"],
            audience=app.client_id,
            lookup_kid=jwtkit.lookup_kid_jwk,
            verify_signature=True,
        )
        return cast(dict[str, Any], claims)


def provider_use() -> None:
    """Let allauth's login use our checks, too: it names the class of its adapter here."""
    OpenIDConnectProvider.oauth2_adapter_class = Provider


def is_safe_address(address: str) -> bool:
    """Whether it is https; http only to this machine from a server that serves this machine alone."""
    parts = urlsplit(address)
    if parts.scheme == "http":
        return settings.LACE_LOOPBACK_ONLY and parts.hostname in ("127.0.0.1", "localhost", "::1")
    return parts.scheme == "https" and bool(parts.hostname)


def guarded_client() -> requests.Session:
    """Return a client for the provider's server; redirects and refused addresses are RequestExceptions."""
    session = requests.Session()
    session.trust_env, session.max_redirects = False, 0
    session.mount("https://", _Guarded())
    session.mount("http://", _Guarded())
    session.request = partial(session.request, timeout=TIMEOUT)  # type: ignore[method-assign]
    return session


def _dial(connection: Any) -> socket.socket:
    """Return a socket to the first address of the host that the policy allows."""
    policy = AddressPolicy(
        loopback=settings.LACE_LOOPBACK_ONLY, networks=networks_read(settings.LACE_ENDPOINT_NETWORKS)
    )
    problem = "the name has no address"
    try:
        found = socket.getaddrinfo(connection._dns_host, connection.port, type=socket.SOCK_STREAM)
        for *_, address in found:
            problem = policy.problem(str(address[0]))
            if not problem:
                return socket.create_connection((str(address[0]), connection.port), connection.timeout)
    except OSError as error:
        problem = str(error)
    raise NewConnectionError(connection, problem)


class _Plain(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        return _dial(self)


class _Secure(HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        return _dial(self)


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _Plain


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _Secure


class _Guarded(HTTPAdapter):
    """Connections that check the address which is really dialled."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _PlainPool, "https": _SecurePool}

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        if not is_safe_address(str(request.url)):
            raise requests.exceptions.InvalidURL("not an https address")
        return super().send(request, *args, **kwargs)
