"""Pages of raters, of labelling jobs, of chat sets, and of API tokens."""

from django.urls import path

from labeling.views import jobs, queue, rate, sets, tokens

app_name = "labeling"
urlpatterns = [
    path("queue/", queue.queue, name="queue"),
    path("jobs/", jobs.job_list, name="job_list"),
    path("jobs/new/", jobs.job_new, name="job_new"),
    path("jobs/new/size/", jobs.job_new_size, name="job_new_size"),
    path("jobs/<int:job_id>/", jobs.job_detail, name="job_detail"),
    path("jobs/<int:job_id>/close/", jobs.job_closing, name="job_close"),
    path("jobs/<int:job_id>/start/", jobs.job_starting, name="job_start"),
    path("jobs/<int:job_id>/next/", queue.next_chat, name="next"),
    path("rate/<int:assignment_id>/", rate.rate, name="rate"),
    path("sets/", sets.set_list, name="set_list"),
    path("sets/<int:set_id>/", sets.set_detail, name="set_detail"),
    path("tokens/", tokens.token_list, name="token_list"),
    path("tokens/<int:token_id>/revoke/", tokens.token_revoke, name="token_revoke"),
]
