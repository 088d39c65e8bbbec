"""A page that holds nothing but the panel of previews and tries, beside the site's own."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template import engines
from django.urls import include, path

from labeling.models.rubric import Criterion

PAGE = """{% extends 'base.html' %}
{% block title %}Panel{% endblock %}
{% block heading %}<h1>Prompt of {{ criterion.name }}</h1>{% endblock %}
{% block content %}{% include 'alignment/_try_panel.html' %}{% endblock %}"""


def panel(request: HttpRequest, key: str) -> HttpResponse:
    """The panel as the editor includes it."""
    template = engines["django"].from_string(PAGE)
    criterion = get_object_or_404(Criterion, key=key)
    return HttpResponse(template.render({"criterion": criterion, "key": key}, request))


urlpatterns = [path("panel/<str:key>/", panel), path("", include("lace_site.urls"))]
