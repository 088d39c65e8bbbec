"""Routes of the docs inside the workbench, as tests/routes.py has them for the rest."""

from tests.cases import SIGNED_IN, Case, get

ROUTES_OF_HELP: dict[str, tuple[Case, ...]] = {
    "help": (get(SIGNED_IN),),
    "help_page": (get(SIGNED_IN, page_name="reference/files"), get(SIGNED_IN, page_name="README", says=302)),
    "help_picture": (get(SIGNED_IN, picture_name="rate.png"),),
    "help_moved": (get(SIGNED_IN, mark="0a1b2c3d4e5f", page_name="label", says=301),),
    "help_llms": (get(SIGNED_IN),),
    "help_text": (get(SIGNED_IN, page_name="label"),),
}
