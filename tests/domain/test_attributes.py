import enum
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from loops import over

from skdp.domain import Categorical, Domain, Taxonomy
from skdp.exceptions import DomainError
from skdp.tables import as_column, object_array

ALIKE = [
    *(["1", "1.0"], ["1.1", "1.10"], [1, "1"], ["x", 0.5, "a", "5e-1"], [2**53, 2**53 + 1]),
    *(["12e45678", "9e456781"], ["True", "true"], [True, "true"], [False, "0"]),
]


def codes_of(attribute, values):
    return as_column(object_array(values), "a").codes(attribute.coding()).tolist()


def test_categories_are_equal_by_value():
    attribute = Categorical([1, 2.5, "x"])
    values = [1, 1.0, np.int64(1), np.float32(2.5), "x", True, Decimal("2.5"), "2.5", b"1"]
    assert codes_of(attribute, values) == [0, 0, 0, 1, 2, 0, 1, 1, -1]
    assert attribute.index_of(np.int8(1)) == 0
    for value in ("2", [1], None, math.nan):
        with pytest.raises(KeyError):
            attribute.index_of(value)


def test_unknown_and_missing():
    values = ["a", "z", None, math.nan, pd.NaT, pd.NA, ["a"], {"a": 1}, object()]
    for unknown, other in ((-1, None), (1, "b")):
        for missing, nullable in ((-1, False), (2, True)):
            attribute = Categorical(["a", "b"], other=other, nullable=nullable)
            assert codes_of(attribute, values) == [0, unknown] + [missing] * 4 + [unknown] * 3
    plain = Categorical(np.array(["a", "b"]), other=np.str_("b"))
    assert [type(value) for value in (*plain.categories, plain.other)] == [str] * 3


@over(
    "categories, message",
    [
        ([], "at least one category"),
        (["a", "b", "a"], "^Category 'a' is listed more than once: list it once"),
        ([True, 1], "True and 1 mean one"),
        (["a", None], "Category None has type NoneType.*nullable=True"),
        (["a", math.nan], "nan has type float.*finite.*nullable=True"),
        ([b"a"], "has type bytes"),
        (["\ud800"], "not valid Unicode"),
        (pd.CategoricalDtype(["a"]), "categories must be a list of values, got .*Categor"),
        # What readers of files take for one number.
        (["01", "1"], "'01'.*'1'.*mean one text, number, date or gap.*write them with a letter"),
        *((pair, "mean one text, number, date or gap") for pair in ALIKE),
    ],
)
def test_refused_categories(categories, message):
    with pytest.raises(DomainError, match=message):
        Categorical(categories)


def test_refused_other_and_taxonomy():
    for options, message in (
        ({"other": "c"}, "other='c' is not one of the categories"),
        ({"taxonomy": {"a": "b"}}, "categories, but 'a' are in one"),
        ({"taxonomy": Taxonomy.from_tree(["a", "c"])}, "'b', 'c' are in one of the two only"),
    ):
        with pytest.raises(DomainError, match=message):
            Categorical(["a", "b"], **options)


class Sex(str, enum.Enum):  # noqa: UP042
    FEMALE = "F"
    MALE = "M"


class Grade(enum.Enum):
    LOW = 1
    HIGH = 2
    TOP = 2


def test_members_of_an_enum_are_read_as_their_values():
    assert Categorical(Sex) == Categorical(["F", "M"]) == Categorical(list(Sex))
    domain = Domain({"sex": Categorical(Sex), "grade": Categorical(Grade)})
    sexes = pd.Series([Sex.MALE, "F", "x", None], dtype=object)
    grades = pd.Series([Grade.TOP, 1, Grade.LOW, Grade.LOW], dtype=object)
    codes = domain.encode(pd.DataFrame({"sex": sexes, "grade": grades}))
    assert codes.tolist() == [[1, 1], [0, 0], [-1, 0], [-1, 0]]
