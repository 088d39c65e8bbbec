"""Where a text holds personal data: e-mail addresses, phone numbers, payment cards and IBANs."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import phonenumbers
from phonenumbers import Leniency, PhoneNumberFormat
from stdnum import iban, luhn

KINDS = ("email", "iban", "card", "phone")  # the order in which they are looked for: a found one is closed
NAMED_KINDS = ("name", "place")  # found by a language model

# The local part may have 64 characters (RFC 5321, section 4.5.3.1.1), the domain needs a letter at its end.
_EMAIL = re.compile(r"(?<![\w.+-])\w[\w.'&+-]{0,63}@(?:[^\W_](?:[\w-]{0,62})\.){1,8}[^\W\d_]{2,63}(?![\w-])")
_FILES = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp")  # logo@2x.png
_IBAN = re.compile(r"(?<![^\W_])[A-Za-z]{2}\d{2}(?:[ \u00a0-]?[A-Za-z0-9]){11,30}")
_CARD = re.compile(r"(?<![\w+])(?<!\d[ .,-])\d(?:[ \u00a0-]?\d){13,27}")
# Issuers of cards by their first digits and the lengths of their numbers (ISO/IEC 7812; the issuers' ranges).
_ISSUERS = (
    (re.compile(r"4"), (16, 19)),  # Visa
    (re.compile(r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720"), (16,)),  # Mastercard
    (re.compile(r"3[47]"), (15,)),  # American Express
    (re.compile(r"6011|64[4-9]|65"), (16, 19)),  # Discover
    (re.compile(r"35(?:2[89]|[3-8])"), (16, 19)),  # JCB
    (re.compile(r"3(?:0[0-5]|[689])"), (14, 16, 19)),  # Diners Club
    (re.compile(r"62"), (16, 17, 18, 19)),  # UnionPay
    (re.compile(r"50[0-9]|5[6-8]|6304|67"), (16, 18, 19)),  # Maestro
)
_GROUPS = ((4, 4, 4, 4), (4, 6, 5), (4, 6, 4), (4, 4, 4, 4, 3), (4, 4, 4, 4, 2), (6, 13), (4, 4, 4, 6))

_DIGITS = re.compile(r"\d(?:[^\w\n]{0,3}\d){6}")  # no phone number has fewer than seven
# Digits with what people write between them; one phone number has at most 15 (ITU-T E.164).
_NUMBER = re.compile(
    r"[+＋]?\(?\d(?:(?:[ \u00a0]?[(/\u2010-\u2015-][ \u00a0]?|\.|\)[ \u00a0-]?|[ \u00a0]{1,2})?\d){6,30}"
)
_END = re.compile(r"[\n;!?]|(?<!tel)(?<!fax)(?<!mob)[.]\s|\d{3}", re.IGNORECASE)  # of what a word is about
_GROUP = re.compile(r"\d+")
_NEAR = 48  # characters around a number in which words say what it is
# Words that say it is the number of something else, with what may stand between such a word and the number.
_COUNTED = re.compile(
    r"(?<![^\W_])(?:(?:no|nr)[.:]|id(?![^\W_])|(?:orders?|invoices?|tracking|track|parcels?|packages?"
    r"|shipments?|delivery|consignment|waybill|awb|reference|ref|tickets?|cases?|bookings?|reservation"
    r"|transaction|customer|account|contract|articles?|items?|sku|ean|upc|isbn|gtin|imei|serial|model|product"
    r"|part|batch|lot|code|coupon|voucher|policy|membership|member|bestellung|bestellnummer|auftrag"
    r"|auftragsnummer|rechnung|rechnungsnummer|sendung|sendungsnummer|paket|kundennummer|kundennr|artikel"
    r"|artikelnummer|vertrag|vorgang|seriennummer|commande|facture|colis|pedido)(?![^\W_]),?)"
    r"(?:[\s:.#(\"'*=/-]|(?:number|numbers|num|no|nr|nummer|id|code|is|was|ist|lautet|und|and|or|numéro"
    r"|número)\b|\d[\d-]*+,?)*+\Z",  # possessive: tries no digits twice
    re.IGNORECASE,
)
_WORDS = (
    r"(?<![^\W_])(?:phones?|telephone|tel|call(?:ed|ing)?|mobile|cell|cellphone|whatsapp|sms|text|fax|reach"
    r"|ring|dial|hotline|telefon|telefonnummer|handy|handynummer|mobil|anrufen|rückruf|téléphone"
    r"|teléfono|móvil)(?![^\W_])"
)
_PHONE = re.compile(_WORDS, re.IGNORECASE)
_IS_PHONE = re.compile(
    rf"(?:\s?\(|\s(?:is|as|ist)\s+(?:(?:my|our|the|a|meine?)\s+)?|, ?(?:my|meine?)\s+){_WORDS}(?!:)",
    re.IGNORECASE,
)
_ASKED_NEAR = 120  # characters at the end of a message that may ask for a number
_ASKED = re.compile(
    r"(?<![^\W_])(?:(?P<phone>phone|telephone|mobile|cell|handy|handynummer|telefon|telefonnummer|téléphone)"
    r"|order|invoice|tracking|bestellnummer|sendungsnummer|kundennummer)(?![^\W_])",
    re.IGNORECASE,
)
_DECIMAL = re.compile(r"(?<![\d.])\d+\.\d{1,2}(?![\d.])")
_NO_PHONE = re.compile(
    r"\d{4}-\d\d?-\d\d?(?!\d)"  # dates, with or without a time
    r"|\d{1,2}[./-]\d{1,2}[./-](?:\d{4}|\d\d)(?!\d)"
    r"|(?:\d{1,3}\.){3}\d{1,3}(?![\d.])"  # IP addresses and versions
    r"|\d{1,3}\.\d{4,}"  # coordinates
    r"|\d{5}-\d{4}(?!\d)"  # ZIP codes
)
_MONEY_BEFORE = re.compile(r"(?:[$€£¥]|\b(?:USD|EUR|GBP|CHF))\s?$", re.I)
_MONEY_AFTER = re.compile(r"\s?(?:[€£¥%]|(?:USD|EUR|GBP|CHF|euros?|dollars?|pounds?)\b|[.,]\d)", re.I)


@dataclass(frozen=True, slots=True, order=True)
class Found:
    """Personal data at [start, end) in code points; `value` is the same however the same thing is written."""

    start: int
    end: int
    kind: str
    value: str


def personal_data_in(text: str, *, before: str = "", regions: Sequence[str] = ()) -> list[Found]:
    """
    Return the personal data in a text, from its start to its end, without overlaps.

    A number that only looks like a phone number or a card is passed over: by its checksum, by the issuers'
    ranges, by the ranges that a country gives to phones, and by the words around it. "Order 4029357733" is no
    phone number, "call me on 4029357733" is one.

    Parameters
    ----------
    before : the message before it: an answer to "What is your phone number?" may be digits alone.
    regions : ISO 3166 codes of the countries whose phone numbers are read without "+"; none: only those with.

    Examples
    --------
    >>> [found.kind for found in personal_data_in("Mail an.na@example.com or call +44 20 7946 0958.")]
    ['email', 'phone']
    >>> personal_data_in("Order 4111111111111112 of 2026-11-29, € 1,299.00")
    []
    """
    found: list[Found] = []
    for one in _candidates(text, before, regions):
        if not any(one.start < other.end and other.start < one.end for other in found):
            found.append(one)
    return sorted(found)


def unknown_regions(regions: Sequence[str]) -> list[str]:
    """
    Return those that are no country whose phone numbers are known.

    Examples
    --------
    >>> unknown_regions(["GB", "XX"])
    ['XX']
    """
    return [region for region in regions if region not in phonenumbers.SUPPORTED_REGIONS]


def _candidates(text: str, before: str, regions: Sequence[str]) -> Iterator[Found]:
    if "@" in text:
        yield from _emails(text)
    if _DIGITS.search(text):
        yield from _ibans(text)
        yield from _cards(text)
        yield from _phones(text, before, regions)


def _emails(text: str) -> Iterator[Found]:
    for match in _EMAIL.finditer(text):
        address = match[0].lower()
        if not address.endswith(_FILES) and ".." not in address:
            yield Found(match.start(), match.end(), "email", address)


def _ibans(text: str) -> Iterator[Found]:
    at = 0
    while match := _IBAN.search(text, at):
        at = match.start() + 2
        # The pattern may reach into the words behind: the longest part that ends with a group counts.
        ends = [end for end in range(match.end(), match.start() + 14, -1) if _ends_group(text, end)]
        for end in ends:
            number = re.sub(r"[\W_]", "", text[match.start() : end]).upper()
            if iban.is_valid(number, check_country=False):
                yield Found(match.start(), end, "iban", number)
                at = end
                break


def _ends_group(text: str, end: int) -> bool:
    return text[end - 1].isalnum() and (end == len(text) or not text[end].isalnum())


def _cards(text: str) -> Iterator[Found]:
    for match in _CARD.finditer(text):
        if _COUNTED.search(text, max(match.start() - _NEAR, 0), match.start()):
            continue
        # The month of expiry and the code of a card may follow.
        for end in range(match.end(), match.start() + 13, -1):
            if _ends_group(text, end) and _is_card(written := text[match.start() : end]):
                yield Found(match.start(), end, "card", re.sub(r"\D", "", written))
                break


def _is_card(written: str) -> bool:
    number = re.sub(r"\D", "", written)
    groups = tuple(len(group) for group in re.split(r"\D", written))
    issued = any(issuer.match(number) and len(number) in lengths for issuer, lengths in _ISSUERS)
    return issued and (len(groups) == 1 or groups in _GROUPS) and luhn.is_valid(number)


def _phones(text: str, before: str, regions: Sequence[str]) -> Iterator[Found]:
    # The library takes a millisecond a number, so it sees only what the words around do not rule out.
    at = 0
    while match := _NUMBER.search(text, at):
        other = _NO_PHONE.match(text, match.start())
        at = other.end() if other else match.end()
        called = "" if other else _called(text, match.start(), match.end(), before)
        found = _matches(match[0], regions, Leniency.VALID) if called else []
        if called == "phone" and not found:
            # Whoever says that it is a phone number need not know the ranges that are in use.
            found = [
                one for one in _matches(match[0], regions, Leniency.POSSIBLE) if one.raw_string == match[0]
            ]
        whole = match.start()
        for one in found:
            start, end = match.start() + one.start, match.start() + one.end
            if any(sign.isdigit() for sign in text[whole:start]):
                break  # a part of a longer number
            whole = end
            yield Found(start, end, "phone", phonenumbers.format_number(one.number, PhoneNumberFormat.E164))


def _matches(raw: str, regions: Sequence[str], leniency: int) -> list[phonenumbers.PhoneNumberMatch]:
    """Return the phone numbers in digits, of the first region that finds any."""
    for region in regions or (None,):
        if found := list(phonenumbers.PhoneNumberMatcher(raw, region, leniency=leniency)):
            return found
    return []


def _called(text: str, start: int, end: int, before: str) -> str:
    """Return "phone" for what the text says is a phone number, "maybe" for what may be one, else ""."""
    raw = text[start:end]
    groups = _GROUP.findall(raw)
    if 2 * sum(map(len, groups)) < 3 * len(groups) or (len(groups) == 1 and len(groups[0]) > 15):
        return ""
    if "+" in raw or "＋" in raw:
        return "phone"
    if (
        _DECIMAL.search(raw)
        or _inside_a_word(text, start, end)
        or _COUNTED.search(text, max(start - _NEAR, 0), start)
    ):
        return ""
    if _MONEY_BEFORE.search(text, max(start - 8, 0), start) or _MONEY_AFTER.match(text, end):
        return ""
    line = _END.split(text[max(start - _NEAR, 0) : start])[-1]
    if _PHONE.search(line) or _IS_PHONE.match(text, end) or (start < _NEAR and _asked_for_phone(before)):
        return "phone"
    # Ten digits in a row are more often the number of an order than of a phone.
    return "maybe" if len(groups) > 1 else ""


def _inside_a_word(text: str, start: int, end: int) -> bool:
    before, after = text[max(start - 2, 0) : start], text[end : end + 2]
    return re.search(r"[\w#][-/._]?\Z", before) is not None or re.match(r"[-/_]?\w", after) is not None


def _asked_for_phone(before: str) -> bool:
    """Whether the last that the message before asks for is a phone number."""
    asked = list(_ASKED.finditer(before, max(len(before) - _ASKED_NEAR, 0)))
    return bool(asked) and asked[-1].lastgroup == "phone"
