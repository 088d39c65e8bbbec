"""A form that was accepted needs its draft no longer."""

from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import quote

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import resolve_url

from common.drafts.services import form_draft_delete

Handler = Callable[[HttpRequest], HttpResponse]
ACCEPTED = (HTTPStatus.FOUND, HTTPStatus.SEE_OTHER)
COOKIE = f"{settings.COOKIE_PREFIX}form_draft_accepted"
FIELD = "form_draft"  # the hidden control with the draft's key
ANSWERED = "Form-Accepted"  # header of a page that answers an accepted form in place


def drop_sent_drafts(get_response: Handler) -> Handler:
    """Delete the draft of a form whose POST led to ANSWERED or to a redirect, other than to the sign-in."""

    def handle(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        answered = response.headers.pop(ANSWERED, None)
        if request.method != "POST" or not (answered or response.status_code in ACCEPTED):
            return response
        to_sign_in = response.get("Location", "").partition("?")[0] == resolve_url(settings.LOGIN_URL)
        if not to_sign_in and request.user.pk and (key := request.POST.get(FIELD, "")):
            form_draft_delete(user_id=request.user.pk, key=key)
            # The browser deletes its copy, and then the cookie. A slash would put the value into quotes.
            value = quote(key, safe="")
            response.set_cookie(COOKIE, value, max_age=3600, samesite="Lax", secure=request.is_secure())
        return response

    return handle
