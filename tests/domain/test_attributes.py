import enum
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from skdp.domain import Categorical, Domain
from skdp.tables import as_column, object_array


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
