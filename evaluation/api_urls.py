"""API routes of evaluation, below /api/."""

from django.urls import path

from evaluation import api

urlpatterns = [path("runs/", api.RunList.as_view(), name="api_runs")]
