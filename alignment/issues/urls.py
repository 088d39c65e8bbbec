"""Routes of issues, below /issues/."""

from django.urls import path

from alignment.issues import views

app_name = "issues"
urlpatterns = [
    path("", views.issues, name="list"),
    path("issues.csv", views.issues_csv, name="csv"),
    path("new/", views.panel, name="panel"),
    path("find/", views.find, name="find"),
    path("grouping/", views.change_grouping, name="grouping"),
    path("<int:issue_id>/", views.issue, name="detail"),
    path("<int:issue_id>/change/", views.change, name="change"),
    path("<int:issue_id>/name/", views.naming, name="naming"),
    path("<int:issue_id>/send/<str:act>/", views.send, name="send"),
]
