"""Routes of the search."""

from django.urls import path

from common.search import views

urlpatterns = [
    path("search/", views.results, name="search"),
    path("search/hits/", views.hits, name="search_hits"),
]
