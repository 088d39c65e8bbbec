"""Pages of criteria, runs and verdicts."""

from django.urls import path

from evaluation.views import criteria, runs

app_name = "evaluation"
urlpatterns = [
    path("criteria/", criteria.criterion_list, name="criterion_list"),
    path("criteria/<str:key>/", criteria.criterion_detail, name="criterion_detail"),
    path("runs/", runs.run_list, name="run_list"),
    path("runs/<int:run_id>/", runs.run_detail, name="run_detail"),
]
