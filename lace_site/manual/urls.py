"""Routes of the docs."""

from django.urls import path

from lace_site.manual import views

urlpatterns = [
    path("help/", views.index, name="help"),
    path("help/llms.txt", views.HelpText.as_view(), name="help_llms"),
    path("help/images/<path:picture_name>", views.picture, name="help_picture"),
    path("help/<path:page_name>.md", views.HelpText.as_view(), name="help_text"),
    path("help/<path:page_name>", views.help_page, name="help_page"),
    path("static/<str:mark>/docs/<path:page_name>.html", views.moved, name="help_moved"),
]
