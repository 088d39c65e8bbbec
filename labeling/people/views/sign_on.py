"""Sign-in at the provider of single sign-on: the way there, and back."""

from typing import Any, cast

from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe
from requests import RequestException

from labeling.people.services.sign_on import FAILED, PROVIDER, Provider, refused


@login_not_required
@never_cache
@require_POST
def sign_on(request: HttpRequest) -> HttpResponse:
    """Lead to the provider, to sign in or (with process=connect) to connect one's account.

    NB: by a page, not by a redirect: browsers refuse to send a form on to another site, as our policy says.
    """
    answer = _asked(OAuth2LoginView, request)
    if answer.status_code != 302:
        return answer
    context = {"address": answer.headers["Location"], "name": settings.LACE_SSO_NAME}
    return render(request, "labeling/people/sign_on_redirect.html", context)


@login_not_required
@never_cache
@require_safe
def sign_on_callback(request: HttpRequest) -> HttpResponse:
    """Take the provider's answer."""
    return _asked(OAuth2CallbackView, request)


def _asked(view: Any, request: HttpRequest) -> HttpResponse:
    if not settings.LACE_SSO_ISSUER:
        raise Http404
    try:
        return cast(HttpResponse, view.adapter_view(Provider(request, PROVIDER))(request))
    except (OAuth2Error, RequestException, KeyError, ValueError):
        return cast(HttpResponse, refused(request, FAILED.format(name=settings.LACE_SSO_NAME)))
