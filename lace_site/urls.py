"""Routes of the whole site."""

from django.contrib import admin
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView

from alignment.home import views as home
from common.drafts.api import FormDraftApi
from lace_site import health, views
from lace_site.watch import metrics
from lace_site.watch import views as watch

handler500 = "lace_site.errors.server_error"

urlpatterns = [
    path("", home.home, name="home"),
    path("home/set-up/", home.set_up_shown, name="home_set_up"),
    path("accounts/", include("labeling.people.urls")),
    path("admin/", admin.site.urls),
    path("healthz", health.healthz, name="healthz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("status/", watch.status, name="status"),
    path("readyz", health.readyz, name="readyz"),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/docs/", views.ApiDocs.as_view(url_name="schema"), name="api_docs"),
    path("api/form-drafts/", FormDraftApi.as_view(), name="api_form_draft"),
    path("api/", include("labeling.api_urls")),
    path("api/", include("evaluation.api_urls")),
    path("api/", include("alignment.api_urls")),
    path("inbox/counts/", views.inbox_counts, name="inbox_counts"),
    path("", include("common.inbox.urls")),
    path("", include("common.search.urls")),
    path("", include("lace_site.manual.urls")),
    path("", include("labeling.urls")),
    path("", include("evaluation.urls")),
    path("", include("alignment.urls")),
    path("quality/", include("alignment.rater_quality.urls")),
    path("monitoring/", include("alignment.monitoring.urls")),
    path("alerts/", include("alignment.alerts.urls")),
    path("experiments/", include("alignment.experiments.urls")),
    path("issues/", include("alignment.issues.urls")),
]
