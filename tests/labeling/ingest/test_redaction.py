"""Personal data leaves a chat on its way in; orders, prices, dates and codes stay."""

from collections import Counter

import pytest

from labeling.ingest.core.personal_data import personal_data_in
from labeling.ingest.core.redaction import Redactor
from labeling.rating.core.evidence import evidence_of
from tests.factories.personal_data import texts

REGIONS = ("US", "GB", "DE")
KEY = b"a secret of 24 bytes ..."
# Written by hand, apart from the sentences of the factory.
PERSONAL: tuple[tuple[str, list[str]], ...] = (
    ("Appelez le 06.12.34.56.78 ou le +33 1 42 68 53 00", ["+33 1 42 68 53 00"]),
    ("hi its mike, 646-555-0182, pls call back", ["646-555-0182"]),
    ("cell (646) 555.0182 or work 646.555.0183 ext 12", ["(646) 555.0182", "646.555.0183"]),
    ("+1-202-555-0143", ["+1-202-555-0143"]),
    ("tel:+442079460018", ["+442079460018"]),
    ("Meine Nummer: 0171/2345678, danke!", ["0171/2345678"]),
    (
        "Sie erreichen mich unter 030-2345678 oder per Mail: max.mustermann@gmx.de",
        ["030-2345678", "max.mustermann@gmx.de"],
    ),
    ("Bitte zurückrufen: +49 (0) 171 2345678", ["+49 (0) 171 2345678"]),
    ("WhatsApp me 07700900123", ["07700900123"]),
    ("my no is 07912 345678", ["07912 345678"]),
    ("The number you called, 1-800-356-9377, is always busy", ["1-800-356-9377"]),
    (
        '{"customer": {"email": "jo@acme.io", "phone": "+14155550132"}, "order_id": 4155550132}',
        ["jo@acme.io", "+14155550132"],
    ),
    ("Contact: JO@ACME.IO.", ["JO@ACME.IO"]),
    ("first.last@sub.domain.museum is mine", ["first.last@sub.domain.museum"]),
    ("**anna@example.org** is bold, [mail](mailto:bob@example.org)", ["anna@example.org", "bob@example.org"]),
    ("I paid w/ 5555 5555 5555 4444 12/27 123", ["5555 5555 5555 4444"]),
    ("amex 3782 822463 10005", ["3782 822463 10005"]),
    ("it ends 4242, the full one is 4242424242424242", ["4242424242424242"]),
    ("cc 4012-8888-8888-1881 cvv 999", ["4012-8888-8888-1881"]),
    ("refund: FR14 2004 1010 0505 0001 3M02 606 thanks", ["FR14 2004 1010 0505 0001 3M02 606"]),
    ("IBAN NL91ABNA0417164300, BIC ABNANL2A", ["NL91ABNA0417164300"]),
    ("iban: es91 2100 0418 4502 0005 1332", ["es91 2100 0418 4502 0005 1332"]),
    ("CH93 0076 2011 6238 5295 7 ist mein Konto", ["CH93 0076 2011 6238 5295 7"]),
)
NOTHING = (
    "Order #112-3487562-9087421 shipped on 03/14/2026 via UPS 1Z12345E0205271688",
    "Royal Mail AB123456785GB, DPD 15501234567890, Hermes 8 1234 5678 9012 3456",
    "Total: $2,149.99 (incl. $149.99 tax), was $2 499.00",
    "EUR 1.299,00 / 1 299,00 €",
    "Open Mon-Fri 08:00-18:30, Sat 09-13",
    "Between 2024-2025 we sold 1200000 units",
    "Size 42-44, 100x200x30, 12.5 kg, ratio 16:9",
    "Model WH-1000XM5, serial S01-3456789-B, firmware 2.10.4.1123",
    "ISBN 978-0-306-40615-7, EAN 4012345678901, ASIN B08N5WRWNW",
    "IP 10.0.0.12, fe80::1ff:fe23:4567:890a, MAC 00:1B:44:11:3A:B7",
    "UUID 123e4567-e89b-12d3-a456-426614174000 request 20260302-104512-778",
    "https://shop.example/p/4029357733?ref=0301234567&t=1764374400",
    "VAT DE123456789, Steuernummer 12/345/67890, HRB 123456",
    "Flight LH 1234 on 12 03 2026, seat 12A, gate 45",
    "Gift card code 6011-AAAA-2233-1145, PIN 1234",
    "Kundennr. 20301234567, Vertrag 00491234567890",
    "Ticket 2026030212345678 und Fall-Nr 00345678",
    "meter reading 00123456.7 kWh, customer no 1234 5678 9012",
    "12345678 or 23456789 — which one is my parcel?",
    "10 000 000 people; 3 141 592 653 digits",
    "Case 00012345 / RMA 77-2093-118 / 5 pcs",
    "@anna_99 on Instagram, see me@ school, 5@$3",
    "GPS 40.712776, -74.005974 near 10001-1234",
    "from 10:30 to 11:45 on 5/6/2026, 7 to 8 items, 1-2-3-4-5-6-7",
    "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "Package dims 120 80 144, pallets 400 600 800",
    "lot 4242424242424242",
    # Found wrong at first in the public chats of tau-bench's retail agent.
    "269.16 - 272.33, (499.28 - 471.82) and 1166.98 - 481.5",
    '{"Portable Charger": "6942297802", "Action Camera": "3377618313"}',
    "Artikel-Nr.: 0151 12345678",
)


@pytest.mark.parametrize(("text", "found"), PERSONAL)
def test_personal_data_is_found_as_people_write_it(text: str, found: list[str]) -> None:
    assert [text[one.start : one.end] for one in personal_data_in(text, regions=REGIONS)] == found


@pytest.mark.parametrize("text", NOTHING)
def test_other_numbers_and_signs_are_left(text: str) -> None:
    assert personal_data_in(text, regions=REGIONS) == []


def test_precision_and_recall_over_500_texts_with_many_other_numbers() -> None:
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for one in texts(500, seed=26):
        spans = personal_data_in(one.text, regions=REGIONS)
        found = Counter((span.kind, one.text[span.start : span.end]) for span in spans)
        held = Counter(one.holds)
        for counts, which in ((right, found & held), (wrong, found - held), (missed, held - found)):
            counts.update(kind for kind, _ in which.elements())
    assert {kind: count > 150 for kind, count in right.items()} == dict.fromkeys(
        ("email", "phone", "card", "iban"), True
    )
    precision = right.total() / (right.total() + wrong.total())
    recall = right.total() / (right.total() + missed.total())
    assert precision >= 0.99, wrong
    assert recall >= 0.98, missed


def test_digits_alone_are_a_phone_number_where_one_was_asked_for() -> None:
    def found(text: str, before: str) -> int:
        return len(personal_data_in(text, before=before, regions=REGIONS))

    assert found("4155552671", "What is your phone number?") == 1
    assert found("4155552671", "What is your order number?") == 0
    assert found("4155552671", "Is it a phone? Then tell me the order number.") == 0
    assert found("4155552671", "") == 0


def test_without_a_region_only_international_numbers_are_read() -> None:
    assert [one.value for one in personal_data_in("+44 20 7946 0018, 020 7946 0018")] == ["+442079460018"]


@pytest.mark.parametrize("piece", ["1", "1 ", "a.b@", "+1 ", "DE89 ", "order 1-"])
@pytest.mark.timeout(20)
def test_hostile_texts_are_read_in_linear_time(piece: str) -> None:
    assert personal_data_in(piece * (100_000 // len(piece)), regions=REGIONS) == []


def say(*contents: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": content} for content in contents]


def test_a_placeholder_is_the_same_for_the_same_data_in_a_chat() -> None:
    messages = say(
        "ann@example.com or bob@example.com", "Mail ANN@example.com, call +44 20 7946 0018", "020 7946 0018"
    )
    chat = Redactor(KEY, regions=REGIONS).chat(messages)
    assert [message["content"] for message in chat.messages] == [
        "[email 1] or [email 2]",
        "Mail [email 1], call [phone 1]",
        "[phone 1]",
    ]
    assert chat.counts == {"email": 3, "phone": 2}
    assert [(one.placeholder, one.count) for one in chat.redactions] == [
        ("[email 1]", 2),
        ("[email 2]", 1),
        ("[phone 1]", 2),
    ]


def test_originals_are_in_nothing_that_is_stored() -> None:
    for one in texts(60, seed=3):
        chat = Redactor(KEY, regions=REGIONS).chat(say(one.text), {"note": {"lines": [one.text, 7]}})
        stored = repr((chat.messages, chat.metadata, chat.redactions))
        spans = personal_data_in(one.text, regions=REGIONS)
        assert [span for span in spans if one.text[span.start : span.end] in stored] == []
        assert personal_data_in(chat.messages[0]["content"], regions=REGIONS) == []
        assert chat.metadata["note"]["lines"][1] == 7


def test_hashes_tell_the_same_data_apart_only_with_the_key() -> None:
    def digests(key: bytes, *contents: str) -> list[str]:
        return [one.digest for one in Redactor(key).chat(say(*contents)).redactions]

    assert digests(KEY, "ann@example.com") == digests(KEY, "x bob@example.com", "Ann@Example.com")[1:]
    assert digests(KEY, "ann@example.com") != digests(KEY + b"2", "ann@example.com")
    with pytest.raises(ValueError, match="at least 16 bytes"):
        Redactor(b"short")


def test_the_hash_is_hmac_sha256() -> None:
    # RFC 4231 gives the function; the value is from `openssl dgst -sha256 -hmac`.
    (one,) = Redactor(KEY).chat(say("ann@example.com")).redactions
    assert one.digest == "84536f23f777c1fb96c98783df2a6d61f868b7a67b2007504ddcc2aa16431d68"


def test_a_chat_that_grew_keeps_its_placeholders() -> None:
    redactor = Redactor(KEY)
    first = redactor.chat(say("ann@example.com", "bob@example.com"), {"by": "zoe@example.com"})
    grown = redactor.chat(say("ann@example.com", "bob@example.com", "eve@example.com"))
    assert grown.messages[:2] == first.messages
    assert grown.messages[2]["content"] == "[email 3]"


def test_redacting_twice_changes_nothing_and_gives_no_number_twice() -> None:
    redactor = Redactor(KEY)
    once = redactor.chat(say("ann@example.com"))
    assert redactor.chat(once.messages).messages == once.messages
    mixed = redactor.chat([*once.messages, *say("bob@example.com")])
    assert [message["content"] for message in mixed.messages] == ["[email 1]", "[email 2]"]


def test_other_fields_of_a_message_are_kept() -> None:
    message = {"n": 1, "role": "user", "content": "ann@example.com", "created_at": "2026-01-01T00:00:00Z"}
    assert Redactor(KEY).chat([message]).messages == [{**message, "content": "[email 1]"}]


def test_evidence_moves_with_the_text() -> None:
    text = "Write to ann@example.com or bob@example.com today"
    chat = Redactor(KEY).chat(say(text))
    new = chat.messages[0]["content"]

    def moved(quote: str) -> str:
        start = text.index(quote)
        start, end = chat.span(0, start, start + len(quote))
        (row,) = evidence_of(turns=[], parts=[{"message": 1, "start": start, "end": end}], contents={1: new})
        return str(row["quote"])

    assert moved("Write") == "Write"
    assert moved("today") == "today"
    assert moved("ann@example.com") == "[email 1]"
    assert moved("example.com or bob") == "[email 1] or [email 2]"
    assert moved("to ann") == "to [email 1]"
    assert moved(".com today") == "[email 2] today"
    assert chat.span(0, 0, len(text)) == (0, len(new))
    for start in range(len(text)):
        for end in range(start + 1, len(text) + 1):
            left, right = chat.span(0, start, end)
            assert 0 <= left < right <= len(new)


def test_ids_with_personal_data_are_hashed_the_same_in_every_chat() -> None:
    redactor = Redactor(KEY)
    assert redactor.identifier("chat-7") == "chat-7"
    assert redactor.identifier("ann@example.com/7") == redactor.identifier("ANN@example.com/7")
    assert "ann" not in redactor.identifier("ann@example.com/7")
