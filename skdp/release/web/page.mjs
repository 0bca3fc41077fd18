// The page of a release: answers questions from the numbers that it holds, which is post-processing.
// It repeats `ViewsModel`, `BoxModel` and the statistics of a `Synopsis` with the same names, from
// arrays that page.py makes; tests/release/test_page.py compares the two. `desk.mjs` draws. What
// is called rows are synthetic rows of the release, or boxes.

const KINDS = { f8: Float64Array, u4: Uint32Array, u2: Uint16Array, u1: Uint8Array };
const zeros = (n) => new Float64Array(n);
const product = (values) => values.reduce((a, b) => a * b, 1);
const sumOf = (values) => values.reduce((a, b) => a + b, 0);
const ifAny = (x) => (x > ROUNDING ? x : 0);
const sizeOf = (values) => values.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
const joined = (...parts) => Float64Array.from(parts.flatMap((part) => [...part]));
export const clip = (x, low, high) => Math.min(Math.max(x, low), high);

// Of as many numbers as both have.
function dot(a, b) {
  const n = Math.min(a.length, b.length);
  let found = 0;
  for (let i = 0; i < n; i += 1) found += a[i] * b[i];
  return found;
}

// A matrix, its rows one after the other, times a vector.
function times(matrix, vector) {
  const n = vector.length;
  const rowOf = (row) => matrix.subarray(row * n, (row + 1) * n);
  return zeros(matrix.length / n).map((_, row) => dot(rowOf(row), vector));
}

// The sum of a table times the outer product of a vector for each of its axes.
const under = (cells, vectors) => vectors.reduceRight(times, cells)[0];

function cumulated(values) {
  let sum = 0;
  return Float64Array.from(values, (each) => (sum += each));
}

function combinations(items, size) {
  if (size === 0) return [[]];
  return items.flatMap((item, i) =>
    combinations(items.slice(i + 1), size - 1).map((rest) => [item, ...rest]));
}

const [THIRD, ROUNDING] = [0.1, 1e-9];

// A measured column: see `ColumnEstimate` and `ColumnBasis`.
class Column {
  constructor(facts) {
    Object.assign(this, facts);
    this.rowsOf = Array.from(this.starts ?? this.allowed, () => []);
    this.rows.forEach((code, row) => this.rowsOf[code].push(row));
    if (!this.counts) return;
    // How what blocks hold beyond the last code is shared out over the codes.
    const [n, lattice] = [this.codes.length, this.sizes.at(-1)];
    const outside = zeros(lattice).fill(1, n);
    const spread = this.spread(outside, this.scales.with(0, 0));
    const all = dot(outside, spread) || 1;
    this.beyond = spread.slice(0, n).map((each) => -each / all);
  }

  // Covariance of the counts of a lattice with a weighted sum of them, by the levels of its blocks.
  spread(weights, scales) {
    let [found, coarse, at] = [zeros(1), zeros(1), 0];
    for (const size of this.sizes) {
      const [mean, next, width] = [zeros(size), zeros(size), weights.length / size];
      weights.forEach((each, i) => (mean[Math.floor(i / width)] += each / width));
      for (let i = 0; i < size; i += 1) {
        const parent = Math.floor((i * coarse.length) / size);
        next[i] = found[parent] + (mean[i] - coarse[parent]) * scales[at + parent];
      }
      at += coarse.length;
      [found, coarse] = [next, mean];
    }
    return found;
  }

  // Covariance of the counts of possible codes, by their levels alone, with a weighted sum of them.
  covered(weights) {
    const padded = zeros(this.sizes.at(-1)).fill(dot(this.beyond, weights));
    padded.set(weights);
    const found = this.spread(padded, this.scales);
    const rest = sumOf(found.subarray(weights.length));
    return found.slice(0, weights.length).map((each, i) => each + this.beyond[i] * rest);
  }

  // Covariance of the counts of possible codes with a weighted sum of them.
  covariance(weights) {
    const found = this.covered(weights);
    if (!this.groupsTell) return found;
    // What sums of groups tell is taken off.
    const sums = zeros(Math.sqrt(this.groupsTell.length));
    this.codes.forEach((code, i) => (sums[this.units[code]] += found[i]));
    const known = times(this.groupsTell, sums);
    const left = this.covered(weights.map((each, i) => each - known[this.units[this.codes[i]]]));
    const back = dot(this.restored, weights);
    return left.map((each, i) => each + this.restored[i] * back);
  }

  // Features of the field of the column, and of chance; those of codes cut in part at their ends.
  features(weights, cut) {
    const { mass, steps } = this;
    const n = steps.length;
    const mean = dot(mass, weights);
    const apart = weights.map((each, code) => Math.sqrt(mass[code]) * (each - mean));
    const chance = joined(apart, cut.map((each, code) => Math.sqrt(mass[code] * each)));
    if (!n) return [chance, chance];
    const share = sumOf(mass.subarray(0, n));
    const middle = dot(mass.subarray(0, n), weights) / share;
    const inside = steps.map((_, code) => mass[code] * (weights[code] - middle));
    const sums = cumulated(inside);
    const field = joined(
      steps.map((step, code) => Math.sqrt(12) * step * (sums[code] - inside[code] / 2)),
      steps.map((step, code) => step * inside[code]),
      apart.subarray(n),
      [Math.sqrt(share) * (middle - mean)],
      cut.subarray(0, n).map((each, code) => 2 * steps[code] * mass[code] * each),
    );
    return [field, chance];
  }

  // Mean weights of groups of codes.
  means(weights, size) {
    const { of, shares } = this.groups[size];
    const found = zeros(size);
    of.forEach((group, code) => (found[group] += shares[code] * weights[code]));
    return found;
  }
}

// Weights of the codes of a column in a question, and what follows from them.
class Weights {
  constructor(column, given) {
    Object.assign(this, { column, given, known: new Map() });
    // Codes that rules forbid have none. On a side of boxes counts the mean of its codes.
    const { allowed, starts, stops } = column;
    const possible = given.map((each, code) => each * allowed[code]);
    const sums = joined([0], cumulated(given));
    const meanOf = (start, k) => (sums[stops[k]] - sums[start]) / (stops[k] - start);
    this.values = starts ? Float64Array.from(starts, meanOf) : possible;
    this.mean = dot(column.even ?? [], this.values);
    const of = (power) => dot(column.mass ?? [], this.values.map((each) => each ** power));
    [this.share, this.spread] = [of(1), Math.max(of(2) - of(1) ** 2, 0)];
    this.arePlain = possible.every((each) => each >= 0);
    this.areShares = this.arePlain && possible.every((each) => each <= 1);
    this.id = Weights.ids += 1;
  }

  static ids = 0;

  once(name, find) {
    if (!this.known.has(name)) this.known.set(name, find());
    return this.known.get(name);
  }

  // The weight that all of these codes have, 0 if there are none; or null.
  alike(codes) {
    const first = this.given[codes.findIndex((each) => each > 0)] ?? 0;
    return this.given.every((each, code) => each === first || !codes[code]) ? first : null;
  }

  // Standard deviation of the counts of the column under them.
  get noise() {
    const { centred, spread } = this.around(0);
    return Math.sqrt(Math.max(dot(spread, centred), 0));
  }

  // Weights with the mean of some codes for all others; of conditions only if these have one.
  among(codes) {
    const alike = this.alike(codes);
    const isCondition = this.given.every((each) => each === 0 || each === 1);
    if (this.cut.length || (isCondition && alike === null)) return this;
    const mass = this.column.mass.map((each, code) => (codes[code] ? each : 0));
    const mean = alike ?? dot(mass, this.given) / sumOf(mass);
    return new Weights(this.column, this.given.map((each, code) => (codes[code] ? each : mean)));
  }

  // Weight 1 for all codes that have one.
  get on() {
    return this.once("on", () => {
      if (this.values.every((each) => each === 0 || each === 1)) return this;
      const least = ROUNDING * sizeOf(this.values);
      return new Weights(this.column, this.values.map((each) => Number(Math.abs(each) > least)));
    });
  }

  get codes() {
    return this.once("codes", () => [...this.values.keys()].filter((code) => this.values[code]));
  }

  // How many rows have one.
  get number() {
    return this.once("number", () => sumOf(this.codes.map((at) => this.column.rowsOf[at].length)));
  }

  residual(mean) {
    const { residual } = this.column;
    return this.once(`residual ${mean}`, () => dot(residual, this.values) - mean * sumOf(residual));
  }

  // Products w (1 - w) at the codes that a range covers in part: see `cut_shares`.
  get cut() {
    return this.once("cut", () => {
      const parts = this.values.map((w) => (w > ROUNDING && w < 1 - ROUNDING ? w * (1 - w) : 0));
      const number = parts.filter((each) => each > 0).length;
      return number > 0 && number <= 2 && this.areShares ? parts : zeros(0);
    });
  }

  get features() {
    return this.once("features", () => this.column.features(this.values, this.cut));
  }

  // The weights of possible codes less a mean of them, and covariances of the counts with these.
  around(mean) {
    return this.once(`around ${mean}`, () => {
      const centred = Float64Array.from(this.column.codes, (code) => this.values[code] - mean);
      return { centred, spread: this.column.covariance(centred) };
    });
  }

  // What a table of so many groups answers of the weights.
  inGroups(size) {
    return this.once(size, () => {
      const [means, squares] = [1, 2].map((power) =>
        this.column.means(this.values.map((each) => each ** power), size));
      const within = squares.map((each, group) => each - means[group] ** 2).map(ifAny);
      return { means, within, parts: times(this.column.groups[size].functions, means) };
    });
  }

  featuresInGroups(size) {
    return this.once(`features ${size}`, () => {
      const { means } = this.inGroups(size);
      const within = Float64Array.from(this.column.groups[size].of, (group) => means[group]);
      return this.column.features(within, zeros(0));
    });
  }
}

// A question with weights of one more column, or times those that it has. Questions are lists of
// weights, one for each column that matters, in the order of the columns.
function and(question, more) {
  const own = question.find((each) => each.column === more.column);
  const times = (each, code) => each * more.given[code];
  const both = own ? new Weights(own.column, own.given.map(times)) : more;
  const all = [...question.filter((each) => each !== own), both];
  return all.sort((a, b) => a.column.axis - b.column.axis);
}

const keyOf = (part) => part.map(({ column }) => column.axis).join();

// Variance of the number of records that meet two conditions, if of each only the share is known.
function largest(records, a, b) {
  const far = Math.max(Math.min(a, b) - a * b, a * b - Math.max(a + b - 1, 0));
  return Math.max(records * far, 1) ** 2 / 3;
}

// Weighted rows, and the coefficients of everything measured, or boxes: see `ViewsModel`, `BoxModel`.
class Model {
  constructor(facts) {
    Object.assign(this, { possible: [], tables: [] }, facts);
    this.records = Math.max(this.total, 1);
    this.columns = facts.columns.map((each) => new Column(each));
    this.looks = new Map(this.tables.map((each) => [each.axes.join(), each]));
  }

  // The weights that matter, and the product of all others: see `_Rules` of products.py.
  part(question) {
    const found = [...question];
    for (const { axes, masks } of this.possible) {
      const at = axes.map((axis) => found.findIndex(({ column }) => column.axis === axis));
      if (!at.every((place) => found[place]?.column.mass)) continue;
      if (!under(masks[0], at.map((k) => question[k].on.values))) return { factor: 0, given: [] };
      const noises = at.map((place) => found[place].noise);
      for (const k of [...at.keys()].sort((i, j) => noises[j] - noises[i])) {
        const others = at.filter((place) => place !== at[k]).map((place) => found[place].on.values);
        found[at[k]] = found[at[k]].among(others.reduceRight(times, masks[k]));
      }
    }
    const alike = found.map((each) => each.alike(each.column.allowed));
    const factor = product(alike.map((each) => each ?? 1));
    return { factor, given: factor ? found.filter((_, place) => alike[place] === null) : [] };
  }

  // Share of the rows under weights: of those with a weight in the column with the fewest.
  ofRows(given) {
    const first = given.reduce((a, b) => (b.number < a.number ? b : a));
    // What is asked again and again, in any order, is added up once.
    return first.once(`rows ${given.map(({ id }) => id).sort()}`, () => {
      const others = given.filter((each) => each !== first);
      let found = 0;
      for (const code of first.codes) {
        for (const row of first.column.rowsOf[code]) {
          let part = this.masses[row] * first.values[code];
          for (const { column, values } of others) part *= values[column.rows[row]];
          found += part;
        }
      }
      return found;
    });
  }

  // Parts of several columns that were measured together.
  measured(given) {
    const parts = given.flatMap((_, i) => (i ? combinations(given, i + 1) : []));
    return parts.filter((part) => this.looks.has(keyOf(part)));
  }

  // How weights count where their column is not looked at: see `ViewsModel.mean_of`.
  meanOf(given, each) {
    return this.looks.has(keyOf(given)) ? each.mean : each.share;
  }

  // How much of an error of some columns meets the conditions on the others: see `Asked.outside`.
  outside(given, part) {
    const others = given.filter((each) => !part.includes(each));
    const means = product(others.map((each) => this.meanOf(given, each)));
    const measured = given.length < 3 || this.looks.has(keyOf(given));
    if (measured || !part.length || !others.length) return means;
    const meeting = part.map(({ on }) => on);
    const rows = this.records * this.ofRows([...meeting, ...others]);
    return (rows + means) / (this.records * this.ofRows(meeting) + 1);
  }

  answer(question) {
    const { factor, given } = this.part(question);
    return factor ? factor * this.answered(given) : 0;
  }

  answered(given) {
    if (!given.length) return this.total;
    if (this.cells) return this.ofRows(given);
    if (given.length === 1) return dot(given[0].column.counts, given[0].values);
    let found = this.total * this.ofRows(given);
    for (const each of given) {
      found += each.residual(this.meanOf(given, each)) * this.outside(given, [each]);
    }
    for (const part of this.measured(given)) {
      const { sizes, corrected } = this.looks.get(keyOf(part));
      const parts = part.map((each, place) => each.inGroups(sizes[place]).parts);
      found += under(corrected, parts) * this.outside(given, part);
    }
    const shared = given.length > 2 && !this.looks.has(keyOf(given));
    return shared && given.every(({ arePlain }) => arePlain) ? Math.max(found, 0) : found;
  }

  // Variances and covariance of two answers, or the variance of one: see `covariances`.
  covariance(first, second = []) {
    const [one, other] = [this.errors(first), this.errors(second)];
    const of = (a, b) => sumOf([...a].map(([key, { much, own, together }]) =>
      (b.has(key) ? much * b.get(key).much * together(own, b.get(key).own) : 0)));
    return [Math.max(of(one, one), 0), of(one, other), Math.max(of(other, other), 0)];
  }

  // Of each row, or box, the product of the weights.
  met(question, of = ({ values }) => values) {
    const parts = question.map((each) => [of(each), each.column.rows]);
    return this.masses.map((_, row) => parts.reduce((a, [own, rows]) => a * own[rows[row]], 1));
  }

  // How far a count may be off, and whether it cuts boxes: see `Intervals.reach` and `noise_reach`.
  reach(question, { quantile, tails }) {
    const std = Math.sqrt(this.covariance(question)[0]);
    if (!tails) return { std, below: quantile * std, above: quantile * std };
    const { noise, counts, uneven } = this.cells;
    const mean = this.met(question);
    const extreme = (end) => ({ given, column: { starts, stops } }) => Float64Array.from(starts,
      (start, k) => given.subarray(start, stops[k]).reduce((a, b) => end(a, b)));
    const [low, high] = [Math.min, Math.max].map((end) =>
      (uneven ? this.met(question, extreme(end)) : mean));
    const cut = low.some((each, box) => each < high[box]);
    const { normal, single, bounds } = tails[Number(cut)];
    const of = (from, to) => {
      let [reach, variance, fourth, third] = [0, 0, 0, 0];
      noise.forEach((each, box) => {
        const own = ((from[box] + to[box]) ** 2 * each) / 4;
        const apart = (to[box] - from[box]) * Math.sqrt(each / 8);
        reach += apart;
        variance += own + apart ** 2;
        fourth += own ** 2 * (3 + 1 / (each || 1));
        third += (6 * own + 2 * apart ** 2) * apart;
      });
      if (!variance) return 0;
      const flat = (single - normal) * Math.min(fourth / variance ** 2 / 3, 1) ** 0.75;
      const skewed = ((third / variance ** 1.5) * (normal ** 2 - 1)) / 6;
      reach += Math.sqrt(variance) * (normal + flat + skewed);
      const steep = from.map((each, box) => Math.max(Math.abs(each), Math.abs(to[box])));
      const largest = sizeOf(steep);
      const whole = largest * Math.ceil(reach / largest - 0.5);
      return steep.every((each) => !each || each === largest) ? whole : Math.max(reach, whole);
    };
    const sums = (weights, end, sign) => sumOf(zeros(mean.length).map((_, box) => {
      const most = bounds ? ((high[box] - low[box]) * bounds[box]) / 2 : Infinity;
      return end(weights[box] * counts[box], mean[box] * counts[box] + sign * most);
    }));
    const value = dot(mean, this.masses);
    const below = value - sums(low, Math.max, -1) + of(low, bounds ? mean : low);
    const above = sums(high, Math.min, 1) - value + of(bounds ? mean : high, high);
    return { std, below: Math.max(below, 0), above: Math.max(above, 0), cut };
  }

  // Independent errors of an answer: how much of each, from what, and how two of a kind covary.
  errors(question) {
    const found = new Map();
    const add = (key, much, own, together) => found.set(key, { much, own, together });
    const { factor, given } = this.part(question);
    if (this.cells) {
      const { noise, scatter, elsewhere } = this.cells;
      const met = this.met(question);
      add("rows", 1, met, (a, b) => dot(noise, a.map((each, row) => each * b[row])));
      // All records of a box may lie in one cell of it; of shares of cells any part may be met.
      const shares = question.every(({ areShares }) => areShares);
      const scattered = (a, b) => {
        const both = a === b && shares ? a.met : this.met(b.question.reduce(and, a.question));
        return dot(scatter, both.map((each, row) => each - a.met[row] * b.met[row]));
      };
      if (scatter.length) add("scatter", 1, { question, met }, scattered);
      return add("elsewhere", 1, met, (a, b) => (a === b ? elsewhere : 0));
    }
    // Of a column by itself the total counts as its noise is spread.
    const alone = given.length === 1 ? dot(given[0].column.alone, given[0].values) : null;
    add("", factor * (alone ?? this.outside(given, [])), null, () => this.totalVariance);
    for (const each of given) {
      const own = each.around(alone ?? this.meanOf(given, each));
      const together = (a, b) => dot(a.spread, b.centred);
      add(keyOf([each]), factor * this.outside(given, [each]), own, together);
    }
    for (const each of given.filter(({ cut }) => cut.length)) {
      const alone = this.ofRows([each]);
      const among = given.length === 1 ? 1 : alone > 0 ? this.ofRows(given) / alone : 0;
      const own = each.cut.map((part, code) => (part ? each.column.lumps[code] : 0));
      add(`cut ${keyOf([each])}`, factor * among, own, dot);
    }
    // Of four and more columns only what a table tells of them.
    const few = [...combinations(given, 2), ...combinations(given, 3)];
    for (const part of [...few, ...this.measured(given).filter((each) => each.length > 3)]) {
      const own = { part, density: part.length > 2 ? 1 : this.density(part) };
      add(keyOf(part), factor * this.outside(given, part), own, (a, b) => this.ofSeveral(a, b));
    }
    return found;
  }

  // What measured coefficients leave open, what is beyond them, and what is lost: `ViewsModel.lost`.
  ofSeveral(one, other) {
    const found = one.density * other.density * this.beyond(one.part, other.part);
    const look = this.looks.get(keyOf(one.part));
    if (!look) return found;
    const [a, b] = [one, other].map(({ part }) =>
      part.map((each, place) => each.inGroups(look.sizes[place]).parts));
    const times = (x, y) => x.map((each, place) => each.map((own, k) => own * y[place][k]));
    const lost = (x, taken = under(look.taken, x)) =>
      Math.sign(taken) * Math.sqrt(Math.max(taken ** 2 - under(look.removed, times(x, x)), 0));
    return found + under(look.variances, times(a, b)) + lost(a) * lost(b);
  }

  // Of features of weights, less what a table of groups answers of them.
  beyond(part, other) {
    const look = this.looks.get(keyOf(part));
    const kinds = [(each) => each.features];
    if (look) kinds.push((each, place) => each.featuresInGroups(look.sizes[place]));
    let found = 0;
    const field = this.distance(part) / product(part.map(({ column }) => column.reach ** 2));
    [this.records ** 2 * field, this.records].forEach((scale, law) => {
      for (const a of kinds) {
        for (const b of kinds) {
          const inner = part.map((own, i) => dot(a(own, i)[law], b(other[i], i)[law]));
          found += (a === b ? scale : -scale) * product(inner);
        }
      }
    });
    return found;
  }

  distance(part) {
    const pairs = () => combinations(part, 2).map((pair) => this.distance(pair));
    return this.distances[keyOf(part)]?.[0] ?? THIRD * Math.min(...pairs());
  }

  // How dense records of two columns are, as far as what is not known of them may be that large.
  density(part) {
    const [look, shares] = [this.looks.get(keyOf(part)), part.every(({ areShares }) => areShares)];
    // As large as noise lets their shares be.
    const possible = part.map((each) => Math.hypot(each.share, each.noise / this.records));
    const expected = Math.max(product(part.map(({ share }) => share)), 1e-12);
    const far = this.records ** 2 * product(part.map(({ spread }) => spread)) / 3;
    const [rows, ...most] = look ? this.whereCut(part, look)
      : [this.ofRows(part) / expected, largest(this.records, ...possible), far];
    const dense = Math.max(rows, product(possible) / expected);
    const density = shares ? dense : this.distances[keyOf(part)][1];
    const own = Math.max(density ** 2 * this.beyond(part, part), 1e-300);
    return density * Math.sqrt(shares ? Math.min(most[0] / own, 1) : most[1] / (own + most[1]));
  }

  // How densely records lie in groups of a table that conditions cut, and what variance it leaves.
  whereCut(part, { sizes, rows }) {
    const sides = part.map((each, place) => each.inGroups(sizes[place]));
    let [most, far, there, expected] = zeros(4);
    sides.forEach(({ means, within }, place) => {
      const [other, { share }] = [sides[1 - place], part[1 - place]];
      within.forEach((own, group) => {
        const at = (i) => (place ? i * sizes[1] + group : group * sizes[1] + i);
        const counts = other.means.map((_, i) => rows[at(i)]);
        const [records, both] = [sumOf(counts), dot(counts, other.means)];
        const squares = dot(counts, other.means.map((mean, i) => mean ** 2 + other.within[i]));
        most += own && largest(records, means[group], records > 0 ? both / records : 0);
        far += own * Math.max(records * squares - both ** 2, 0) / 3;
        there += own * both;
        expected += own * records * share;
      });
    });
    return [there / Math.max(expected, 1e-12), most, far];
  }
}

const PLACES = 40;
// Cells of a cross table, or groups: more would not be read, and take seconds.
const MOST_CELLS = 2500;

// A release that answers. A question has a kind, a level, columns by their places, and conditions:
// of each column codes, or bins from one to another; `among` of those that a share is taken of.
class Release {
  constructor(data) {
    this.data = data;
    this.columns = data.columns;
    this.model = data.model && new Model(data.model);
  }

  // What a question cannot have, in words, or null.
  refuse(question) {
    const { kind, column, rows, across } = question;
    const { numbers, pieces } = this.columns[column];
    const fits = kind.startsWith("mean") ? numbers : kind !== "quantile" || pieces;
    if (!fits) return "Choose a column of numbers, or of values in an order.";
    if (kind !== "means" && kind !== "cross") return null;
    const by = kind === "cross" ? [rows, across] : [rows];
    const groups = by.map((place) => this.columns[place].groups);
    const used = kind === "means" ? [...by, column] : by;
    if (new Set(used).size < 2 || !groups.every(Boolean)) return "Choose two different columns.";
    if (product(groups.map(({ length }) => length)) <= MOST_CELLS) return null;
    return `This table has more than ${english(MOST_CELLS)} cells. Ask for fewer, or use Python.`;
  }

  // The interval of an answer in words, unless nothing is known of errors.
  interval(level, lower, upper) {
    return this.data.estimated ? "estimated" : `${level}% interval: ${lower} to ${upper}`;
  }

  conditions(question, only = () => true) {
    return [...question.where].filter(([, condition]) => only(condition));
  }

  // Weights of the codes of a column, by the codes of the measured column that decides it.
  lifted(place, weights) {
    const { of, axis } = this.columns[place];
    const given = of ? Float64Array.from(of, (code) => weights[code]) : weights;
    return new Weights(this.model.columns[axis], given);
  }

  // The codes of a column that a condition covers; special values may lie among bins.
  covering(place, { codes, from, to }) {
    const { size, values, low, high } = this.columns[place];
    const found = zeros(size);
    const inside = (code) => low[from] <= low[code] && high[code] <= high[to];
    for (const code of codes || [...found.keys()].slice(0, values).filter(inside)) found[code] = 1;
    return this.lifted(place, found);
  }

  present(place) {
    return this.covering(place, { codes: [...Array(this.columns[place].values).keys()] });
  }

  answer(question) {
    const met = (only) =>
      this.conditions(question, only).map((each) => this.covering(...each)).reduce(and, []);
    const [asked, { column, level }] = [met(), question];
    if (question.kind === "count") return this.counted(asked, level);
    if (question.kind === "share") return this.share(met(({ among }) => among), asked, level);
    if (question.kind === "mean") return this.mean(and(asked, this.present(column)), column, level);
    if (question.kind === "quantile") return this.quantile(asked, column, question.q, level);
    const means = question.kind === "means";
    const by = means ? [question.rows] : [question.rows, question.across];
    const groups = by.map((place) => this.columns[place].groups);
    const vectors = by.map((place, i) =>
      groups[i].map(([, condition]) => this.covering(place, condition)));
    const each = vectors.reduce(
      (some, more) => some.flatMap((one) => more.map((weights) => and(one, weights))),
      [means ? and(asked, this.present(column)) : asked],
    );
    const of = (one) => (means ? this.mean(one, column, level) : this.counted(one, level));
    const cells = each.map(of);
    const texts = cells.map(({ text }) => text);
    return { cells, groups, text: texts.reduce((a, b) => (b.length > a.length ? b : a)) };
  }

  counted(asked, level) {
    const [law, value] = [this.data.levels[level], this.model.answer(asked)];
    const { std, below, above, cut } = this.model.reach(asked, law);
    const [lower, text] = [Math.max(value - below, 0), cut ? law.cut : law.counts];
    // All of it below zero: the end of the law of what is possible.
    const tail = -Math.log1p(-level / 100) / law.quantile ** 2;
    const least = value < 0 ? (tail * above ** 2) / -value : 0;
    return { value, std, lower, upper: value + above > 0 ? value + above : least, text };
  }

  // Ends of the interval of a function of two answers, over simulated releases: see `Functions`.
  simulated([count, value], [a, b, c], statistic, level, [least, most], more = "") {
    const { quantile, simulated } = this.data.levels[level];
    const factor = quantile / this.data.levels[95].quantile;
    const draws = this.data.draws.length / 2;
    const [one, other] = [0, draws].map((at) => this.data.draws.slice(at, at + draws));
    const [first, whole] = [Math.sqrt(a), Math.sqrt(c)];
    const shared = a > 0 ? clip(b / first, -whole, whole) : 0;
    const rest = c - shared ** 2 > 1e-12 * c ? Math.sqrt(c - shared ** 2) : 0;
    const drawn = one.map((z, d) => {
      const records = count + factor * first * z;
      // Where there are no records nothing is known: each of the bounds in turn.
      if (!(records > ROUNDING)) return [least, most][d % 2];
      const sum = value + factor * (shared * z + rest * other[d]);
      return clip(statistic(records, sum), least, most);
    });
    drawn.sort();
    const [lower, upper] = [0.025, 0.975].map((share) => {
      const place = share * (drawn.length - 1);
      const k = Math.floor(place);
      return drawn[k] + (place - k) * (drawn[k + 1] - drawn[k]);
    });
    const nothing = lower <= least && upper >= most && least < most;
    const text = simulated + more + (nothing ? this.data.nothing : "");
    return { std: (upper - lower) / (2 * quantile), lower, upper, text };
  }

  share(among, asked, level) {
    const values = [among, asked].map((each) => this.model.answer(each));
    const covariance = this.model.covariance(among, asked);
    const of = (count, both) => both / Math.max(count, ROUNDING);
    const value = values[0] > ROUNDING ? clip(of(...values), 0, 1) : NaN;
    return { value, ...this.simulated(values, covariance, of, level, [0, 1]) };
  }

  // The mean of a column among records that have a number in it.
  mean(asked, place, level) {
    const { axis, numbers } = this.columns[place];
    const held = asked.find(({ column }) => column.axis === axis);
    const times = (values) => {
      const own = held.once(values, () =>
        new Weights(held.column, held.given.map((each, code) => each * values[code])));
      return asked.map((each) => (each === held ? own : each));
    };
    const count = this.model.answer(asked);
    const total = this.model.answer(times(numbers.mean));
    const any = held.given.some((each) => each > 0);
    const ends = (values) => values.filter((_, code) => held.given[code] > 0 || !any);
    const low = ends(numbers.low).reduce((a, b) => Math.min(a, b));
    const high = ends(numbers.high).reduce((a, b) => Math.max(a, b));
    const value = count > ROUNDING ? clip(total / count, low, high) : NaN;
    const centre = Number.isNaN(value) ? (low + high) / 2 : value;
    const scale = high > low ? high - low : 1;
    const centred = times(numbers.mean.map((each) => (each - centre) / scale));
    const covariance = this.model.covariance(asked, centred);
    const reached = held.given.some((each, code) => each * numbers.reach[code] !== 0);
    const anywhere = reached ? Math.max(this.model.answer(times(numbers.reach)), 0) : 0;
    covariance[2] += (anywhere / scale) ** 2;
    const of = (records, sum) => centre + scale * (sum / Math.max(records, ROUNDING));
    const values = [count, (total - centre * count) / scale];
    const more = anywhere ? this.data.bins : "";
    return { value, ...this.simulated(values, covariance, of, level, [low, high], more) };
  }

  // See `quantiles`: what the interval holds are the codes up to which the share may lie.
  quantile(asked, place, share, level) {
    const column = this.columns[place];
    const { low, high, order, pieces, wide } = column;
    const counts = zeros(column.values).map((_, code) =>
      this.model.answer(and(asked, this.covering(place, { codes: [code] }))));
    const rising = withoutNegatives(counts, order);
    const value = rising.some((each) => each !== 0) ? valueBelow(pieces, rising, share) : NaN;
    const { quantile, simulated } = this.data.levels[level];
    const whole = sumOf(counts);
    const within = (values) => Array.from(order, (code) => values[code]);
    const balance = cumulated(within(counts)).map((each) => each - share * whole);
    const variances = this.variancesBelow(asked, place, share, cumulated(within(rising)));
    const reach = variances.map((each) => quantile * Math.sqrt(each));
    const possible = [...balance.keys()].filter((k) =>
      balance[k] + reach[k] >= 0 && (k === 0 || balance[k - 1] - reach[k - 1] <= 0));
    const ends = [possible[0] ?? 0, possible.at(-1) ?? order.length - 1];
    const everything = order.length > 1 && ends[0] === 0 && ends[1] === order.length - 1;
    let [lower, upper] = [low[order[ends[0]]], high[order[ends[1]]]];
    if (!Number.isNaN(value)) [lower, upper] = [Math.min(lower, value), Math.max(upper, value)];
    const std = column.bins ? (upper - lower) / (2 * quantile) : NaN;
    const text = simulated + (everything ? this.data.nothing : "") + (wide ? this.data.bins : "");
    return { value, std, lower, upper, text };
  }

  // Variance of the balance after each code: see `_variances` of quantiles.
  variancesBelow(asked, place, share, below) {
    const { size, order } = this.columns[place];
    const n = order.length;
    const wanted = [...Array(PLACES).keys()].map((i) => i / (PLACES - 1)).concat(share);
    const places = wanted.map((part) => firstAtLeast(below, part * below[n - 1] * (1 - ROUNDING)));
    const at = [...new Set(places)].sort((a, b) => a - b);
    const present = and(asked, this.present(place));
    const known = new Map(at.map((k) => {
      const own = zeros(size).fill(-share, 0, n);
      for (const code of order.subarray(0, k + 1)) own[code] = 1 - share;
      return [k, this.model.covariance(and(present, this.lifted(place, own)))[0]];
    }));
    // Elsewhere the larger one of the places on either side.
    return zeros(n).map((_, k) => {
      const before = at.findLast((each) => each <= k) ?? at[0];
      const after = at.find((each) => each >= k) ?? at.at(-1);
      return Math.max(known.get(before), known.get(after));
    });
  }
}

// The first place whose number is at least this, else the last one.
function firstAtLeast(values, wanted) {
  const found = values.findIndex((each) => each >= wanted);
  return found < 0 ? values.length - 1 : found;
}

// Counts whose running sums are the nearest to those of noisy ones that never fall.
function withoutNegatives(counts, order) {
  if (counts.every((each) => each >= 0)) return counts;
  const running = cumulated(Array.from(order, (code) => counts[code]));
  const total = running.at(-1);
  if (!(total > 0)) return counts.map((each) => Math.max(each, 0));
  const levels = [];
  for (const sum of running) {
    levels.push([sum, 1]);
    while (levels.length > 1 && levels.at(-2)[0] >= levels.at(-1)[0]) {
      const [[before, others], [value, weight]] = levels.splice(-2);
      levels.push([(before * others + value * weight) / (others + weight), others + weight]);
    }
  }
  // The last sum is the total, which is known best: no other one is larger.
  const rising = levels.flatMap(([value, weight]) => Array(weight).fill(clip(value, 0, total)));
  const found = zeros(counts.length);
  order.forEach((code, i) => (found[code] = rising[i] - (rising[i - 1] ?? 0)));
  return found;
}

// The value up to which a share of the counts lies. Pieces are parts of codes in the order of their
// numbers, which are even from the first to the last one of a piece, or so many points.
function valueBelow({ codes, parts, low, high, points }, counts, share) {
  const heights = Array.from(codes, (code, i) => counts[code] * parts[i]);
  const running = cumulated(heights);
  const target = share * running.at(-1);
  const at = firstAtLeast(running, target);
  const part = heights[at] > 0 ? clip((target - (running[at - 1] ?? 0)) / heights[at], 0, 1) : 0;
  if (!points[at]) return part < 1 ? low[at] + part * (high[at] - low[at]) : high[at];
  const steps = clip(Math.ceil(part * points[at]) - 1, 0, points[at] - 1);
  return low[at] + (steps && (steps * (high[at] - low[at])) / (points[at] - 1));
}

// The release of a page: its data as text, as Python wrote it, with all arrays in one of its texts.
export async function read(text) {
  const packed = Uint8Array.from(atob(JSON.parse(text).bytes), (each) => each.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const placed = (_, value) =>
    value?.array ? new KINDS[value.array](buffer, value.at, value.length) : value;
  return new Release(JSON.parse(text, placed));
}

// Formats are kept: making one takes longer than a cell of a table.
const FORMATS = {};

export function english(number, least = 0, most = least) {
  const options = { minimumFractionDigits: least, maximumFractionDigits: most };
  FORMATS[[least, most]] ??= new Intl.NumberFormat("en", options);
  return FORMATS[[least, most]].format(number);
}

const digits = (x) => {
  const few = Number(x.toPrecision(6));
  return Math.abs(few) >= 10000 ? english(few, 0, 6) : `${few}`;
};

// A text by itself: one that is written from right to left does not turn what follows it.
const TURNS = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufefc]/;
const alone = (text) => (TURNS.test(text) ? `\u2068${text}\u2069` : text);

export const short = (text, most = 60) =>
  alone(text.length > most ? `${text.slice(0, most - 1)}…` : text);

const isoDay = (days) => {
  const date = new Date(Math.floor(days) * 86400000);
  return Number.isNaN(date.getTime()) ? "unknown" : date.toISOString().slice(0, 10);
};

// The ends of a bin, in the words of the column.
export const endsOf = (column, bin) =>
  column.texts ? column.texts[bin] : [column.low[bin], column.high[bin]].map(digits);

// A number in the digits that its error leaves.
function rounded(number, error) {
  if (!Number.isFinite(number)) return "unknown";
  if (!(Number.isFinite(error) && error > 0)) return english(Number(number.toPrecision(6)), 0, 6);
  const decimals = clip(1 - Math.floor(Math.log10(error)), 0, 12);
  return english(Number(number.toFixed(decimals)) + 0, decimals);
}

// Texts of an answer: of its value and its ends, in the words of the column.
export function shown(release, { kind, column: place }, { value, lower, upper }) {
  const column = release.columns[place];
  // What is printed of an answer lies in its interval.
  const numbers = [Number.isFinite(value) ? clip(value, lower, upper) : value, lower, upper];
  if (kind === "quantile" && column.kind === "category") {
    return numbers.map((code) => column.labels[code] ?? "unknown");
  }
  const counted = ["count", "share", "cross"].includes(kind);
  if (!counted && column.kind === "date") return numbers.map(isoDay);
  if (kind === "quantile" && column.integer) {
    return numbers.map((x) => (Number.isFinite(x) ? digits(x) : "unknown"));
  }
  if (kind === "count" || kind === "cross") {
    // Whole people, with nothing of the interval cut off.
    return [Math.round(numbers[0]), Math.floor(lower), Math.ceil(upper)].map((x) => english(x));
  }
  const [scale, unit] = kind === "share" ? [100, "%"] : [1, ""];
  const reach = Math.max(upper - value, value - lower);
  const error = scale * (Number.isNaN(reach) ? upper - lower : reach);
  return numbers.map((x) => rounded(x * scale, error) + (Number.isFinite(x) ? unit : ""));
}

function conditionsWords(release, conditions) {
  const each = conditions.map(([place, { codes, from, to }]) => {
    const column = release.columns[place];
    const name = short(column.name, 40);
    if (!codes) {
      const [low, high] = [endsOf(column, from)[0], endsOf(column, to)[1]];
      return `${name} from ${low === high ? low : `${low} to ${high}`}`;
    }
    const labels = codes.map((code) => short(column.labels[code], 40));
    return `${name} ${short(labels.join(" or "), 200)}`;
  });
  return each.length ? ` with ${each.join(" and ")}` : "";
}

// What is asked, and the sentence that can be quoted.
export function inWords(release, question, answer) {
  const { kind, q, level } = question;
  const name = (place) => short(release.columns[place].name, 40);
  const words = (only) => conditionsWords(release, release.conditions(question, only));
  const [where, among] = [words(), words((each) => each.among)];
  const { counted: unit, epsilon } = release.data;
  const counted = unit ? `, counting ${unit}` : "";
  if (kind === "cross") {
    return `Records${where} by ${name(question.rows)} and ${name(question.across)}${counted}`;
  }
  if (kind === "means") {
    const of = where && `, of records${where}`;
    return `Mean of ${name(question.column)} by ${name(question.rows)}${of}${counted}`;
  }
  const [value, lower, upper] = shown(release, question, answer);
  const statistic = kind === "mean" ? "mean" : q === 0.5 ? "median" : `${q} quantile`;
  const met = words((each) => !each.among);
  const what = {
    count: `number of records${where}`,
    share: `share of records${met} among ${among ? `those${among}` : "all records"}`,
  }[kind] ?? `${statistic} of ${name(question.column)} of the records${where}`;
  const cost = `differentially private${epsilon ? `, epsilon ${epsilon}` : ""}`;
  const source = `According to “${short(release.title, 120)}” (${cost})`;
  const interval = release.interval(level, lower, upper);
  return `${source}, the ${what} is about ${value}${counted} (${interval}).`;
}

// JSON's escapes are Python's.
function conditionLiteral({ texts, low, high, last, literals, values, bins }, { codes, from, to }) {
  if (!codes && texts) return `(${JSON.stringify(texts[from][0])}, ${JSON.stringify(texts[to][1])})`;
  if (!codes) return `(${low[from]}, ${(last ?? high)[to]})`;
  const each = codes.map((code) => (code < values ? literals[code - bins] : "None"));
  return each.length === 1 ? each[0] : `[${each.join(", ")}]`;
}

// The call that gives the same answer.
export function python(release, question) {
  const { kind, level } = question;
  const column = (key) => release.columns[question[key]];
  const name = (key) => JSON.stringify(column(key).name);
  const query = (only) => {
    const each = release.conditions(question, only).map(([place, condition]) => {
      const of = release.columns[place];
      return `${JSON.stringify(of.name)}: ${conditionLiteral(of, condition)}`;
    });
    return each.length ? `{${each.join(", ")}}` : "None";
  };
  const bands = (...keys) => {
    const banded = keys.filter((key) => column(key).bands);
    const each = banded.map((key) => `${name(key)}: ${column(key).bands}`);
    return each.length ? `, bands={${each.join(", ")}}, right=False` : "";
  };
  const call = {
    count: `count(${query()}`,
    share: `proportion(${query()}, ${query((each) => each.among)}`,
    mean: `mean(${name("column")}, ${query()}`,
    quantile: `quantile(${name("column")}, ${question.q}, ${query()}`,
    cross: `crosstab(${name("rows")}, ${name("across")}, ${query()}${bands("rows", "across")}`,
    means: `aggregate(${name("rows")}, ${name("column")}, ${query()}${bands("rows")}`,
  }[kind];
  const interval = `, return_interval=True${level === 95 ? "" : `, level=${level / 100}`}`;
  return `release.${call}${release.data.estimated ? "" : interval})`;
}
