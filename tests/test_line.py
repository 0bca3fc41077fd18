import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
from exact_laws import ScriptedSource, fit, law_of_permute_and_flip
from loops import over

from skdp._random import noise_source
from skdp._validation import as_epsilon, dyadic_floor
from skdp.mechanisms import select_on_line, selection

# Pieces of several lengths, the best of them short, long, and split in two.
LINES = [
    ([0, 1, 6], [-3, 0, -1], 8, 1.0, 2),
    ([0, 5, 6], [0, -4, 2], 7, 0.5, 1),
    ([0], [7], 5, 1.0, 1),
    ([0, 2, 3, 5], [-40, 0, -10, 0], 9, 0.1, 3),
]


def law(starts, scores, size, epsilon, score_range):
    """Of permute-and-flip on all integers of the line."""
    ratio = math.exp(-float(dyadic_floor(as_epsilon(epsilon))) / score_range)
    every = np.repeat(scores, np.diff(starts, append=size))
    return law_of_permute_and_flip(every.tolist(), ratio)


def frequencies(line, size, seed):
    source = noise_source(seed)
    drawn = [select_on_line(*line, random_state=source) for _ in range(size)]
    return dict(zip(*map(np.ndarray.tolist, np.unique(drawn, return_counts=True)), strict=True))


@over("line", LINES)
def test_the_law_is_that_of_permute_and_flip_on_all_integers(line):
    assert fit(frequencies(line, 6000, seed=3), law(*line)) > 1e-6


def test_a_wrong_scale_is_rejected():
    starts, scores, size, epsilon, score_range = [0, 1, 4, 6], [50, 0, 90, 20], 8, 0.1, 3
    seen = frequencies((starts, scores, size, epsilon, score_range), 8000, seed=2)
    assert fit(seen, law(starts, scores, size, epsilon, score_range)) > 1e-6
    for scale in (0.8, 1.25):
        assert fit(seen, law(starts, scores, size, epsilon * scale, score_range)) < 1e-6


@over("word", [0, 1, 2**20, 2**63, 2**64 - 1])
def test_equal_words_are_told_apart_by_later_ones(word):
    for winner, later in enumerate(((5, 7), (7, 5))):
        source = ScriptedSource([word, word, *later, 0])
        assert select_on_line([0, 4], [0, 0], 8, 1.0, 1, random_state=source) // 4 == winner
        assert source.taken == 5


def test_floating_point_times_are_within_the_margin_of_exact_ones():
    widths = np.array([1, 2, 7, 10**6, 2**40, 2**61])
    for word in (1, 2, 3, 2**11, 2**40, 2**63 - 1, 2**63, 2**64 - 2**30, 2**64 - 2):
        for extra in (0, 1):
            got = selection._log_first(np.full(len(widths), word, dtype=np.uint64), extra, widths)
            for width, log_time in zip(widths.tolist(), got.tolist(), strict=True):
                low, high = selection._log_time(word + extra, 64, width, Fraction(0))
                exact = low if extra == 0 else selection._log_time(word, 64, width, Fraction(0))[1]
                assert abs(Decimal(log_time) - exact) < Decimal("1e-13") * (1 + abs(exact))
                assert low < high


def test_a_long_line_of_one_piece_is_uniform_and_a_narrow_peak_is_found():
    source = noise_source(5)
    drawn = [select_on_line([0], [0], 2**62, 1.0, 1, random_state=source) for _ in range(400)]
    assert 0.4 < np.mean(drawn) / 2**62 < 0.6 and len(set(drawn)) == 400
    peak = [0, 2**61, 2**61 + 1], [-(2**60), 0, -(2**60)]
    for epsilon in (1e-6, 1.0, 1e6):
        assert select_on_line(*peak, 2**62, epsilon, 1, random_state=source) == 2**61


def test_pieces_far_behind_draw_no_words_unless_one_might_win():
    starts, scores = np.arange(1000), np.full(1000, -(10**6))
    scores[[3, 700]] = 0
    source = ScriptedSource([2**62, 2**61, 2**63, 12345])
    assert select_on_line(starts, scores, 1000, 1.0, 1, random_state=source) == 700
    # Two that race, one for all others, and one for the place inside.
    assert source.taken == 4


def test_the_law_of_zero_words_by_counting_all_words_of_two_bits():
    # Words of two bits, as if q were 1/4: with n words at most, all outcomes can be listed.
    def law_of(n):
        found = {}
        for first in range(4):
            rest = n - 1 if first < n else 0
            for words in itertools.product(range(4), repeat=rest):
                zeros = tuple(selection._zero_words(n, ScriptedSource([first, *words])))
                found[zeros] = found.get(zeros, 0) + Fraction(1, 4 ** (rest + 1))
        return found

    for n in (1, 2, 3):
        every = {}
        for words in itertools.product(range(4), repeat=n):
            zeros = tuple(place for place, word in enumerate(words) if word == 0)
            every[zeros] = every.get(zeros, 0) + Fraction(1, 4**n)
        assert law_of(n) == every
