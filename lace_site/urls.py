"""Routes of the whole site."""

from django.urls import path

urlpatterns: list = []
