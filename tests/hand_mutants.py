"""Mutants written by hand: what no rule of `tests/mutants.py` makes, and the test that kills each.

A text of a file, what takes its place, what that breaks, and what must fail then. A quick test sees
that each text still occurs exactly once. ``python tests/mutants.py --hand`` runs them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Written:
    """A mutant written by hand.

    Attributes
    ----------
    file : str
        Below ``skdp``.
    old, new : str
        Text that occurs once in it, and what takes its place.
    breaks : str
        What is wrong then.
    killer : str
        What must fail: the replays of the branch of this name, or a test as "test_file::test_name".
    private : bool
        Whether it breaks the guarantee: then a replay must notice, a check of all estimators
        (test_common) or, where the ledger itself is broken, its own tests.
    """

    file: str
    old: str
    new: str
    breaks: str
    killer: str
    private: bool = True

    @property
    def name(self) -> str:
        return f"{self.file}: {self.breaks}"


WRITTEN = [
    # --- survivors of an attack, and mutants that no replay noticed
    Written(
        "mechanisms/selection.py",
        "noisy = discrete_laplace(falls, _AUTO_SHARE * epsilon, 2 * width,",
        "noisy = discrete_laplace(falls, _AUTO_SHARE * epsilon, width,",
        "both falls change, and one is paid",
        "most_frequent_items, auto",
    ),
    Written(
        "mechanisms/selection.py",
        "left = (1 - _AUTO_SHARE) * epsilon",
        "left = epsilon",
        "the choice of a method of top_k is not paid",
        "most_frequent_items, auto",
    ),
    Written(
        "algorithms/additive/pairs.py",
        "sensitivity = 11 * most // 4 + 1",
        "sensitivity = 10 * most // 4 + 1",
        "four sums move by 11/4 of the reach, and 10/4 is declared",
        "PrivateAdditiveRegressor",
    ),
    Written(
        "algorithms/marginals/candidates.py",
        "noisy = float(discrete_laplace(exact, epsilon, len(sets), random_state=source))",
        "noisy = float(discrete_laplace(exact, epsilon, 1, random_state=source))",
        "the misfit sums over pairs, and one is paid",
        "MarginalSynthesizer, max_order=2",
    ),
    Written(
        "algorithms/marginals/measure.py",
        "part = (choice - rest) * Fraction(some",
        "part = choice * Fraction(some",
        "the misfit is paid from what the choice spends too",
        "MarginalSynthesizer, max_order=2",
    ),
    Written(
        "algorithms/kmeans/sketch.py",
        "        spent += share * len(unclear)\n",
        "        spent += share\n",
        "ranges of all axes are charged as one",
        "DPKMeans, narrow ranges of two columns",
    ),
    # --- the base of estimators: order of charges, parts, persons
    Written(
        "base/estimator.py",
        "self._charge(self._split(loss)[0] if stop else loss, domain, reserve=loss.epsilon)",
        "self._charge(PrivacyLoss(loss.epsilon / 2, max_rows_per_id=most), domain, reserve=0)",
        "the ledger is charged half",
        "test_common::test_parts_sum_to_epsilon_and_the_ledger_is_charged",
    ),
    Written(
        "base/estimator.py",
        "        if stop:\n            self._charge(rest, domain, reserve=rest.epsilon)\n",
        "",
        "with on_loss='stop' only the counts of skipped records are charged",
        "test_common::test_a_release_that_may_stop_is_paid_whole",
    ),
    Written(
        "base/estimator.py",
        "self._split(loss)[0] if stop else loss, domain, reserve=loss.epsilon)",
        "self._split(loss)[0] if stop else loss, domain, reserve=self._split(loss)[0].epsilon)",
        "with on_loss='stop' a value is read though the ledger cannot pay",
        "test_common::test_a_release_that_may_stop_is_paid_whole",
    ),
    Written(
        "base/estimator.py",
        "epsilon = loss.of_record.parts[SKIPPED]",
        "epsilon = loss.parts[SKIPPED]",
        "counts of skipped records of persons have the noise of one record",
        "GridSynthesizer, persons",
    ),
    Written(
        "base/estimator.py",
        "skipped = SkippedRecords.of(domain, noisy, epsilon)",
        "skipped = SkippedRecords.of(domain, cells, epsilon)",
        "counts of skipped records are published without noise",
        "GridSynthesizer, four columns, rule=identity",
    ),
    Written(
        "base/estimator.py",
        "if stop and skipped.too_many:",
        "if stop and 10 * cells[1:].sum() > cells.sum():",
        "exact counts decide whether a release stops",
        "test_skipped::test_a_person_with_many_hostile_records_costs_no_more",
    ),
    Written(
        "base/estimator.py",
        "        if most is None:\n"
        "            return None\n        assert rows.privacy_id is not None",
        "        if most is None or len(domain) > 1:\n"
        "            return None\n        assert rows.privacy_id is not None",
        "all rows of a person count",
        "HDPViewSynthesizer, persons",
    ),
    Written(
        "base/estimator.py",
        "    if isinstance(value, Seed | NoiseSource):\n        return None\n",
        "",
        "pickles of fitted estimators hold the seed of the noise",
        "test_common::test_pickle_and_repr_hold_no_raw_value_and_no_seed",
    ),
    Written(
        "base/estimator.py",
        "        return value.detached()",
        "        return value",
        "pickles of fitted estimators hold the ledger",
        "test_common::test_a_pickle_of_a_fitted_estimator_leaves_the_file_of_its_ledger",
    ),
    # --- what a loss is, and the ledger
    Written(
        "accounting/_loss.py",
        "        if most is None:\n            return self\n        parts = {name: value / most",
        "        if most is not None:\n"
        "            return self._with(max_rows_per_id=None)\n"
        "        most = 1\n"
        "        parts = {name: value / most",
        "a record is paid like a person",
        "HDPViewSynthesizer, persons",
    ),
    Written(
        "accounting/_loss.py",
        "        if found != total:\n",
        "        if found < total:\n",
        "parts may spend more than is charged",
        "test_accounting::test_parts_must_sum",
    ),
    Written(
        "accounting/_loss.py",
        "seeded=self.seeded or other.seeded,",
        "seeded=self.seeded and other.seeded,",
        "a sum of a seeded loss and another looks guaranteed",
        "test_accounting::test_losses_compose",
    ),
    Written(
        "accounting/_stores.py",
        "            self._state = (after, count + 1)\n",
        "            self._state = (spent, count + 1)\n",
        "charges in memory spend nothing",
        "test_common::test_clones_share_the_ledger_and_each_fit_is_charged",
    ),
    Written(
        "accounting/_stores.py",
        "if total is not None and after + entry.reserve > total:",
        "if total is not None and after > total:",
        "what a release will need is not kept for it",
        "test_common::test_a_release_that_may_stop_is_paid_whole",
    ),
    Written(
        "accounting/_stores.py",
        "exact, after = after, Fraction(math.ceil(after * _FINEST), _FINEST)",
        "exact, after = after, Fraction(math.floor(after * _FINEST), _FINEST)",
        "sums of many digits are rounded down",
        "test_accounting::test_sums_with_any_denominators_are_held",
    ),
    Written(
        "accounting/_stores.py",
        "                self._left -= entry.loss.epsilon\n",
        "",
        "what is prepaid pays for any number of fits",
        "test_accounting::test_a_prepaid_handle_charges_what_goes_beyond",
    ),
    Written(
        "accounting/_stores.py",
        "            if count and self._entries[0].unit != entry.unit:\n"
        "                refuse_other_unit(entry)\n",
        "",
        "losses of records and of persons are added",
        "test_accounting::test_the_loss_of_a_record_and_that_of_a_person_are_not_summed",
    ),
    Written(
        "accounting/_stores.py",
        '            connection.execute("BEGIN IMMEDIATE")\n'
        "            self._read_header(connection)\n"
        "            self._refuse_older_copy(connection)\n"
        '            differs = "SELECT 1 FROM charges WHERE unit != ? LIMIT 1"\n'
        "            if connection.execute(differs, (entry.unit,)).fetchone():\n"
        "                refuse_other_unit(entry)\n"
        "            after, entry = booked(self.total, self._read_spent(connection), entry)",
        "            spent = self._read_spent(connection)\n"
        '            connection.execute("BEGIN IMMEDIATE")\n'
        "            after, entry = booked(self.total, spent, entry)",
        "two processes spend the same rest",
        "test_accounting::test_no_charge_comes_between_the_balance_and_the_entry",
    ),
    Written(
        "accounting/_stores.py",
        "    def charge(self, entry: Entry) -> None:\n        self._refuse()\n",
        "    def charge(self, entry: Entry) -> None:\n        return\n",
        "an estimator from a file releases without a ledger",
        "test_common::test_fitted_estimator_pickles_with_the_name_of_its_ledger_only",
    ),
    # --- reading: which rows count, and whose they are
    Written(
        "tables/persons.py",
        "    return order[place < most]",
        "    return order[place <= most]",
        "one row more of each person counts",
        "PrivTreeSynthesizer, persons",
    ),
    Written(
        "tables/persons.py",
        "order = np.lexsort((coins, owners))",
        "order = np.argsort(coins, kind='stable')",
        "rows are kept by coins alone, not of each person",
        "PrivTreeSynthesizer, persons",
    ),
    Written(
        "tables/encode.py",
        "first = cells[few_of_each(owners[known], cells, contributions.most)]",
        "first = cells",
        "all skipped rows of a person count",
        "GridSynthesizer, persons",
    ),
    Written(
        "tables/persons.py",
        "known = np.flatnonzero((codes >= 0).all(axis=1) & (owners >= 0))",
        "known = np.flatnonzero((codes >= 0).all(axis=1))",
        "rows of nobody count as those of one person",
        "test_persons::test_rows_without_a_person_or_a_code_do_not_count",
        private=False,
    ),
    Written(
        "tables/persons.py",
        'table = [_identity(value, known, column.kind == "string") for value in uniques]',
        "table = [_identity(value, {}, True) + n for n, value in enumerate(uniques)]",
        "a person whose key a list holds in two forms is two",
        "test_persons::test_equal_values_are_one_person",
    ),
    Written(
        "tables/encode.py",
        "found = identities(batch.column(bound.privacy_id), known)",
        "found = identities(batch.column(bound.privacy_id))",
        "persons have other numbers in each batch of a lazy frame",
        "test_encode::test_persons_of_lazy_rows_are_bounded_as_in_memory",
    ),
    Written(
        "tables/columns.py",
        "        codes = [coding.code_of(value) for value in uniques]",
        "        codes = [coding.table.get(value, coding.unknown) for value in uniques]",
        "values are looked up by the type that a reader gave them",
        "test_readers_agree::test_no_record_decides_the_code_of_another",
    ),
    Written(
        "tables/encode.py",
        "        cells[codes[:, axis] < 0] = axis + 1",
        "        cells[codes[:, axis] < 0] += axis + 1",
        "records are skipped for other columns than those without a code",
        "test_skipped::test_cells_are_those_of_brute_force",
        private=False,
    ),
    # --- the domain: records become codes one by one
    Written(
        "domain/numeric.py",
        "        x = np.clip(values, self.lower, self.upper)\n        missing = np.isnan(x)",
        "        x = np.clip(values, self.lower, self.upper)\n"
        "        x = x + (self.upper - np.nanmax(x, initial=self.lower))\n"
        "        missing = np.isnan(x)",
        "the largest value shifts all others",
        "GridSynthesizer, four columns, rule=identity",
    ),
    Written(
        "domain/numeric.py",
        "            codes[missing] = self.n_values if self.nullable else -1",
        "            codes[missing] = self.n_values if self.nullable else np.median(codes)",
        "missing values get the code of the others' median",
        "GridSynthesizer, four columns, rule=identity",
    ),
    Written(
        "domain/numeric.py",
        "            codes[values == value] = self.bins + place",
        "            codes[x == value] = self.bins + place",
        "values beyond the range count as a special value",
        "test_numeric::test_codes_of_special_values_come_after_the_bins",
        private=False,
    ),
    Written(
        "domain/reading.py",
        "        return self.missing if key is None else self.table.get(key, self.unknown)",
        "        return self.missing if key is None else self.table[key]",
        "a value raises an error that quotes it",
        "GridSynthesizer, four columns, rule=identity",
    ),
    Written(
        "domain/domain.py",
        "            codes[breaks] = broken\n",
        "            codes[breaks] = broken\n"
        "            if 2 * breaks.sum() > len(codes):\n"
        "                codes[:] = broken\n",
        "many records that break a rule take all others with them",
        "MarginalSynthesizer, rules",
    ),
    # --- views
    Written(
        "algorithms/marginals/measure.py",
        "exact.reshape(n, -1).sum(axis=1), each * part, random_state=self.source",
        "exact.reshape(n, -1).sum(axis=1), each, random_state=self.source",
        "levels of a column are paid as one",
        "MarginalSynthesizer, more than 512 codes",
    ),
    Written(
        "algorithms/marginals/measure.py",
        "each = left * share / max(len(self.used), 1)",
        "each = left * share",
        "single columns are paid as one",
        "MarginalSynthesizer, two columns",
    ),
    Written(
        "algorithms/marginals/measure.py",
        'self.budget["means"] = each * len(means)',
        'self.budget["means"] = each',
        "sums by group are paid as one",
        "MarginalSynthesizer, workload of means",
    ),
    Written(
        "algorithms/marginals/measure.py",
        "        return max(self.total if look is None else float(look.values), 1.0)",
        "        return max(float(self.table.n), 1.0)",
        "the exact number of records decides what is measured",
        "MarginalSynthesizer, max_order=2",
    ),
    Written(
        "algorithms/marginals/measure.py",
        "        number = len(own) + max",
        "        number = max",
        "pairs with the label are not paid",
        "MarginalSynthesizer, target",
    ),
    Written(
        "algorithms/marginals/candidates.py",
        "noisy_max(scores, epsilon / number, 2",
        "noisy_max(scores, epsilon, 2",
        "each choice of a round costs what all do",
        "MarginalSynthesizer, target",
    ),
    Written(
        "algorithms/marginals/candidates.py",
        "expected: FloatArray = self._total * binned.margin(axes)",
        "expected: FloatArray = self._counts[axes].sum() * binned.margin(axes)",
        "scores are distances from shares of the exact number of records",
        "MarginalSynthesizer, max_order=2",
    ),
    Written(
        "algorithms/marginals/joint.py",
        "whole.codes, whole.counts, table.shape, epsilon, threshold, random_state=source",
        "whole.codes, whole.counts, table.shape, 2 * epsilon, threshold, random_state=source",
        "joint counts have half the noise",
        "MarginalSynthesizer, joint counts",
    ),
    # --- releases
    Written(
        "synthesis/base.py",
        '        each = loss.of_record.parts["ranges"] / len(domain.open)\n',
        '        each = loss.of_record.parts["ranges"]\n',
        "ranges of several columns are paid as one",
        "MarginalSynthesizer, unknown ranges",
    ),
    Written(
        "synthesis/base.py",
        "        loss, source = self._spend(parts, rows, domain=declared, stop=stop)\n",
        "        rows.select(domain.names) if rows.kinds is None else Coded(rows, domain).cells()\n"
        "        loss, source = self._spend(parts, rows, domain=declared, stop=stop)\n",
        "values are read before the charge",
        "test_common::test_over_budget_raises_before_a_value_is_read",
    ),
    Written(
        "release/files.py",
        "    if loss.max_rows_per_id is not None:\n",
        "    if loss.max_rows_per_id is not None and loss.seeded:\n",
        "a file of persons says that records are protected",
        "test_persons::test_releases_in_files_keep_the_unit",
        private=False,
    ),
    Written(
        "release/files.py",
        '        seeded=data["seeded"],',
        "        seeded=False,",
        "a seeded release looks guaranteed once it was stored",
        "test_synopsis::test_files_say_seeded_and_hold_no_seed",
        private=False,
    ),
    Written(
        "release/skipped.py",
        "return math.sqrt(discrete_laplace_variance(self.epsilon))",
        "return discrete_laplace_variance(self.epsilon)",
        "the noise of skipped records is stated as its square",
        "test_skipped::test_every_synthesizer_tells_what_it_skipped",
        private=False,
    ),
    # --- models
    Written(
        "_models.py",
        "model, total, std = self._release(records, columns, link, loss.of_record.parts, source)",
        "model, total, std = self._release(records, columns, link, loss.parts, source)",
        "models of persons have the noise of one record",
        "PrivateAdditiveClassifier, persons",
    ),
    Written(
        "_models.py",
        'total, std = released_total(records, parts["total"], source)',
        'total, std = released_total(records, parts["total"], source)\n'
        "        total = float(records.counts.sum())",
        "the exact number of records divides and is published",
        "PrivateAdditiveClassifier, two classes",
    ),
    Written(
        "_models.py",
        "        loss, source = self._spend(parts, rows)\n",
        "        weighted_rows(rows, domain.select([*names, target]))\n"
        "        loss, source = self._spend(parts, rows)\n",
        "values are read before the charge",
        "test_common::test_over_budget_raises_before_a_value_is_read",
    ),
    Written(
        "decomposition.py",
        'found = principal_components(records, design, loss.of_record.parts["moments"], source)',
        'found = principal_components(records, design, loss.parts["moments"], source)',
        "components of persons have the noise of one record",
        "PrivatePCA, persons",
    ),
    Written(
        "sample_aggregate.py",
        'n_blocks = paid_blocks(n_rows, parts["total"], source)',
        "n_blocks = max(round(max(n_rows - 1, 1) ** 0.6), 2)",
        "the exact number of records decides the number of blocks",
        "SampleAggregate, mean",
    ),
    Written(
        "sample_aggregate.py",
        "block = source.record_below(n_blocks, n_rows)",
        "block = np.arange(n_rows) % n_blocks",
        "a record more moves those after it to other blocks",
        "SampleAggregate, largest of blocks",
    ),
    # --- models around a release
    Written(
        "compose.py",
        'kind(**given | {"epsilon": noise["models"] * most * share}).fit(X, y)',
        'kind(**given | {"epsilon": noise["models"] * most}).fit(X, y)',
        "each of two models spends what both may",
        "PrivateClassifier, default",
    ),
    Written(
        "compose.py",
        "self.label_counts_ = counts",
        "self.label_counts_ = table.dense()",
        "exact counts of labels are published",
        "PrivateClassifier, default",
    ),
    Written(
        "compose.py",
        "table = count_rows(rows, domain.select([target]), bound)",
        "table = count_rows(rows, domain.select([target]))",
        "all labels of a person count",
        "PrivateClassifier, default of persons",
    ),
    # --- steered by something exact: any two tables that get the same answers run alike
    Written(
        "algorithms/ranges.py",
        "zeros = bool(noisy[zero] >=",
        "zeros = bool(counts[zero] >=",
        "whether a column has zeros follows the exact count",
        "MarginalSynthesizer, unknown ranges",
    ),
    Written(
        "algorithms/kmeans/sketch.py",
        "return bool(noisy[0] >= TUNING.most * n)",
        "return bool(most >= TUNING.most * n)",
        "whether a range is narrow follows the exact count",
        "DPKMeans, auto",
    ),
    Written(
        "compose.py",
        'if level == "many" and counts.max() >= _RARE * counts.sum():',
        'if level == "many" and table.dense().max() >= _RARE * table.dense().sum():',
        "a frequent label follows the exact counts",
        "PrivateClassifier, default",
    ),
    Written(
        "algorithms/marginals/measure.py",
        "views, self.total, self.table.shape, max_order=asked.max_order,",
        "views, self.table.n, self.table.shape, max_order=asked.max_order,",
        "the size of rows follows the exact number of records",
        "MarginalSynthesizer, prior",
    ),
    Written(
        "algorithms/marginals/joint.py",
        "threshold = _threshold(epsilon, total, table.shape)",
        "threshold = _threshold(epsilon, table.n, table.shape)",
        "the threshold of joint counts follows the exact number of records",
        "MarginalSynthesizer, joint counts of many codes",
    ),
    Written(
        "base/estimator.py",
        "if stop and skipped.too_many:",
        "if stop and SkippedRecords.of(domain, cells, epsilon).too_many:",
        "a release stops by the exact number of skipped records",
        "GridSynthesizer, stop",
    ),
    Written(
        "algorithms/trees.py",
        "auto_depth(float(total.sum()) *",
        "auto_depth(float(records.counts.sum()) *",
        "depth follows the exact number of records",
        "PrivateDecisionTreeClassifier, defaults",
    ),
    Written(
        "algorithms/trees.py",
        "growth.keep(sizes >= needed)",
        "growth.keep(growth.class_counts(growth.active).sum(axis=1) >= needed)",
        "nodes are kept by exact sizes",
        "PrivateDecisionTreeClassifier, id3",
    ),
    Written(
        "synthesis/boxes.py",
        "grid_size(self.rule, float(total),",
        "grid_size(self.rule, float(table.n),",
        "the size of a grid follows the exact number of records",
        "GridSynthesizer, one column, rule=uniform",
    ),
    Written(
        "classification.py",
        "cell_limit(n_records,",
        "cell_limit(table.n,",
        "the number of cells follows the exact number of records",
        "PrivPfCTransformer",
    ),
    Written(
        "classification.py",
        "merging_budget(lines, n_records,",
        "merging_budget(lines, table.n,",
        "the budget of merging follows the exact number of records",
        "PrivPfCTransformer",
    ),
    Written(
        "algorithms/privbayes.py",
        "largest_table(total, parts",
        "largest_table(table.n, parts",
        "the largest table follows the exact number of records",
        "PrivBayesSynthesizer, four columns",
    ),
    Written(
        "algorithms/marginals/measure.py",
        "return self.records * float(left) / cells >=",
        "return self.table.n * float(left) / cells >=",
        "whether cells are measured follows the exact number of records",
        "MarginalSynthesizer, prior, target",
    ),
    Written(
        "algorithms/marginals/measure.py",
        "number = self._n_sets(self.records * float(left))",
        "number = self._n_sets(self.table.n * float(left))",
        "the number of sets follows the exact number of records",
        "MarginalSynthesizer, prior",
    ),
    Written(
        "algorithms/dawa.py",
        "wanted = noisy * (float(epsilon)",
        "wanted = exact * (float(epsilon)",
        "branching follows exact counts",
        "RangeTreeHistogram, adaptive, 600 bins",
    ),
    Written(
        "algorithms/dawa.py",
        "similar_groups(noisy, threshold, float",
        "similar_groups(counts[:n_values], threshold, float",
        "groups follow exact counts",
        "RangeTreeHistogram, {'partition': 'ahp'}",
    ),
    Written(
        "algorithms/dpcube.py",
        "kd_boxes(\n        cells,",
        "kd_boxes(\n        table.dense(),",
        "boxes follow exact cells",
        "KDTreeSynthesizer, one column, xi0=2, xi1=1",
    ),
    Written(
        "compose.py",
        "signal = int(counts.sum()) *",
        "signal = int(table.n) *",
        "the blend of models follows the exact number of records",
        "PrivateClassifier, default",
    ),
    Written(
        "algorithms/linear.py",
        "signal = float(epsilon) * max(total, 0.0)",
        "signal = float(epsilon) * float(records.counts.sum())",
        "the choice of a solver follows the exact number of records",
        "PrivateLinearRegression, auto",
    ),
    Written(
        "_models.py",
        "if total > std else 2 * std",
        "if records.counts.sum() > std else 2 * std",
        "the spread of a number of records follows the exact one",
        "PrivateAdditiveClassifier, two classes",
    ),
]
