"""The options of `evaluate`, and the judge and run that they describe."""

from argparse import ArgumentParser, ArgumentTypeError
from decimal import Decimal, InvalidOperation
from typing import Any, get_args

from common.problems import FieldProblem, InputProblem, shown
from evaluation.core.grouping import Grouping
from evaluation.core.types import Ablation, KnowledgeMode, RoleIn, WindowRule
from evaluation.judges.core.spec import JudgeSpec, LayoutChoice, spec_from_json
from evaluation.judges.queries.configs import endpoints_named
from evaluation.judges.queries.profiles import profile_recipe
from evaluation.models.judges import Engine, JudgeProfile
from evaluation.models.runs import Run
from evaluation.runs.services.runs import RunChoice
from labeling.models.chats import ChatSet, Split
from labeling.models.people import User

# Options of a judge, named like the recipe's fields; missing ones come from the profile or the default.
JUDGE_OPTIONS = (
    "engine",
    "endpoint",
    "model",
    "formatter",
    "grouping",
    "knowledge",
    "embedding_model",
    "samples",
    "role_in",
    "layout",
    "logprobs",
    "ablation",
)
WINDOW_OPTIONS = ("window_tokens", "window_rule")
RUN_OPTIONS = ("set", "criteria", "split", "limit", "replicate", "audit", "batch")
KNOWLEDGE = "articles in a prompt: none, all of a criterion, or passages found for the chat; default: static"
SAMPLES = "answers per question, at most 9; the majority decides; default: 1"
# Options that a resumed run keeps.
PLAN_OPTIONS = (*RUN_OPTIONS, "profile", *JUDGE_OPTIONS, *WINDOW_OPTIONS)


def account(name: str | None) -> User | None:
    """Return the account that `--by` names; None without the option. Raises InputProblem."""
    if name is None:
        return None
    user = User.objects.filter(username=name).first()
    if user is None:
        raise InputProblem(f"--by: there is no account {shown(name)}")
    return user


def add_plan_arguments(parser: ArgumentParser) -> None:
    """Add the options of a run's plan. None has a default, so that a set option is one the user gave."""
    add = parser.add_argument
    add("--set", help="name of the chat set")
    add("--criteria", metavar="K1,K2", help="default: every criterion of the rubric")
    add("--split", choices=Split.values, help="only chats of this split; default: all")
    add("--limit", type=positive, help="only the first N chats of the set")
    add("--replicate", type=not_negative, help="another number ignores stored answers; default: 0")
    add(
        "--audit",
        type=share,
        help="share of readable answers that the formatter re-reads, 0 to 1; default: 0",
    )
    add("--batch", action="store_true", default=None, help="use the Batch API: half price, within a day")


def add_judge_arguments(parser: ArgumentParser) -> None:
    """Add the options of a judge."""
    add = parser.add_argument
    add("--profile", help="a stored judge profile; other options override it")
    add("--engine", choices=Engine.values, help="how the judge decides; needed without --profile")
    add("--endpoint", metavar="NAME", help="a connected endpoint; default: the one in the settings")
    add("--model", help="reasoning model; default: LACE_REASONING_MODEL")
    add("--formatter", help="formatter model; default: LACE_FORMATTER_MODEL")
    add("--grouping", choices=get_args(Grouping), help="criteria that share a prompt; default: auto")
    add("--knowledge", choices=get_args(KnowledgeMode), help=KNOWLEDGE)
    add("--embedding-model", help="ranks retrieved passages by meaning too; default: by words only")
    add("--samples", type=positive, metavar="K", help=SAMPLES)
    add("--role-in", choices=get_args(RoleIn), help="message that contains a role's task; default: user")
    add(
        "--layout",
        choices=get_args(LayoutChoice),
        help="first part of a prompt; --dry-run compares both; default: auto",
    )
    add("--logprobs", action="store_true", default=None, help="store token probabilities as p_true")
    add(
        "--window-tokens",
        type=positive,
        metavar="N",
        help="judge longer chats in windows of N tokens; default: no windows",
    )
    add("--window-rule", choices=get_args(WindowRule), help="how the verdicts of windows become one")
    add(
        "--ablation",
        choices=[name for name in get_args(Ablation) if name],
        help="changes the briefs of a debate",
    )


def refuse_plan_options(options: dict[str, Any]) -> None:
    """Refuse options that would change the plan of a resumed run."""
    for name in PLAN_OPTIONS:
        if options[name] is not None:
            raise InputProblem(f"{option(name)} cannot be used with --resume: the run keeps its plan")


def chosen_set(options: dict[str, Any]) -> ChatSet:
    """Return the chat set of --set; raises InputProblem without one."""
    if not options["set"] or not (options["engine"] or options["profile"]):
        raise InputProblem("use --set with --engine or --profile, or --resume RUN")
    chat_set = ChatSet.objects.select_related("rubric").filter(name=options["set"]).first()
    if chat_set is None:
        raise InputProblem(f"--set: there is no chat set {options['set']!r}")
    return chat_set


def chosen_judge(options: dict[str, Any]) -> JudgeSpec:
    """Return the recipe: the profile's, with the given options applied. Raises InputProblem."""
    recipe = named_recipe(options["profile"]) if options["profile"] else {}
    recipe |= {name: options[name] for name in JUDGE_OPTIONS if options[name] is not None}
    windows = {name.removeprefix("window_"): options[name] for name in WINDOW_OPTIONS if options[name]}
    if windows:
        recipe["windows"] = (recipe.get("windows") or {}) | windows
    try:
        return spec_from_json(endpoints_named(recipe))
    except FieldProblem as problem:
        raise InputProblem(_named(problem, options)) from None


def profile_as_it_is(options: dict[str, Any]) -> JudgeProfile | None:
    """Return the profile if no option changes its recipe, else None."""
    if any(options[name] is not None for name in (*JUDGE_OPTIONS, *WINDOW_OPTIONS)):
        return None
    return JudgeProfile.objects.filter(name=options["profile"] or "").first()


def chosen_run(options: dict[str, Any]) -> RunChoice:
    """Return what the run covers and may spend."""
    return RunChoice(
        criteria=chosen_keys(options["criteria"] or ""),
        split=options["split"] or "",
        limit=options["limit"],
        replicate=options["replicate"] or 0,
        mode=Run.Mode.BATCH if options["batch"] else Run.Mode.LIVE,
        budget_usd=options["budget"],
        audit=options["audit"] or 0.0,
    )


def chosen_keys(text: str) -> tuple[str, ...]:
    """Return the criterion keys of --criteria; an option without a key is refused."""
    keys = tuple(key.strip() for key in text.split(",") if key.strip())
    if text and not keys:
        raise InputProblem(f"--criteria: {text!r} contains no criterion")
    return keys


def named_recipe(name: str) -> dict[str, Any]:
    """Return the recipe of a profile as JSON. Raises InputProblem for an unknown name."""
    row = JudgeProfile.objects.filter(name=name).first()
    if row is None:
        raise InputProblem(f"--profile: there is no judge profile {name!r}")
    return profile_recipe(row)


def _named(problem: FieldProblem, options: dict[str, Any]) -> str:
    """Return the problem under the name of its option."""
    name = problem.field.replace("windows", "window").replace(".", "_")
    if problem.field == "windows":
        return f"--window-tokens: {problem.message}"
    return f"{option(name)}: {problem.message}" if options.get(name) is not None else f"--profile: {problem}"


def option(name: str) -> str:
    """Return the spelling of an option.

    Examples
    --------
    >>> option("role_in")
    '--role-in'
    """
    return f"--{name.replace('_', '-')}"


def positive(text: str) -> int:
    """Return a whole number above zero."""
    if (value := int(text)) <= 0:
        raise ValueError
    return value


def not_negative(text: str) -> int:
    """Return a whole number, zero or above."""
    if (value := int(text)) < 0:
        raise ValueError
    return value


def share(text: str) -> float:
    """Return a number from 0 to 1."""
    if not 0 <= (value := float(text)) <= 1:
        raise ValueError
    return value


def dollars(text: str) -> Decimal:
    """Return an amount above zero with at most four decimals; raises ArgumentTypeError."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal(0)
    if not value.is_finite() or not 0 < value < 100_000_000 or value != round(value, 4):
        raise ArgumentTypeError(f"must be US dollars from 0.0001 with at most four decimals, not {text!r}")
    return value
