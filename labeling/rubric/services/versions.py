"""New versions of criterion texts: what they mean, and the log of what changed."""

from collections.abc import Mapping
from dataclasses import dataclass

from common.inbox.services import Kind, inbox_add
from labeling.consensus.services.consensus import consensus_follow
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion, RubricGuideline, TextVersion
from labeling.people.queries.visibility import accounts_with
from labeling.people.services.audit import audit
from labeling.rubric.core.meaning import Change, TextMeaning, next_meaning
from labeling.rubric.core.rubric import version_hash
from labeling.rubric.queries.versions import TEXTS

RULE = ("passes_when", "allow_na")


@dataclass(frozen=True, slots=True)
class Claim:
    """A change as its author describes it, and whether a lead has to confirm that."""

    change: Change = ""
    confirmed_by: User | None = None
    asked: bool = False

    @property
    def wording(self) -> str:
        """The state to store with the version."""
        if self.change != "wording":
            return ""
        return TextVersion.Wording.ASKED if self.asked else TextVersion.Wording.CONFIRMED


def claim_of(change: Change, by: User | None) -> Claim:
    """Return the claim of a user: a lead, or whoever uses the command line, confirms it at once."""
    if change != "wording":
        return Claim(change)
    may = by is None or by.has_perm("labeling.manage_labeling")
    return Claim(change, confirmed_by=by if may else None, asked=not may)


def ask_leads(subject: str, *, by: User | None) -> None:
    """Tell the leads that they are to confirm a change of wording."""
    inbox_add(users=accounts_with("manage_labeling"), kind=Kind.WORDING, subject=subject, by=by)


def version_add(
    *,
    criterion: Criterion,
    texts: Mapping[str, str],
    rule: Mapping[str, bool],
    reason: str,
    by: User | None,
    claim: Claim | None = None,
    meaning: str = "",
    guideline: RubricGuideline | None = None,
) -> CriterionVersion:
    """Add the next version of a criterion whose row is locked; follow its meaning with the consensus.

    `meaning` is what it means, where that is known; otherwise `next_meaning` finds it from the claim.
    """
    earlier = list(criterion.versions.order_by("number"))
    claim = claim or Claim()
    digest = version_hash(question=texts["question"], definition=texts["definition"], **rule)
    if earlier and not meaning:
        meaning = next_meaning(
            content_hash=digest,
            texts=tuple(texts[name] for name in TEXTS),
            earlier=[_text_meaning(one) for one in earlier],
            change="" if claim.asked else claim.change,
        )
    row = CriterionVersion.objects.create(
        criterion=criterion,
        number=earlier[-1].number + 1 if earlier else 1,
        content_hash=digest,
        meaning=meaning,
        reason=reason,
        created_by=by,
        wording=claim.wording,
        wording_by=claim.confirmed_by,
        guideline_version=guideline,
        **texts,
        **rule,
    )
    consensus_follow(version=row)
    if claim.asked:
        ask_leads(f"text:{row.pk}", by=by)
    if earlier:
        _log(new=row, old=earlier[-1])
    return row


def _text_meaning(row: CriterionVersion) -> TextMeaning:
    texts = tuple(getattr(row, name) for name in TEXTS)
    return TextMeaning(row.number, row.content_hash, texts, row.meaning)


def _log(*, new: CriterionVersion, old: CriterionVersion) -> None:
    """Log who changed a criterion's text, with the changed fields before and after."""
    names = (*TEXTS, *RULE)
    texts = {name: {"old": getattr(old, name), "new": getattr(new, name)} for name in names}
    audit(
        actor=new.created_by,
        verb="criterion written",
        obj=new,
        criterion=new.criterion.key,
        number={"old": old.number, "new": new.number},
        reason=new.reason,
        asks_anew=new.meaning != old.meaning,
        **({"wording": new.wording} if new.wording else {}),
        **{name: change for name, change in texts.items() if change["old"] != change["new"]},
    )
