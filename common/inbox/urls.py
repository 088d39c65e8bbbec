"""Routes of the inbox and of comments."""

from django.urls import path

from common.inbox import views

urlpatterns = [
    path("inbox/", views.inbox_list, name="inbox"),
    path("inbox/read/", views.inbox_read_all, name="inbox_read_all"),
    path("inbox/mail/", views.inbox_mail, name="inbox_mail"),
    path("inbox/<int:item_id>/", views.inbox_open, name="inbox_open"),
    path("comments/<str:subject>/", views.comments, name="comments"),
]
