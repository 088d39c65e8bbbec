"""Certificates of judges over HTTP."""

from typing import Any, cast

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

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
from alignment.regression.api.policy import Releases
from alignment.regression.serializers import StrictInput
from common.access import found_or_404
from common.api import FORBIDDEN, NOT_FOUND, PROBLEMS, WRONG, problem
from common.problems import InputProblem
from evaluation.core.hashing import canonical
from evaluation.models.runs import Run
from evaluation.runs.api import SeesJudge
from evaluation.runs.queries.runs import runs_open_to
from labeling.models.chats import Split
from labeling.models.people import User

# A certificate of a hundred criteria has a quarter of this.
LARGEST = 1_000_000


class IssueInput(StrictInput):
    """On which report, and for how long."""

    run = serializers.IntegerField()
    split = serializers.ChoiceField(
        ["", *Split.values], default="", allow_blank=True, help_text="'' is all splits."
    )
    days = serializers.IntegerField(min_value=1, max_value=LONGEST_DAYS, default=DAYS)


class RevokeInput(StrictInput):
    """Why it must not be relied on any more."""

    reason = serializers.CharField(max_length=LONGEST_REASON)


class ShownInput(serializers.Serializer[Any]):
    """A certificate as somebody was given it; what else stands beside the two is not looked at."""

    body = serializers.DictField()
    signature = serializers.CharField(max_length=200)

    def validate_body(self, body: dict[str, Any]) -> dict[str, Any]:
        """Bounded, so that nobody has us sort and hash what is no certificate."""
        if len(canonical(body)) > LARGEST:
            raise serializers.ValidationError(f"A certificate is shorter than {LARGEST:,} characters.")
        return body


class CertificateOutput(serializers.Serializer[Any]):
    """The signed body, what verifies it, and whether it holds now."""

    id = serializers.IntegerField()
    body = serializers.DictField()
    signature = serializers.CharField(help_text="Ed25519 over the body as RFC 8785 writes it, in base64.")
    public_key = serializers.CharField()
    state = serializers.ChoiceField(["valid", "expired", "revoked"])
    reasons = serializers.ListField(child=serializers.CharField())
    revoked_at = serializers.DateTimeField(allow_null=True)


class VerifiedOutput(serializers.Serializer[Any]):
    """`answer`: genuine, forged, or unknown (our key, but not on record); of a genuine one its state now."""

    answer = serializers.ChoiceField(["genuine", "forged", "unknown"])
    reason = serializers.CharField(allow_blank=True)
    id = serializers.IntegerField(allow_null=True)
    state = serializers.ChoiceField(["valid", "expired", "revoked"], allow_null=True)
    reasons = serializers.ListField(child=serializers.CharField())


class KeyOutput(serializers.Serializer[Any]):
    """A public key that certificates were signed with."""

    key = serializers.CharField(help_text="Its short name, as certificates name it.")
    public_key = serializers.CharField(help_text="Ed25519, 32 bytes in base64.")


class CertificateList(APIView):
    """The certificates that the user may be told of."""

    def get_permissions(self) -> list[Any]:
        """Reading is seeing; issuing is for those who release."""
        return [Releases() if self.request.method == "POST" else SeesJudge()]

    @extend_schema(
        operation_id="certificates",
        responses={200: CertificateOutput(many=True), 403: FORBIDDEN, 404: NOT_FOUND},
    )
    def get(self, request: Request) -> Response:
        """The newest hundred."""
        rows = certificates_shown(list(certificate_whole()[:SHOWN]), user=request.user)
        states = certificate_states(rows)
        return Response(
            CertificateOutput([certificate_json(row, states[row.pk]) for row in rows], many=True).data
        )

    @extend_schema(
        operation_id="certificate_issue",
        request=IssueInput,
        responses={201: CertificateOutput, 400: WRONG, **PROBLEMS},
    )
    def post(self, request: Request) -> Response:
        """Sign what a run's report says."""
        given = IssueInput(data=request.data)
        given.is_valid(raise_exception=True)
        run = _run(request, given.validated_data["run"])
        try:
            row = certificate_issue(
                run=run,
                split=given.validated_data["split"],
                days=given.validated_data["days"],
                by=cast(User, request.user),
            )
        except InputProblem as wrong:
            raise problem("refused", str(wrong)) from wrong
        return Response(CertificateOutput(certificate_json(row)).data, status=status.HTTP_201_CREATED)


class CertificateDetail(APIView):
    """One certificate."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="certificate", responses={200: CertificateOutput, 403: FORBIDDEN, 404: NOT_FOUND}
    )
    def get(self, request: Request, certificate_id: int) -> Response:
        """What was signed, and whether it holds now."""
        row = found_or_404(certificate_found(certificate_id, user=request.user))
        return Response(CertificateOutput(certificate_json(row)).data)


class CertificateRevoke(APIView):
    """The end of a certificate."""

    permission_classes = [Releases]

    @extend_schema(
        operation_id="certificate_revoke",
        request=RevokeInput,
        responses={200: CertificateOutput, 400: WRONG, **PROBLEMS},
    )
    def post(self, request: Request, certificate_id: int) -> Response:
        """Revoke it, with a reason."""
        row = found_or_404(certificate_found(certificate_id, user=request.user))
        given = RevokeInput(data=request.data)
        given.is_valid(raise_exception=True)
        try:
            row = certificate_revoke(
                certificate=row, reason=given.validated_data["reason"], by=cast(User, request.user)
            )
        except InputProblem as wrong:
            raise problem("refused", str(wrong)) from wrong
        return Response(CertificateOutput(certificate_json(row)).data)


class CertificateVerify(APIView):
    """Certificates that somebody was shown."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="certificate_verify",
        request=ShownInput,
        responses={200: VerifiedOutput, 400: WRONG, 403: FORBIDDEN, 404: NOT_FOUND},
    )
    def post(self, request: Request) -> Response:
        """Genuine or forged, and whether it still holds."""
        if not isinstance(request.data, dict):
            raise ValidationError({"body": ["Send the certificate's JSON."]})
        given = ShownInput(data=request.data)
        given.is_valid(raise_exception=True)
        # NB: as it was sent: what a field makes of it is not what was signed.
        found = certificate_verified(body=request.data["body"], signature=given.validated_data["signature"])
        return Response(
            VerifiedOutput(
                {
                    "answer": found.word,
                    "reason": found.reason,
                    "id": found.certificate.pk if found.certificate else None,
                    "state": found.state.word if found.state else None,
                    "reasons": list(found.state.reasons) if found.state else [],
                }
            ).data
        )


class CertificateKeys(APIView):
    """What verifies certificates without this workbench."""

    permission_classes = [SeesJudge]

    @extend_schema(
        operation_id="certificate_keys", responses={200: KeyOutput(many=True), 403: FORBIDDEN, 404: NOT_FOUND}
    )
    def get(self, request: Request) -> Response:
        """Every public key that a certificate was signed with, the oldest first."""
        keys = [{"key": key_id(public), "public_key": public} for public in public_keys()]
        return Response(KeyOutput(keys, many=True).data)


def _run(request: Request, pk: int) -> Run:
    return get_object_or_404(runs_open_to(request.user), pk=pk)
