"""Routes of the experiment pages, below /experiments/."""

from django.urls import path

from alignment.experiments import views

app_name = "experiments"
urlpatterns = [
    path("", views.experiment_list, name="list"),
    path("<int:experiment_id>/", views.experiment, name="detail"),
    path("<int:experiment_id>/settings/", views.experiment_settings, name="settings"),
]
