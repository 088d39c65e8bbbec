"""API of judge certificates."""

from typing import Any, cast

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from alignment.certificates.core.signatures import key_id
from alignment.certificates.queries.certificates import (
    certificate_states,
    certificate_verified,
    certificate_whole,
    certificates_shown,
    public_keys,
)
from alignment.certificates.queries.page import SHOWN, certificate_found, certificate_json
from alignment.certificates.services.certificates import (
    DAYS,
    LONGEST_DAYS,
    LONGEST_REASON,
    certificate_issue,
    certificate_revoke,
)
from common.access import found_or_404
from common.api import INVALID, NO_ACCESS, PROBLEMS, ApiView, PostPermission, StrictInput, problem, validated
from common.problems import InputProblem
from evaluation.core.hashing import canonical
from evaluation.runs.queries.runs import runs_open_to
from labeling.models.chats import Split
from labeling.models.people import User
from labeling.people.api.permissions import Releases, SeesJudge

# Four times the size of a certificate of 100 criteria.
LARGEST = 1_000_000
NOTES = "What changed since it was issued without ending it."


class IssueInput(StrictInput):
    """A certificate to issue: the report it certifies, and its validity in days."""

    run = serializers.IntegerField()
    split = serializers.ChoiceField(
        ["", *Split.values], default="", allow_blank=True, help_text="'' is all splits."
    )
    days = serializers.IntegerField(min_value=1, max_value=LONGEST_DAYS, default=DAYS)


class RevokeInput(StrictInput):
    """Why the certificate is no longer valid."""

    reason = serializers.CharField(max_length=LONGEST_REASON)


class ShownInput(serializers.Serializer[Any]):
    """A certificate to verify; other fields are ignored."""

    body = serializers.DictField()
    signature = serializers.CharField(max_length=200)

    def validate_body(self, body: dict[str, Any]) -> dict[str, Any]:
        """Limit the size, because verifying sorts and hashes the body."""
        if len(canonical(body)) > LARGEST:
            raise serializers.ValidationError(f"Longer than {LARGEST:,} characters: not a certificate.")
        return body


class CertificateOutput(serializers.Serializer[Any]):
    """A certificate: its signed body, the key that verifies it, and whether it is valid now."""

    id = serializers.IntegerField()
    body = serializers.DictField()
    signature = serializers.CharField(help_text="Ed25519 over the body as RFC 8785 writes it, in base64.")
    public_key = serializers.CharField()
    state = serializers.ChoiceField(["valid", "expired", "revoked"])
    reasons = serializers.ListField(child=serializers.CharField(), help_text="Why it is not valid.")
    notes = serializers.ListField(child=serializers.CharField(), help_text=NOTES)
    revoked_at = serializers.DateTimeField(allow_null=True)


class VerifiedOutput(serializers.Serializer[Any]):
    """Genuine (with its state now), forged, or unknown: signed with our key, but not in the database."""

    answer = serializers.ChoiceField(["genuine", "forged", "unknown"])
    reason = serializers.CharField(allow_blank=True)
    id = serializers.IntegerField(allow_null=True)
    state = serializers.ChoiceField(["valid", "expired", "revoked"], allow_null=True)
    reasons = serializers.ListField(child=serializers.CharField(), help_text="Why it is not valid.")
    notes = serializers.ListField(child=serializers.CharField(), help_text=NOTES)


class KeyOutput(serializers.Serializer[Any]):
    """A public key that signed certificates."""

    key = serializers.CharField(help_text="Its short name, as in certificates.")
    public_key = serializers.CharField(help_text="Ed25519, 32 bytes in base64.")


class CertificateList(PostPermission):
    """The certificates that you can see."""

    permission_classes = [SeesJudge]
    post_permission = Releases

    @extend_schema(operation_id="certificates", responses={200: CertificateOutput(many=True), **NO_ACCESS})
    def get(self, request: Request) -> Response:
        """The newest 100 certificates."""
        rows = certificates_shown(list(certificate_whole()[:SHOWN]), user=request.user)
        states = certificate_states(rows)
        return Response(
            CertificateOutput([certificate_json(row, states[row.pk]) for row in rows], many=True).data
        )

    @extend_schema(
        operation_id="certificate_issue",
        request=IssueInput,
        responses={201: CertificateOutput, 400: INVALID, **PROBLEMS},
    )
    def post(self, request: Request) -> Response:
        """Sign the figures of a run's report."""
        body = validated(IssueInput, request.data)
        run = get_object_or_404(runs_open_to(request.user), pk=body["run"])
        try:
            row = certificate_issue(
                run=run, split=body["split"], days=body["days"], by=cast(User, request.user)
            )
        except InputProblem as wrong:
            raise problem("refused", str(wrong)) from wrong
        return Response(CertificateOutput(certificate_json(row)).data, status=status.HTTP_201_CREATED)


class CertificateDetail(ApiView):
    """One certificate."""

    permission_classes = [SeesJudge]

    @extend_schema(operation_id="certificate", responses={200: CertificateOutput, **NO_ACCESS})
    def get(self, request: Request, certificate_id: int) -> Response:
        """The certificate, and whether it is valid now."""
        row = found_or_404(certificate_found(certificate_id, user=request.user))
        return Response(CertificateOutput(certificate_json(row)).data)


class CertificateRevoke(ApiView):
    """Revocation of a certificate."""

    permission_classes = [Releases]

    @extend_schema(
        operation_id="certificate_revoke",
        request=RevokeInput,
        responses={200: CertificateOutput, 400: INVALID, **PROBLEMS},
    )
    def post(self, request: Request, certificate_id: int) -> Response:
        """Revoke the certificate, with a reason."""
        row = found_or_404(certificate_found(certificate_id, user=request.user))
        reason = validated(RevokeInput, request.data)["reason"]
        try:
            row = certificate_revoke(certificate=row, reason=reason, by=cast(User, request.user))
        except InputProblem as wrong:
            raise problem("refused", str(wrong)) from wrong
        return Response(CertificateOutput(certificate_json(row)).data)


class CertificateVerify(ApiView):
    """Verification of a certificate."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="certificate_verify",
        request=ShownInput,
        responses={200: VerifiedOutput, 400: INVALID, **NO_ACCESS},
    )
    def post(self, request: Request) -> Response:
        """Whether the certificate is genuine, and whether it is still valid."""
        if not isinstance(request.data, dict):
            raise ValidationError({"body": ["Send the certificate's JSON."]})
        signature = validated(ShownInput, request.data)["signature"]
        # NB: the body as it was sent: what a field makes of it is not what was signed.
        result = certificate_verified(body=request.data["body"], signature=signature, user=request.user)
        return Response(
            VerifiedOutput(
                {
                    "answer": result.word,
                    "reason": result.reason,
                    "id": result.certificate.pk if result.certificate else None,
                    "state": result.state.word if result.state else None,
                    "reasons": list(result.state.reasons) if result.state else [],
                    "notes": list(result.state.notes) if result.state else [],
                }
            ).data
        )


class CertificateKeys(ApiView):
    """Keys to verify certificates without this workbench."""

    permission_classes = [SeesJudge]

    @extend_schema(operation_id="certificate_keys", responses={200: KeyOutput(many=True), **NO_ACCESS})
    def get(self, request: Request) -> Response:
        """Every public key that signed a certificate, oldest first."""
        keys = [{"key": key_id(public), "public_key": public} for public in public_keys()]
        return Response(KeyOutput(keys, many=True).data)
