import copy
import os
import pickle
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from children import in_children, needs_fork
from exact_laws import ScriptedSource
from joblib import Parallel, delayed
from loops import over
from scipy import stats

from skdp import _random
from skdp._random import NoiseSource, noise_source, sampling_generator
from skdp.exceptions import InsecureSeedWarning
from skdp.mechanisms import discrete_laplace


@pytest.fixture(autouse=True)
def repeated_entropy():
    """Nothing: these tests are of the operating system's own entropy."""


def uniform(counts):
    """p-value of equal frequencies."""
    return stats.chisquare(counts).pvalue


@over("seed", [None, 3])
def test_results_have_their_shape_and_belong_to_the_caller(seed):
    source = noise_source(seed)
    for size in (0, 1, 1023, 5000, (2, 3), (0, 4), ()):
        shape = size if isinstance(size, tuple) else (size,)
        drawn = source.words(size), source.half_words(size), source.below(7, size=size)
        assert [each.shape for each in drawn] == [shape] * 3
        assert [each.dtype for each in drawn] == [np.uint64, np.uint16, np.int64]
        # Working in place must not reach later words.
        for each in drawn:
            each[...] = 0
    assert source.words(10).any() and source.seeded is (seed is not None)


@over("seed", [None, 3])
def test_bits_are_fair(seed):
    # 2 x 64 and 16 bit positions: 144 counts of 40,000 coins; each strays by 7 standard
    # deviations with probability 3e-12. False alarm below 1e-9.
    source = noise_source(seed)
    small = np.concatenate([source.words(100) for _ in range(400)])
    for words in (small, source.words(40_000)):
        ones = [int((words >> np.uint64(bit) & np.uint64(1)).sum()) for bit in range(64)]
        assert np.abs(np.array(ones) - 20_000).max() < 7 * 100
    halves = source.half_words(40_000)
    ones = [int((halves >> bit & 1).sum()) for bit in range(16)]
    assert np.abs(np.array(ones) - 20_000).max() < 7 * 100


def test_no_word_is_handed_out_twice():
    # 200,000 words; two equal ones by chance have probability 1e-9.
    source = NoiseSource()
    sizes = [1, 7, 100, 1023, 1024, 1025, 3000]
    drawn = np.concatenate([source.words(sizes[k % len(sizes)]) for k in range(220)])
    assert np.unique(drawn).size == drawn.size


def test_below_refuses_exactly_the_biased_words():
    # 2**64 = 1 mod 3: the word 0 alone is refused.
    source = ScriptedSource([0, 1, 0, 0, 5])
    assert source.below(3, size=1).tolist() == [1]
    assert source.taken == 2
    assert source.below(3) == 2
    assert source.taken == 5
    bound = 2**63 - 1  # 2**64 = 2 mod bound: 0 and 1 are refused
    source = ScriptedSource([1, 0, 2, 0, 1, bound])
    assert source.below(np.array([bound, bound])).tolist() == [2, 0]
    assert source.taken == 6 and not source.script


def test_below_is_uniform_and_in_range():
    source = noise_source(11)
    # False alarm 1e-6 each. Bounds up to 2**62 in turn, so that refusals happen too.
    assert uniform(np.bincount(source.below(6, size=60_000), minlength=6)) > 1e-6
    bounds = np.tile([1, 2, 5, 3 * 2**60], 20_000)
    drawn = source.below(bounds)
    assert (drawn >= 0).all() and (drawn < bounds).all()
    assert (drawn[::4] == 0).all()
    assert uniform(np.bincount(drawn[2::4])) > 1e-6
    assert uniform(np.bincount(drawn[3::4] // 2**60, minlength=3)) > 1e-6
    # The remainder without refusal would put 6/16, 5/16 and 5/16 there.
    biased = source.words(20_000) % np.uint64(3 * 2**60) // np.uint64(2**60)
    assert uniform(np.bincount(biased.astype(int), minlength=3)) < 1e-6


def test_below_edges():
    source = noise_source(None)
    assert source.below(1) == 0 and 0 <= source.below(2**63) < 2**63
    assert source.below(np.array([], dtype=int)).shape == (0,)
    assert source.below(np.array([[3], [4]]), size=(2, 5)).shape == (2, 5)
    for bound in (0, -1, 2**63 + 1, np.array([3, 0]), np.array([1.5])):
        with pytest.raises(ValueError, match=r"between 1 and|integers of at least 1"):
            source.below(bound)


@needs_fork
def test_forked_processes_draw_different_noise():
    source = noise_source(None)
    source.words(3)  # the buffer is filled and half used

    def draw():
        noise = discrete_laplace(np.zeros(50, int), 0.01)
        return source.words(8).tolist(), tuple(noise.tolist())

    results = [*in_children(draw, 3), draw()]
    words = [word for drawn, _ in results for word in drawn]
    assert len(set(words)) == len(words) == 32
    assert len({noise for _, noise in results}) == 4


@needs_fork
def test_fork_drops_the_buffer_even_if_the_process_id_returns(monkeypatch):
    # In the module alone: threads of other tests may be waiting for processes of their own, and
    # multiprocessing asks os.getpid whose they are.
    monkeypatch.setattr(_random, "os", SimpleNamespace(**{**vars(os), "getpid": lambda: 1}))
    source = NoiseSource()
    source.words(1)
    expected = source._local.buffer[1:9].tolist()
    [drawn] = in_children(lambda: source.words(8).tolist())
    assert source.words(8).tolist() == expected
    assert not set(drawn) & set(expected)


@over("seed", [None, 5])
def test_threads_do_not_share_words(seed):
    source = noise_source(seed)
    start = threading.Barrier(4)

    def draw(_):
        start.wait(timeout=600)
        return np.concatenate([source.words(k % 40) for k in range(1000)])

    drawn = np.concatenate(
        Parallel(n_jobs=4, backend="threading")(delayed(draw)(k) for k in range(4))
    )
    assert drawn.size == 4 * sum(k % 40 for k in range(1000))
    assert np.unique(drawn).size == drawn.size


def test_seed_repeats_and_warns_of_the_consequence():
    with pytest.warns(InsecureSeedWarning, match="can remove the noise.*no privacy") as caught:
        first = noise_source(42)
    assert caught[0].filename == __file__
    with pytest.warns(InsecureSeedWarning) as caught:
        noise = discrete_laplace([1, 2, 3], 1.0, random_state=np.int64(42))
    assert caught[0].filename == __file__
    assert first.words(2000).tolist() == noise_source(42).words(2000).tolist()
    assert noise.tolist() == discrete_laplace([1, 2, 3], 1.0, random_state=42).tolist()
    assert first.words(5).tolist() != noise_source(43).words(5).tolist()


def test_other_random_states_are_refused():
    for generator in (np.random.default_rng(0), np.random.RandomState(0), np.random.PCG64(0)):
        with pytest.raises(TypeError, match=f"{type(generator).__name__}.*random_state=None"):
            noise_source(generator)
    for make in (noise_source, sampling_generator):
        for wrong in ("1", 1.0, True):
            with pytest.raises(TypeError, match="random_state must be None"):
                make(wrong)
        with pytest.raises(ValueError, match="negative"):
            make(-1)


def test_nothing_tells_the_seed_and_copies_share_the_stream():
    seeded, source = noise_source(918273645), noise_source(None)
    assert "918273645" not in repr(seeded) and "no guarantee" in repr(seeded)
    assert noise_source(source) is source and not source.seeded
    for each in (seeded, source):
        assert copy.copy(each) is copy.deepcopy(each) is each
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps({"source": seeded})
    restored = pickle.loads(pickle.dumps(source))
    assert not restored.seeded and restored.words(4).tolist() != source.words(4).tolist()


def test_sampling_generator():
    generator = np.random.default_rng(1)
    assert sampling_generator(generator) is generator
    assert sampling_generator(5).integers(10**9) == sampling_generator(5).integers(10**9)
    assert len({int(sampling_generator(None).integers(2**62)) for _ in range(5)}) == 5
    # A seeded source gives repeatable generators, each a different one.
    first, again = noise_source(5), noise_source(5)
    one, two = (sampling_generator(first).integers(10**9) for _ in range(2))
    assert one == sampling_generator(again).integers(10**9) != two
