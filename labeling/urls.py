"""Pages of raters, of labelling jobs, of adjudication and of chat sets."""

from django.urls import path

from labeling.views import adjudicate, jobs, queue, rate, sets

app_name = "labeling"
urlpatterns = [
    path("adjudication/", adjudicate.adjudication_queue, name="adjudication_queue"),
    path("adjudication/<int:chat_id>/<str:key>/", adjudicate.adjudicate, name="adjudicate"),
    path("adjudication/<int:chat_id>/<str:key>/names/", adjudicate.adjudicate_named, name="adjudicate_named"),
    path(
        "adjudication/<int:chat_id>/<str:key>/withdraw/",
        adjudicate.adjudicate_withdraw,
        name="adjudicate_withdraw",
    ),
    path(
        "adjudication/<int:chat_id>/<str:key>/dawid-skene/",
        adjudicate.adjudicate_likely,
        name="adjudicate_likely",
    ),
    path("queue/", queue.queue, name="queue"),
    path("jobs/", jobs.job_list, name="job_list"),
    path("jobs/<int:job_id>/next/", queue.next_chat, name="next"),
    path("rate/<int:assignment_id>/", rate.rate, name="rate"),
    path("sets/", sets.set_list, name="set_list"),
    path("sets/<int:set_id>/", sets.set_detail, name="set_detail"),
]
