"""Pages of the labels' quality, below /quality/; each about a chat set or about one labelling job."""

from django.urls import URLPattern, path

from alignment.rater_quality import views as quality

PAGES = (
    ("", quality.overview, "overview"),
    ("pairs/", quality.pairs, "pairs"),
    ("team/", quality.team, "team"),
    ("raters.csv", quality.raters_csv, "raters_csv"),
    ("criteria/<str:key>/", quality.criterion, "criterion"),
)


def _about(start: str, prefix: str) -> list[URLPattern]:
    return [path(start + end, view, name=prefix + name) for end, view, name in PAGES]


app_name = "quality"
urlpatterns = [
    path("", quality.quality_list, name="list"),
    *_about("sets/<int:set_id>/", "set_"),
    *_about("jobs/<int:job_id>/", ""),
]
