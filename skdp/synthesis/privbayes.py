"""PrivBayes: a Bayesian network of the columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._validation import as_between, as_fraction, as_integer, check_choice
from ..algorithms.privbayes import NEGATIVES, SCORES, privbayes, privbayes_parts
from ..exceptions import DomainError
from ..release import Synopsis
from .base import Synthesizer

_ENCODINGS = ("vanilla", "hierarchical")
# By how much the range of a score may be larger than that of a noisy maximum.
_PUBLISHED = {"tight": 1, "paper": 2}


@dataclass(eq=False, repr=False, kw_only=True)
class PrivBayesSynthesizer(Synthesizer):
    """A Bayesian network of the columns, chosen and measured with noise: PrivBayes.

    Column by column it chooses privately which earlier columns tell most about it (its parents),
    and then measures one table for each column and its parents. The product of the conditional
    probabilities answers queries on any columns and yields synthetic rows. It is here for
    comparison with published work; `MarginalSynthesizer` is the release to start with.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, dict, pair, attribute, or list of these
        Public range or categories of every column, required. One attribute or pair is for all
        columns of an array. Rules (``structure=``) that forbid combinations are refused.
    target : str, default=None
        Column of the domain that takes ``y``. The network treats it like the others.
    score_function : {"R", "F", "mutual_information"}, default="R"
        What a column's parents are chosen by: the L1 distance from independence; the closeness to
        a distribution in which the parents determine the column (two codes in every column only);
        or the mutual information.
    encoding : {"vanilla", "hierarchical"}, default="vanilla"
        "vanilla": a column is a parent with all its codes. "hierarchical": also at a coarser level
        of its taxonomy, or with groups of neighbouring bins or ordered categories, so that more
        parents fit into a table.
    theta : float, default=4
        Tables have at most so many cells that the mean count of a cell, by the noisy number of
        records, is ``theta`` times the scale of its noise. Larger values give fewer parents.
    beta : float, default=0.3
        Share of epsilon that chooses the network, from 0.001 to 0.979.
    max_candidates : int, default=200
        At most so many columns with their parents are scored in each round, drawn at random if
        there are more. Each costs one pass over the rows, the first time it is scored.
    max_cells : int, default=65536
        Largest number of cells of a table with parents, whatever ``theta`` allows.
    max_parents : int, default=None
        Largest number of parents of a column, the k of the paper's first version. None: as many as
        ``theta`` allows.
    calibration : {"tight", "paper"}, default="tight"
        How parents are chosen: "tight" by a noisy maximum with the exact range of the scores,
        "paper" by the exponential mechanism with the published sensitivity, and nothing is spent on
        counts of skipped records. Both are epsilon-DP.
    negatives : {"project", "zero"}, default="project"
        What becomes of negative noisy counts: "project" takes the nearest table that is not
        negative and has the released total; "zero" sets them to zero, as the paper does.
    max_rows_per_id : int, default=None
        Keep at most this many rows of each person, chosen secretly; epsilon then protects the
        person. Needs ``privacy_id``. None: epsilon protects one row.
    privacy_id : str, default=None
        Column of the data, not of the domain, that identifies the person a row belongs to. Rows
        without a value in it are skipped.
    on_loss : {"warn", "stop"}, default="warn"
        What to do if the released counts of skipped records say that more than a tenth of the
        records is lost: "stop" raises :class:`skdp.RecordsLostError` before the other 99% of
        epsilon are charged, "warn" goes on.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read.
    random_state : int or None, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: the release is then marked "seeded: no guarantee".

    Attributes
    ----------
    synopsis_ : Synopsis
        The release; ``synopsis_.to_frame()`` lists the network. Everything computed from it is
        free.
    domain_ : Domain
        The domain, spelled out for every column.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "skipped", "total" (the number of records), "network"
        (parents; only with three or more columns that have a choice), "tables".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record; the *unit of privacy* is the record. *Public*: domain
    and parameters. *Released*: a noisy total, the parents of each column, and one noisy table for
    each column. *Cost*: the part "total" for the total (sensitivity 1); an equal share of "network"
    for each round, with scores whose changes by one record lie in an interval of a proved length;
    the part "tables" for all tables together (a record changes one cell of each by one). They are
    measured one after the other and add up to epsilon.

    ``count(..., return_interval=True)`` is refused: nothing measures how far the network's
    independence assumptions are from the records.

    References
    ----------
    J. Zhang, G. Cormode, C. M. Procopiuc, D. Srivastava, X. Xiao, "PrivBayes: private data release
    via Bayesian networks", ACM TODS 42(4), 2017.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp import Categorical, Domain, Numeric, PrivBayesSynthesizer
    >>> domain = Domain({"age": Numeric(18, 90, bins=8), "sex": Categorical(["F", "M"])})
    >>> people = pd.DataFrame({"age": [30, 41, 52, 35] * 500, "sex": ["F", "M"] * 1000})
    >>> view = PrivBayesSynthesizer(epsilon=1.0, domain=domain).fit(people)
    >>> 900 < view.count("sex == 'F'") < 1100
    True
    >>> list(view.sample(5).columns)
    ['age', 'sex']
    """

    score_function: Any = "R"
    encoding: Any = "vanilla"
    theta: Any = 4
    beta: Any = 0.3
    max_candidates: Any = 200
    max_cells: Any = 65536
    max_parents: Any = None
    calibration: Any = "tight"
    negatives: Any = "project"

    def _together(self, domain):
        return ()

    def _parts(self, epsilon, domain):
        check_choice(self.score_function, "score_function", SCORES)
        check_choice(self.encoding, "encoding", _ENCODINGS)
        check_choice(self.negatives, "negatives", NEGATIVES)
        as_between(self.theta, "theta", 1e-9, 1e9)
        as_integer(self.max_candidates, "max_candidates", 1, meaning="sets of parents per round.")
        as_integer(self.max_cells, "max_cells", 1, meaning="cells of the largest table.")
        wide = [name for name, size in zip(domain.names, domain.shape, strict=True) if size > 2]
        if self.max_parents is not None:
            as_integer(self.max_parents, "max_parents", 0, meaning="parents of a column.")
        if self.score_function == "F" and wide:
            raise DomainError(
                "score_function='F' needs columns of at most two codes, but "
                f"{wide[0]!r} has {domain[wide[0]].size}. Take score_function='R'."
            )
        most_range = SCORES[self.score_function].most_range * _PUBLISHED[self.calibration]
        return privbayes_parts(epsilon, domain.shape, self.beta, most_range)

    def _release(self, table, domain, loss, source):
        model = privbayes(
            table,
            loss.parts,
            levels=_levels(domain) if self.encoding == "hierarchical" else None,
            score_function=self.score_function,
            theta=as_fraction(self.theta, "theta"),
            max_candidates=self.max_candidates,
            max_cells=self.max_cells,
            max_parents=self.max_parents,
            calibration=self.calibration,
            negatives=self.negatives,
            random_state=source,
        )
        mechanism = f"PrivBayes, score {self.score_function}, {self.encoding} encoding"
        return Synopsis(domain, model, privacy_loss=loss, mechanism=mechanism)


def _levels(domain):
    """Groups of the codes of each column, the finest first, without that of all codes together."""
    found = []
    for attribute in domain.attributes:
        finer = []
        size = attribute.size
        for level in reversed(attribute.levels()[1:-1]):
            groups = len(level.labels)
            if 1 < groups < size:
                finer.append(level.groups)
                size = groups
        found.append([None, *finer])
    return found
