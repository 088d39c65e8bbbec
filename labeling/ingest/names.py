"""Names of people and places in a text, by Presidio and a language model: an optional extra."""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.conf import settings

from common.problems import OPERATOR, InputProblem
from labeling.ingest.core.personal_data import Found

SETTING = "LACE_NAMES_MODEL"
ENTITIES = {"PERSON": "name", "LOCATION": "place"}
# Presidio asks for a language; the model decides.
_LANGUAGE = "xx"

NameFinder = Callable[[str], list[Found]]


class NamesUnavailable(InputProblem):
    """Names are to be redacted, but the extra or its model is missing; nothing was stored."""

    def __init__(self, why: str) -> None:
        super().__init__(f"names and places cannot be found: {why}; ask {OPERATOR}", settings=(SETTING,))


def names_offered() -> bool:
    """Whether the server has a model for names. It is not loaded yet."""
    return bool(settings.LACE_NAMES_MODEL)


def name_finder() -> NameFinder:
    """Return what finds names and places in a text; the first call loads it. Raises NamesUnavailable."""
    if not names_offered():
        raise NamesUnavailable("this server has no model for them")
    return _finder(settings.LACE_NAMES_MODEL)


@cache
def _finder(model: str) -> NameFinder:
    analyzer = _analyzer(model)

    def found(text: str) -> list[Found]:
        results = analyzer.analyze(text, language=_LANGUAGE, entities=list(ENTITIES))
        return [
            Found(one.start, one.end, ENTITIES[one.entity_type], _value(text[one.start : one.end]))
            for one in results
        ]

    return found


def _analyzer(model: str) -> Any:
    if find_spec("presidio_analyzer") is None or find_spec("spacy") is None:
        raise NamesUnavailable("the packages of requirements-names.txt are not installed")
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import SpacyNlpEngine
    from presidio_analyzer.predefined_recognizers import SpacyRecognizer
    from spacy.util import is_package

    # Presidio would download a model that is missing.
    if not (is_package(model) or Path(model).is_dir()):
        raise NamesUnavailable(f"the spaCy model {model} is not installed")
    engine = SpacyNlpEngine(models=[{"lang_code": _LANGUAGE, "model_name": model}])
    engine.load()
    recognizer = SpacyRecognizer(supported_language=_LANGUAGE, supported_entities=list(ENTITIES))
    registry = RecognizerRegistry(recognizers=[recognizer], supported_languages=[_LANGUAGE])
    return AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=[_LANGUAGE])


def _value(text: str) -> str:
    """Return a name as it is compared: however it is spaced or capitalized."""
    return " ".join(text.split()).casefold()
