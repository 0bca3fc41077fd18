from skdp.domain import Categorical, Numeric, Taxonomy

WORLD = {"World": {"Europe": ["DE", "FR"], "Asia": {"East": ["JP", "KR"], "South": ["IN"]}}}


def test_taxonomy_from_tree():
    tree = Taxonomy.from_tree(WORLD)
    assert tree.labels[:3] == ("World", "Europe", "Asia")
    assert tree.leaves == ("DE", "FR", "JP", "KR", "IN")
    assert tree.height == 3
    assert [tree.groups(level).tolist() for level in range(4)] == [
        [0, 0, 0, 0, 0],
        [0, 0, 1, 1, 1],
        [0, 1, 2, 2, 3],
        [0, 1, 2, 3, 4],
    ]
    assert [tree.labels[node] for node in tree.cut(2)] == ["DE", "FR", "East", "South"]


def test_taxonomy_shorthands():
    assert Taxonomy.from_tree(["a", "b"]).labels == ("Any", "a", "b")
    assert Taxonomy.from_tree({"x": "a", "y": ["b"]}).labels == ("Any", "x", "y", "a", "b")
    assert Taxonomy.from_tree({"all": ["a", {"rest": ["b", "c"]}]}).leaves == ("a", "b", "c")
    assert Taxonomy.from_tree({"all": {"a": None, "b": None}}).leaves == ("a", "b")
    # A group may be called like its only leaf.
    assert Taxonomy.from_tree({"all": {"other": ["other"], "x": ["a"]}}).leaves == ("other", "a")


def test_levels_of_attributes():
    tree = Taxonomy.from_tree(WORLD)
    country = Categorical(["IN", "FR", "KR", "DE", "JP"], taxonomy=tree, nullable=True)
    for attribute, groups in (
        (country, [[0] * 6, [1, 0, 1, 0, 1, 2], [3, 1, 2, 0, 2, 4], [4, 1, 3, 0, 2, 5]]),
        (Numeric(0, 3, integer=True), [[0] * 4, [0, 0, 1, 1], [0, 1, 2, 3]]),
        (Categorical(["a", "b", "c"], ordered=True), [[0] * 3, [0, 0, 1], [0, 1, 2]]),
        (Numeric(1, 1, integer=True, nullable=True), [[0, 0], [0, 1]]),
    ):
        assert [level.groups.tolist() for level in attribute.levels()] == groups
    assert country.levels()[1].labels == ["Europe", "Asia", "missing"]
    assert Numeric(0, 3, integer=True).levels()[1].labels == ["0 to 1", "2 to 3"]
