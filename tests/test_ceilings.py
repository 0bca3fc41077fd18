"""How much there is to own: figures of `benchmarks/house.py`, and ceilings of `layers.toml`."""

from benchmarks import house

FOUND = {"code lines of skdp": 100, "files of skdp": 10}


def test_nothing_is_above_its_ceiling_and_ceilings_fall():
    assert not house.faults(house.sizes(), house.ceilings())


def test_what_is_above_or_far_below_its_ceiling_is_a_fault():
    for most, said in (
        (99, "100 is above the ceiling of 99"),
        (104, "over 2% below the ceiling of 104"),
    ):
        (fault,) = house.faults(FOUND, {**FOUND, "code lines of skdp": most})
        assert said in fault
    for most, said in (
        ({"code lines of skdp": 102}, "files of skdp has no ceiling"),
        ({**FOUND, "pages": 3}, "pages has a ceiling in layers.toml, and nothing measures it"),
    ):
        (fault,) = house.faults(FOUND, most)
        assert said in fault
