"""Routes of the rater quality pages, below /quality/; each for a chat set and for a labelling job."""

from django.urls import URLPattern, path

from alignment.rater_quality import views as quality

PAGES = (
    ("", quality.overview, "overview"),
    ("pairs/", quality.pairs, "pairs"),
    ("team/", quality.team, "team"),
    ("raters.csv", quality.raters_csv, "raters_csv"),
    ("criteria/<str:key>/", quality.criterion, "criterion"),
)


def _routes(start: str, prefix: str) -> list[URLPattern]:
    return [path(start + end, view, name=prefix + name) for end, view, name in PAGES]


app_name = "quality"
urlpatterns = [
    path("", quality.quality_list, name="list"),
    *_routes("sets/<int:set_id>/", "set_"),
    *_routes("jobs/<int:job_id>/", ""),
]
