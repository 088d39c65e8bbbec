"""Routes of second factors, sessions and single sign-on, as tests/routes.py has them for the rest."""

from tests.cases import LEADS, NOBODY, PEOPLE, SIGNED_IN, Case, get, post

SEEN = {"chat_id": "holdout_chat"}
ROUTES_OF_ACCOUNTS: dict[str, tuple[Case, ...]] = {
    # What changes a factor asks for the password again first.
    "mfa_index": (get(SIGNED_IN),),
    "account_reauthenticate": (get(SIGNED_IN),),
    "mfa_reauthenticate": (get(SIGNED_IN, says=302),),  # to the password: there is no second factor
    "mfa_reauthenticate_webauthn": (get(SIGNED_IN, says=302),),
    "mfa_authenticate": (get(PEOPLE, says=302),),  # nobody is half way through a sign-in
    "mfa_activate_totp": (get(SIGNED_IN, says=302), post(SIGNED_IN, {"code": "123456"})),
    "mfa_deactivate_totp": (get(NOBODY), post(NOBODY)),
    "mfa_view_recovery_codes": (get(NOBODY),),
    "mfa_generate_recovery_codes": (get(SIGNED_IN, says=302), post(SIGNED_IN)),
    "mfa_download_recovery_codes": (get(NOBODY),),
    "mfa_login_webauthn": (get(PEOPLE, says=302),),
    "mfa_add_webauthn": (get(SIGNED_IN, says=302), post(SIGNED_IN, {"credential": "{}"})),
    "mfa_edit_webauthn": (get(NOBODY), post(NOBODY)),
    "mfa_remove_webauthn": (get(NOBODY), post(NOBODY)),
    "account_sessions_end": (post(SIGNED_IN),),
    "account_session_end": (post(("rater",)), post(NOBODY, session_id="gone_session")),
    "sign_on": (post(PEOPLE, says=404),),  # no provider is set
    "sign_on_callback": (get(PEOPLE, says=404),),
    "sign_on_disconnect": (post(SIGNED_IN),),
    "labeling:person_sessions_end": (post(LEADS),),
    "labeling:person_session_end": (
        post(LEADS, person_id="rater_account"),
        post(NOBODY, person_id="rater_account", session_id="gone_session"),
    ),
    "labeling:person_factor_reset": (post(LEADS),),
    # ---- personal data; a wrong name deletes nothing
    "alignment:person_personal_data": (get(LEADS), post(LEADS, {"name": "x"}, says=200)),
    "alignment:person_personal_data_file": (post(LEADS, says=200),),
    "alignment:chat_personal_data": (get(LEADS), post(LEADS, {"name": "x"}, says=200)),
    "alignment:chat_personal_data_file": (post(LEADS, says=200),),
    # An export shows the holdout, too: a token without the right to see it opens none.
    "api_chat_personal_data": (
        get(LEADS, query={"chat": "CANARY-train"}, chat_id="holdout_chat"),
        Case(LEADS, "DELETE", query={"chat": "CANARY-train", "confirm": "CANARY-train"}, args=SEEN),
    ),
    "api_person_personal_data": (
        get(LEADS, query={"user": "ines"}, chat_id="holdout_chat"),
        # It is active.
        Case(LEADS, "DELETE", query={"user": "ines", "confirm": "ines"}, args=SEEN, says=409),
        Case(LEADS, "DELETE", query={"rater": "CANARY-third", "confirm": "CANARY-third"}, args=SEEN),
    ),
}
