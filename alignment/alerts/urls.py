"""Routes of alerts, below /alerts/."""

from django.urls import path

from alignment.alerts import views

app_name = "alerts"
urlpatterns = [
    path("", views.alert_index, name="list"),
    path("settings/", views.thresholds, name="settings"),
    path("settings/preview/", views.thresholds_preview, name="settings_preview"),
    path("panel/", views.panel, name="panel"),
    path("anchors/preview/", views.anchor_preview, name="anchor_preview"),
    path("plans/<int:plan_id>/", views.plan_panel, name="plan_panel"),
    path("criteria/<str:key>/<str:act>/", views.criterion_act, name="criterion_act"),
    path("<int:alert_id>/", views.alert_detail, name="detail"),
    path("<int:alert_id>/<str:act>/", views.alert_act, name="act"),
]
