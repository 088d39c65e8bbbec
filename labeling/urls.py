"""Pages of raters, of chat sets, and of API tokens."""

from django.urls import path

from labeling.views import queue, rate, sets, tokens

app_name = "labeling"
urlpatterns = [
    path("queue/", queue.queue, name="queue"),
    path("jobs/<int:job_id>/next/", queue.next_chat, name="next"),
    path("rate/<int:assignment_id>/", rate.rate, name="rate"),
    path("sets/", sets.set_list, name="set_list"),
    path("sets/<int:set_id>/", sets.set_detail, name="set_detail"),
    path("tokens/", tokens.token_list, name="token_list"),
    path("tokens/<int:token_id>/revoke/", tokens.token_revoke, name="token_revoke"),
]
