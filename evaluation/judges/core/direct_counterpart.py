"""The direct judge to which a debate is compared: the same in all but its engine."""

from collections.abc import Mapping
from typing import Any

from evaluation.engines.core.roles import final_role

# These follow from the engine. Roles and groups are compared one by one.
_OF_ENGINE = frozenset({"engine", "model", "roles", "groups", "ablation"})
# Token limits differ by role: the Judge also weighs briefs.
_LIMITS = frozenset({"max_tokens", "max_tokens_per_criterion"})


def debated_criteria(config: Mapping[str, Any]) -> frozenset[str]:
    """Return the keys of the criteria that a judge decides by debate; none for an imported judge.

    Parameters
    ----------
    config : the judge's configuration.

    Examples
    --------
    >>> auto = [{"engine": "direct", "criteria": [["polite"]]}, {"engine": "debate", "criteria": [["fact"]]}]
    >>> sorted(debated_criteria({"groups": auto}))
    ['fact']
    """
    return frozenset(entry[0] for group in _groups(config, "debate") for entry in group)


def is_direct_counterpart(direct: Mapping[str, Any], debate: Mapping[str, Any]) -> bool:
    """Return whether a direct judge has what a debate has, save for the briefs.

    Model, sampling, prompts, texts, knowledge and samples are equal, and each debated group of criteria is
    one group of the direct judge. An ablation changes briefs only, so it makes no difference.

    Parameters
    ----------
    direct, debate : configurations of judges.
    """
    if direct.get("engine") != "direct" or not debated_criteria(debate):
        return False
    settings = (direct.keys() | debate.keys()) - _OF_ENGINE
    return (
        all(direct.get(name) == debate.get(name) for name in settings)
        and _role(direct, final_role("direct")) == _role(debate, final_role("debate"))
        and _role(direct, "formatter") == _role(debate, "formatter")
        and all(group in _groups(direct, "direct") for group in _groups(debate, "debate"))
    )


def _groups(config: Mapping[str, Any], engine: str) -> list[list[Any]]:
    return [group.get("criteria", []) for group in config.get("groups", ()) if group["engine"] == engine]


def _role(config: Mapping[str, Any], role: str) -> dict[str, Any]:
    return {name: value for name, value in config["roles"][role].items() if name not in _LIMITS}
