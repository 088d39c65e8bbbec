"""Sign-in of programs by a token in the header `Authorization: Token …`."""

from django.views.decorators.debug import sensitive_variables
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from labeling.models.people import ApiToken, User
from labeling.people.services.tokens import TokenRefused, token_user

SCHEME = "Token"


class TokenAuthentication(BaseAuthentication):
    """A token in the header, never in the address or the body, so no CSRF token is needed."""

    @sensitive_variables()
    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """Return the token's user, limited to its scopes; None without a token. Raises a 401."""
        scheme, _, secret = get_authorization_header(request).decode("latin-1").partition(" ")
        if scheme.lower() != SCHEME.lower():
            return None
        try:
            return token_user(secret=secret.strip())
        except TokenRefused:
            # NB: without `from None` the refused token would be in the traceback's frames.
            raise AuthenticationFailed("The token is unknown, revoked or expired.") from None

    def authenticate_header(self, request: Request) -> str | None:
        """Answer 401 to a program that sent the header, 403 to a browser without a session."""
        return f'{SCHEME} realm="api"' if get_authorization_header(request) else None


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # registers itself
    """The scheme in the OpenAPI document."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        """Describe how to send the token."""
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "`Token …`; create tokens on the page API tokens.",
        }
