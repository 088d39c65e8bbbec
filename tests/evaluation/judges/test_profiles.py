"""Judge profiles: one default, a name of its own, and pages that only leads may change."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from common.problems import FieldProblem
from evaluation.core.types import Windows
from evaluation.judges.core.spec import JudgeSpec, spec_to_json
from evaluation.judges.queries.profiles import default_profile, profile_choice, profile_overridden
from evaluation.judges.services.profiles import (
    ProfileRefused,
    judges_today,
    profile_delete,
    profile_duplicate,
    profile_make_default,
    profile_save,
    profiles_ensure,
)
from evaluation.models.judges import Judge, JudgeProfile
from labeling.models.people import User
from tests.factories.rows import make_rubric
from tests.factories.runs import point_at

pytestmark = pytest.mark.django_db

RECIPE: dict[str, Any] = {
    "name": "careful debate",
    "engine": "debate",
    "samples": "3",
    "knowledge": "retrieved",
    "passage_tokens": "900",
    "embedding_model": "embedder",
    "grouping": "dimension",
    "layout": "auto",
    "role_in": "user",
    "model": "big",
    "model_customer": "small",
    "temperature_customer": "0.6",
    "effort_judge": "high",
    "logprobs": "on",
    "rule": "last_decides",
    "window_tokens": "4000",
    "overlap": "2",
}


@pytest.fixture
def lead(client: Client, lead_user: User) -> Client:
    client.force_login(lead_user)
    return client


def make(name: str = "other", engine: Any = "debate") -> JudgeProfile:
    return profile_save(name=name, choice=JudgeSpec(engine))


def url(name: str, *args: object) -> str:
    return reverse(f"evaluation:profile_{name}", args=args)


# ---------- the default ----------


def test_a_migrated_workspace_has_the_shipped_default() -> None:
    profile = JudgeProfile.objects.get(is_default=True)
    assert profile.name == "default"
    choice = profile_choice(profile)
    assert (choice.engine, choice.grouping, choice.knowledge, choice.samples) == (
        "direct",
        "auto",
        "static",
        1,
    )


def test_exactly_one_profile_is_the_default() -> None:
    first, second = default_profile(), make()
    profile_make_default(profile=second)
    assert list(JudgeProfile.objects.filter(is_default=True)) == [second]
    with pytest.raises(IntegrityError), transaction.atomic():
        JudgeProfile.objects.filter(pk=first.pk if first else 0).update(is_default=True)


def test_the_shipped_default_is_made_only_where_none_is_chosen() -> None:
    mine = make("mine")
    profile_make_default(profile=mine)
    profiles_ensure()
    assert default_profile() == mine
    JudgeProfile.objects.update(is_default=False)
    profiles_ensure()
    assert JudgeProfile.objects.get(is_default=True).name == "default"


def test_the_default_cannot_be_deleted() -> None:
    profile = JudgeProfile.objects.get(is_default=True)
    with pytest.raises(ProfileRefused, match="make another one the default first"):
        profile_delete(profile=profile)
    assert JudgeProfile.objects.filter(pk=profile.pk).exists()


# ---------- what can be done with one ----------


def test_two_profiles_never_share_a_name() -> None:
    make("same")
    with pytest.raises(FieldProblem, match="another profile has this name"):
        make("same")


def test_a_profile_may_keep_its_name_when_it_changes() -> None:
    profile = make("same")
    profile_save(name="same", choice=JudgeSpec("direct"), profile=profile)
    assert profile_choice(JudgeProfile.objects.get(name="same")).engine == "direct"


def test_every_copy_gets_a_name_of_its_own() -> None:
    profile = make("x" * 120)
    names = {profile_duplicate(profile=profile).name for _ in range(3)}
    assert len(names) == 3
    assert all(len(name) <= 120 for name in names)


def test_deleting_a_profile_leaves_its_judges() -> None:
    profile = make()
    judge = Judge.objects.create(fingerprint="f", name="j", config={}, profile=profile)
    profile_delete(profile=profile)
    judge.refresh_from_db()
    assert judge.profile is None


def test_a_run_may_differ_from_its_profile() -> None:
    profile = profile_save(name="p", choice=JudgeSpec("debate", samples=3, model="big"))
    same = profile_overridden(profile, engine="", samples=None, knowledge="")
    other = profile_overridden(profile, engine="direct", samples=1, knowledge="none")
    assert same == profile_choice(profile)
    assert (other.engine, other.samples, other.knowledge, other.model) == ("direct", 1, "none", "big")


def test_the_judge_of_today_is_named_and_nothing_of_it_is_kept(settings: Settings) -> None:
    point_at(settings, "http://localhost:1/v1")
    rubric = make_rubric("polite", "clear")
    (today,) = judges_today(choice=JudgeSpec("direct"))
    assert (today.rubric, len(today.fingerprint), today.judge) == (rubric.name, 64, None)
    assert not Judge.objects.exists()


def test_without_an_endpoint_there_is_no_judge_of_today_but_a_reason(settings: Settings) -> None:
    point_at(settings, "not a web address")
    make_rubric("polite")
    (today,) = judges_today(choice=JudgeSpec("direct"))
    assert "ask the operator of this server" in today.problem


# ---------- pages ----------


def test_the_form_takes_the_whole_recipe(lead: Client) -> None:
    response = lead.post(url("new"), RECIPE)
    profile = JudgeProfile.objects.get(name="careful debate")
    assert response.headers["Location"] == url("detail", profile.pk)
    assert profile_choice(profile) == JudgeSpec(
        "debate",
        model="big",
        models={"customer": "small"},
        temperatures={"customer": 0.6},
        efforts={"judge": "high"},
        grouping="dimension",
        knowledge="retrieved",
        passage_tokens=900,
        embedding_model="embedder",
        samples=3,
        windows=Windows(tokens=4000, overlap=2, rule="last_decides"),
        logprobs=True,
    )


def test_the_form_shows_a_recipe_as_it_was_saved(lead: Client) -> None:
    lead.post(url("new"), RECIPE)
    profile = JudgeProfile.objects.get(name="careful debate")
    form = lead.get(url("edit", profile.pk)).context["form"]
    shown = {name: form[name].value() for name in form.fields}
    again = {name: value for name, value in shown.items() if value not in (None, False, "")}
    lead.post(url("edit", profile.pk), again)
    assert JudgeProfile.objects.get(pk=profile.pk).config == profile.config


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("samples", "0"),
        ("samples", "10"),
        ("temperature_customer", "3"),
        ("engine", "guess"),
        ("model_judge", "m" * 201),
        ("window_tokens", ""),
        ("rule", ""),
        ("passage_tokens", "-1"),
    ],
)
def test_what_cannot_be_is_said_at_its_field_and_nothing_is_saved(
    lead: Client, field: str, value: str
) -> None:
    response = lead.post(url("new"), RECIPE | {field: value})
    form = response.context["form"]
    assert list(form.errors) == [field]
    assert f'id="{form[field].auto_id}_error"' in response.content.decode()
    assert not JudgeProfile.objects.filter(name="careful debate").exists()


def test_a_name_that_is_taken_is_said_at_the_name(lead: Client) -> None:
    response = lead.post(url("new"), RECIPE | {"name": "default"})
    assert response.context["form"].errors["name"] == ["another profile has this name"]


def test_duplicate_default_and_delete_from_the_page(lead: Client) -> None:
    profile = make()
    copied = lead.post(url("act", profile.pk, "duplicate"))
    copy = JudgeProfile.objects.get(name="other copy")
    assert copied.headers["Location"] == url("edit", copy.pk)
    lead.post(url("act", copy.pk, "default"))
    assert default_profile() == copy
    said = lead.post(url("act", copy.pk, "delete"), follow=True).content.decode()
    assert "is the default" in said
    lead.post(url("act", profile.pk, "delete"))
    assert set(JudgeProfile.objects.values_list("name", flat=True)) == {"auto", "default", "other copy"}


def test_a_recipe_that_cannot_be_read_is_named_and_can_be_mended(lead: Client) -> None:
    profile = make()
    JudgeProfile.objects.filter(pk=profile.pk).update(config={"engine": "direct", "odd": 1})
    assert "odd: is not a setting of a judge" in lead.get(url("detail", profile.pk)).content.decode()
    assert "odd: is not a setting" in lead.get(url("list")).content.decode()
    lead.post(url("edit", profile.pk), RECIPE)
    assert "odd" not in JudgeProfile.objects.get(pk=profile.pk).config


def test_authors_see_profiles_and_change_nothing(client: Client, author_user: User) -> None:
    profile = make()
    client.force_login(author_user)
    assert [client.get(path).status_code for path in (url("list"), url("detail", profile.pk))] == [200, 200]
    assert "Delete" not in client.get(url("detail", profile.pk)).content.decode()
    assert [client.get(path).status_code for path in (url("new"), url("edit", profile.pk))] == [404, 404]
    for act in ("duplicate", "default", "delete"):
        assert client.post(url("act", profile.pk, act)).status_code == 404
    assert JudgeProfile.objects.count() == 3


def test_raters_find_no_profile(client: Client, rater_user: User) -> None:
    profile = make()
    client.force_login(rater_user)
    paths = [url("list"), url("new"), url("detail", profile.pk), url("edit", profile.pk)]
    assert [client.get(path).status_code for path in paths] == [404] * 4


def test_an_act_is_never_a_get_and_a_strange_one_is_not_found(lead: Client) -> None:
    profile = make()
    assert lead.get(url("act", profile.pk, "delete")).status_code == 405
    assert lead.post(url("act", profile.pk, "explode")).status_code == 404


def test_a_hostile_name_is_shown_as_text(lead: Client) -> None:
    script = "<script>alert(1)</script>"
    profile = make(script)
    for path in (url("list"), url("detail", profile.pk), url("edit", profile.pk)):
        assert script not in lead.get(path).content.decode()


def test_a_json_round_trip_keeps_a_saved_recipe() -> None:
    profile = make()
    assert spec_to_json(profile_choice(profile)) == profile.config
