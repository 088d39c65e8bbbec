"""Routes of the monitoring pages, below /monitoring/."""

from django.urls import path

from alignment.monitoring import views

app_name = "monitoring"
urlpatterns = [
    path("", views.monitoring, name="overview"),
    path("rates.csv", views.rates_csv, name="rates_csv"),
    path("home/", views.home_panel, name="home_panel"),
    path("criteria/<str:key>/", views.criterion, name="criterion"),
    path("criteria/<str:key>/rates.csv", views.criterion_csv, name="criterion_csv"),
]
