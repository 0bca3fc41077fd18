"""Domains that everybody knows: ages, months, countries and others, ready to be declared.

Each function takes ``nullable=True`` where a value may be missing. Skeletons of domains, and the
error of `Domain.from_schema` that asks for ranges, offer them by name and type of a column.

Examples
--------
>>> from skdp import Domain, domains
>>> Domain({"age": domains.age(), "paid": domains.yes_no(nullable=True)})
Domain({'age': Numeric(0, 120, integer=True), 'paid': Categorical(['no', 'yes'], nullable=True)})
"""

from __future__ import annotations

import re

from .categorical import Categorical
from .numeric import Numeric

__all__ = [
    "age",
    "countries",
    "currencies",
    "hours",
    "icd_chapters",
    "months",
    "percent",
    "us_states",
    "weekdays",
    "yes_no",
]

_STATES = """AL AK AZ AR CA CO CT DE DC FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV
NH NJ NM NY NC ND OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY"""
_COUNTRIES = """AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN
BO BQ BR BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO
DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY
HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB
LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA
NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA
SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT
TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW"""
_CURRENCIES = """AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD
BTN BWP BYN BZD CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP
GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW
KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD
NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP
SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES VND
VUV WST XAF XCD XOF XPF YER ZAR ZMW"""
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
_CHAPTERS = "I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX XXI XXII"


def age(*, nullable: bool = False) -> Numeric:
    """Ages in whole years, 0 to 120."""
    return Numeric(0, 120, integer=True, nullable=nullable)


def hours(*, nullable: bool = False) -> Numeric:
    """Hours of the day, 0 to 23."""
    return Numeric(0, 23, integer=True, nullable=nullable)


def percent(*, nullable: bool = False) -> Numeric:
    """Percentages, 0 to 100, with one decimal."""
    return Numeric(0, 100, decimals=1, nullable=nullable)


def months(*, nullable: bool = False) -> Numeric:
    """Months, 1 to 12."""
    return Numeric(1, 12, integer=True, nullable=nullable)


def weekdays(*, nullable: bool = False) -> Categorical:
    """Monday to Sunday."""
    return Categorical(_DAYS.split(), ordered=True, nullable=nullable)


def yes_no(*, nullable: bool = False) -> Categorical:
    """The words no and yes."""
    return Categorical(["no", "yes"], nullable=nullable)


def us_states(*, nullable: bool = False) -> Categorical:
    """Postal codes of the states of the USA, with DC."""
    return Categorical(_STATES.split(), nullable=nullable)


def countries(*, nullable: bool = False) -> Categorical:
    """Codes of ISO 3166-1 with two letters."""
    # Namibia's "NA" is how files write a gap. Declared, it names the gap; else it is in its cell.
    codes = _COUNTRIES.split()
    return Categorical([c for c in codes if not (nullable and c == "NA")], nullable=nullable)


def currencies(*, nullable: bool = False) -> Categorical:
    """Codes of ISO 4217 of the currencies in use."""
    return Categorical(_CURRENCIES.split(), nullable=nullable)


def icd_chapters(*, nullable: bool = False) -> Categorical:
    """Chapters of ICD-10, I to XXII."""
    return Categorical(_CHAPTERS.split(), nullable=nullable)


# Names of columns, without signs, and the kinds of types that they may have.
_NUMBERS, _TEXTS = ("integer", "number", "object"), ("category", "object", "text")
_KNOWN = {
    "age": (r"age|ageyears|ageinyears|patientage", _NUMBERS),
    "hours": (r"hour|hourofday", _NUMBERS),
    "percent": (r"percent|percentage|pct", ("number", "object")),
    "months": (r"month|birthmonth", _NUMBERS),
    "weekdays": (r"weekday|dayofweek", _TEXTS),
    "us_states": (r"usstate|stateabbr|statecode|addrstate", _TEXTS),
    "countries": (r"country|countrycode|nationality", _TEXTS),
    "currencies": (r"currency|currencycode", _TEXTS),
    "icd_chapters": (r"icdchapter", _TEXTS),
}


def known_name(column: str, kind: str) -> str | None:
    """The function here for a column of this name and kind; None if there is none."""
    plain = re.sub(r"[^a-z]", "", column.casefold())
    for name, (names, kinds) in _KNOWN.items():
        if kind in kinds and re.fullmatch(names, plain):
            return name
    return None
