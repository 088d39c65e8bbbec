"""Texts of customers with personal data and with numbers that are none, and where each of them stands."""

import random
from dataclasses import dataclass

DIGITS = "0123456789"
# {} is the personal data, or the number that is none.
SENTENCES = {
    "email": (
        "My address is {}.",
        "Please write to {} or to the office.",
        "Account: {}",
        "I signed up with {}, did that work?",
        "von: <{}>",
        "mail={};",
    ),
    "phone": (
        "You can call me on {} after six.",
        "My mobile is {}.",
        "Phone: {}",
        "Tel. {}, please ring twice.",
        "If the driver gets lost: reach me at {}!",
        "Rufen Sie mich unter der Handynummer {} an.",
    ),
    "grouped phone": (
        "For the delivery please use {}.",
        "It is {}, ask for Ms Lee",
        "{} (evenings)",
        "Anna, {}",
    ),
    "card": (
        "I paid with card {}.",
        "Visa {} exp 11/28",
        "the number on it is {} and it was declined",
        "Karte: {}",
    ),
    "iban": (
        "Please refund to {}.",
        "IBAN: {}",
        "my account is {} at the savings bank",
        "Überweisen Sie bitte auf {}, danke",
    ),
    "other": (
        "It is about order {}.",
        "Order number: {}",
        "my order no. {} has not come",
        "Meine Bestellnummer ist {}.",
        "Tracking {} says nothing since Monday.",
        "The parcel {} was returned",
        "Invoice {} is wrong.",
        "ticket #{}",
        "Customer number {}, since 2019",
        "(ref {})",
        "Two orders, {} and another one",
    ),
    "bare": ("{}", "{} please", "see {}", "It says {} on the box.", "we bought {} last week"),
    "said": ("I got {} back.", "That was on {}.", "Yes, {}.", "Is {} right?", "The page shows {} here"),
}


@dataclass(frozen=True, slots=True)
class Text:
    """A text and the personal data in it, (kind, as written)."""

    text: str
    holds: tuple[tuple[str, str], ...]


def texts(count: int, *, seed: int) -> list[Text]:
    """Texts of a few sentences each, half of the sentences without personal data."""
    dice = random.Random(seed)
    return [_text(dice) for _ in range(count)]


def _text(dice: random.Random) -> Text:
    sentences, holds = [], []
    for _ in range(dice.randint(1, 4)):
        kind, written = dice.choice(PERSONAL)(dice)
        sentences.append(dice.choice(SENTENCES[kind]).format(written))
        holds.append((kind.removeprefix("grouped "), written))
        kind, written = dice.choice(OTHER)(dice)
        sentences.append(dice.choice(SENTENCES[kind]).format(written))
    order = dice.sample(range(len(sentences)), len(sentences))
    return Text(dice.choice(["\n", " "]).join(sentences[n] for n in order), tuple(holds))


def _digits(dice: random.Random, count: int) -> str:
    return dice.choice("123456789") + "".join(dice.choices(DIGITS, k=count - 1))


def _email(dice: random.Random) -> tuple[str, str]:
    name = dice.choice(["anna", "J.Smith", "lee_93", "k.müller", "info+shop", "o'neil", "x"])
    domain = dice.choice(
        ["example.com", "mail.example.co.uk", "post-haus.de", "uni.example.edu", "ex4mple.io"]
    )
    return "email", f"{name}{dice.choice(['', '7', '1988'])}@{domain}"


def _phone(dice: random.Random) -> tuple[str, str]:
    area = dice.choice(["212", "415", "312", "206", "617"])
    us = f"{area} {dice.randint(220, 989)} {_digits(dice, 4)}"
    mobile = f"07{dice.choice(['400', '712', '801', '912'])} {_digits(dice, 6)}"
    london, berlin = f"020 79{dice.randint(10, 99)} {_digits(dice, 4)}", f"030 {_digits(dice, 6)}"
    german = dice.choice([f"0151 {_digits(dice, 8)}", f"0160 {_digits(dice, 7)}", f"0171 {_digits(dice, 7)}"])
    national = dice.choice([us, mobile, london, berlin, german])
    country = "+1 " if national is us else "+44 " if national in (mobile, london) else "+49 "
    form = dice.randrange(4)
    if form == 0:
        return dice.choice(["phone", "grouped phone"]), country + national.removeprefix("0")
    if form == 1:
        return "phone", (country + national.removeprefix("0")).replace(" ", "")
    if form == 2:
        return "phone", national.replace(" ", "")
    return dice.choice(["phone", "grouped phone"]), national.replace(" ", dice.choice([" ", "-"]))


def _card(dice: random.Random) -> tuple[str, str]:
    start, length = dice.choice([("4", 16), ("51", 16), ("2221", 16), ("37", 15), ("6011", 16), ("3530", 16)])
    body = start + "".join(dice.choices(DIGITS, k=length - len(start) - 1))
    number = body + str(-luhn_sum(body + "0") % 10)
    cuts = (4, 8, 12) if length == 16 else (4, 10)
    mark = dice.choice(["", " ", "-"])
    return "card", mark.join(number[a:b] for a, b in zip((0, *cuts), (*cuts, length), strict=True))


def luhn_sum(number: str) -> int:
    """ISO/IEC 7812-1, annex B: every second digit from the right counts twice, its own digits added."""
    doubled = [int(digit) * (1 + n % 2) for n, digit in enumerate(reversed(number))]
    return sum(value // 10 + value % 10 for value in doubled)


def _iban(dice: random.Random) -> tuple[str, str]:
    country, body = dice.choice(
        [
            ("DE", "37040044" + _digits(dice, 10)),
            ("GB", "NWBK" + _digits(dice, 14)),
            ("NL", "ABNA" + _digits(dice, 10)),
            ("AT", _digits(dice, 16)),
            ("PL", _digits(dice, 24)),
        ]
    )
    # ISO 13616: letters count from 10, and the whole is 1 modulo 97.
    figures = "".join(str(int(sign, 36)) for sign in f"{body}{country}00")
    number = f"{country}{98 - int(figures) % 97:02d}{body}"
    if dice.random() < 0.5:
        return "iban", number
    return "iban", " ".join(number[n : n + 4] for n in range(0, len(number), 4))


def _order(dice: random.Random) -> tuple[str, str]:
    plain = _digits(dice, dice.choice([6, 8, 10, 12, 16]))
    parts = f"{_digits(dice, 3)}-{_digits(dice, 7)}-{_digits(dice, 7)}"
    return "other", dice.choice(
        [plain, parts, f"SO-{dice.randint(2019, 2026)}-{_digits(dice, 7)}", f"A{plain}"]
    )


def _tracking(dice: random.Random) -> tuple[str, str]:
    usps = (
        f"9400 1{_digits(dice, 3)} " + " ".join(_digits(dice, 4) for _ in range(3)) + f" {_digits(dice, 2)}"
    )
    codes = [f"1Z{_digits(dice, 3)}AA{_digits(dice, 11)}", f"00340434{_digits(dice, 12)}", usps]
    codes += [f"RR{_digits(dice, 9)}GB", f"JJD{_digits(dice, 18)}", _digits(dice, 12), _digits(dice, 14)]
    return dice.choice(["other", "bare"]), dice.choice(codes)


def _price(dice: random.Random) -> tuple[str, str]:
    amount = f"{dice.randint(1, 9)},{_digits(dice, 3)}.{_digits(dice, 2)}"
    return "said", dice.choice(
        [f"${amount}", f"{_digits(dice, 4)}.00 EUR", f"€ 1 {_digits(dice, 3)} {_digits(dice, 3)}"]
    )


def _date(dice: random.Random) -> tuple[str, str]:
    day, month, year = dice.randint(10, 28), dice.randint(10, 12), dice.randint(2020, 2026)
    clock = f"{dice.randint(10, 23)}:{dice.randint(10, 59)}"
    forms = [
        f"{year}-{month}-{day} {clock}",
        f"{day}.{month}.{year} {clock}",
        f"{month}/{day}/{year} at {clock}",
    ]
    return "said", dice.choice(
        [*forms, f"{day}-{month}-{year}", f"{year}{month}{day}", f"{day}.{month}. - {day + 1}.{month}.{year}"]
    )


def _code(dice: random.Random) -> tuple[str, str]:
    codes = [_digits(dice, 13), f"978-3-{_digits(dice, 2)}-{_digits(dice, 6)}-{_digits(dice, 1)}"]
    codes += [
        f"35{_digits(dice, 13)}",
        f"192.168.{_digits(dice, 3)}.{_digits(dice, 2)}",
        f"v10.{_digits(dice, 2)}.{_digits(dice, 4)}",
    ]
    codes += [
        f"{_digits(dice, 2)}.{_digits(dice, 6)}, {_digits(dice, 2)}.{_digits(dice, 6)}",
        f"17{_digits(dice, 8)}",
    ]
    codes += [
        f"SKU-{_digits(dice, 4)}-{_digits(dice, 5)}",
        f"{_digits(dice, 5)}-{_digits(dice, 4)}",
        "@shop_help",
        "logo@2x.png",
    ]
    codes += [
        f"{_digits(dice, 2)} x {_digits(dice, 3)} x {_digits(dice, 3)} cm",
        f"#{_digits(dice, 10)}",
        f"{_digits(dice, 10)}",
    ]
    return "bare", dice.choice(codes)


PERSONAL = (_email, _phone, _phone, _card, _iban)
OTHER = (_order, _order, _tracking, _price, _date, _code)
