// The page of a release: reads the numbers that it holds, and answers questions about them.
// Everything here is computed from the release alone, which is post-processing: asking costs no
// privacy, and no question leaves the page. What is called rows are synthetic rows of the release.
// It repeats `ViewsModel`, `ColumnEstimate` and the statistics of a `Synopsis` in Python, in the same
// order and with the same names; tests/release/test_page.py compares the two. `desk.mjs` draws.

// ---------------------------------------------------------------- small helpers for arrays

const zeros = (n) => new Float64Array(n);
const ones = (n) => new Float64Array(n).fill(1);
const product = (values) => values.reduce((a, b) => a * b, 1);

const sumOf = (values) => values.reduce((a, b) => a + b, 0);
const sizeOf = (values) => values.reduce((a, b) => Math.max(a, Math.abs(b)), 0);

function dot(a, b) {
  let found = 0;
  for (let i = 0; i < a.length; i += 1) found += a[i] * b[i];
  return found;
}

function combinations(items, size) {
  if (size === 0) return [[]];
  return items.flatMap((item, i) => combinations(items.slice(i + 1), size - 1).map((rest) => [item, ...rest]));
}

// Tables of several axes: numbers in C order, and a shape.

const table = (shape, data = zeros(product(shape))) => ({ shape, data });

// Multiply a matrix, given by its rows, along one axis of a table.
function along(matrix, cells, place) {
  const shape = [...cells.shape];
  const inner = product(shape.slice(place + 1));
  const outer = product(shape.slice(0, place));
  const n = shape[place];
  const m = matrix.length;
  shape[place] = m;
  const found = table(shape);
  for (let o = 0; o < outer; o += 1) {
    for (let r = 0; r < m; r += 1) {
      const row = matrix[r];
      const to = (o * m + r) * inner;
      for (let k = 0; k < n; k += 1) {
        const factor = row[k];
        if (factor !== 0) {
          const from = (o * n + k) * inner;
          for (let i = 0; i < inner; i += 1) found.data[to + i] += factor * cells.data[from + i];
        }
      }
    }
  }
  return found;
}

const outer = (vectors) =>
  vectors.reduce((found, vector) => {
    const column = Array.from(vector, (each) => [each]);
    return along(column, table([found.length, 1], found), 1).data;
  }, ones(1));

const BASES = new Map();

// Orthonormal functions of units: a row for each unit, a column for each function.
function basisOf(sizes) {
  const key = sizes.join();
  if (BASES.has(key)) return BASES.get(key);
  const units = sizes[sizes.length - 1];
  const rows = Array.from({ length: units }, () => new Array(units).fill(0));
  for (const row of rows) row[0] = 1 / Math.sqrt(units);
  let first = 1;
  for (let level = 1; level < sizes.length; level += 1) {
    const coarse = sizes[level - 1];
    const fine = sizes[level];
    const parts = fine / coarse;
    const width = units / fine;
    for (let group = 0; group < coarse; group += 1) {
      for (let column = 0; column < parts - 1; column += 1) {
        const length = Math.sqrt(column + 1 + (column + 1) ** 2) * Math.sqrt(width);
        for (let part = 0; part <= column + 1; part += 1) {
          const value = (part <= column ? 1 : -(column + 1)) / length;
          for (let i = 0; i < width; i += 1) {
            rows[(group * parts + part) * width + i][first] = value;
          }
        }
        first += 1;
      }
    }
  }
  BASES.set(key, rows);
  return rows;
}

// ---------------------------------------------------------------- columns

function means(values, size) {
  const width = values.length / size;
  const found = zeros(size);
  for (let i = 0; i < values.length; i += 1) found[Math.floor(i / width)] += values[i];
  for (let i = 0; i < size; i += 1) found[i] /= width;
  return found;
}

// Counts of a column and their covariance: see `ColumnEstimate`.
class Column {
  constructor(facts, counts, finer, codes) {
    this.sizes = facts.blocks;
    this.lattice = this.sizes[this.sizes.length - 1];
    this.variances = facts.variances;
    this.totalVariance = facts.total_variance;
    this.counts = counts;
    this.codes = codes;
    this.scales = this.scaleVariances();
    let at = 0;
    for (let place = 2; place < this.sizes.length; place += 1) {
      const stop = at + this.scales[place].length;
      this.scales[place] = finer.subarray(at, stop);
      at = stop;
    }
    this.inside = codes === null ? counts.length : codes.length;
    this.lowered = null;
    this.shares = null;
  }

  scaleVariances() {
    return this.sizes.map((size, place) => {
      let precision = 0;
      for (const [finer, each] of this.variances) {
        if (finer >= size) precision += this.lattice / (finer * each);
      }
      if (size === 1) precision += this.lattice / this.totalVariance;
      return zeros(this.sizes[Math.max(place - 1, 0)]).fill(1 / precision);
    });
  }

  join(ladder, variances) {
    if (this.counts.length > 65536) return;
    const basis = basisOf(ladder.sizes);
    const unit = this.codes === null ? ladder.units : this.codes.map((code) => ladder.units[code]);
    // Each function measured, less what those before it tell of it.
    const lowered = [];
    for (let i = 0; i < variances.length; i += 1) {
      const asked = Float64Array.from(unit, (each) => basis[each][i + 1]);
      const row = this.covered(asked);
      for (const before of lowered) {
        const factor = dot(asked, before);
        for (let c = 0; c < row.length; c += 1) row[c] -= factor * before[c];
      }
      const length = Math.sqrt(dot(asked, row) + variances[i]);
      lowered.push(row.map((each) => each / length));
    }
    const back = this.covered(ones(this.inside));
    const scale = Math.sqrt(sumOf(lowered.map((row) => sumOf(row) ** 2))) / sumOf(back);
    this.lowered = lowered;
    this.restored = back.map((each) => each * scale);
  }

  beyond() {
    if (this.shares === null) {
      const outside = zeros(this.lattice).fill(1, this.inside);
      const spread = this.spread(outside, [zeros(1), ...this.scales.slice(1)]);
      const all = dot(outside, spread);
      this.shares = spread.slice(0, this.inside).map((each) => -each / all);
    }
    return this.shares;
  }

  covered(weights) {
    const padded = zeros(this.lattice);
    padded.set(weights);
    if (this.inside === this.lattice) return this.spread(padded, this.scales);
    const shares = this.beyond();
    padded.fill(dot(shares, weights), this.inside);
    const found = this.spread(padded, this.scales);
    const rest = sumOf(found.subarray(this.inside));
    return found.slice(0, this.inside).map((each, i) => each + shares[i] * rest);
  }

  spread(weights, scales) {
    const levels = [weights];
    for (let place = this.sizes.length - 2; place >= 0; place -= 1) {
      levels.push(means(levels[levels.length - 1], this.sizes[place]));
    }
    levels.reverse();
    let found = zeros(1);
    let coarse = zeros(1);
    levels.forEach((mean, place) => {
      const ratio = mean.length / coarse.length;
      const wide = mean.length / scales[place].length;
      const next = zeros(mean.length);
      for (let i = 0; i < mean.length; i += 1) {
        const parent = Math.floor(i / ratio);
        const detail = place ? mean[i] - coarse[parent] : mean[i];
        next[i] = found[parent] + detail * scales[place][Math.floor(i / wide)];
      }
      found = next;
      coarse = mean;
    });
    return found;
  }

  // Covariance of the counts with a weighted sum of them.
  covariance(allWeights) {
    const weights = this.codes === null ? allWeights : Float64Array.from(this.codes, (code) => allWeights[code]);
    const found = this.covered(weights);
    if (this.lowered !== null) {
      for (const row of this.lowered) {
        const part = dot(row, weights);
        for (let i = 0; i < found.length; i += 1) found[i] -= part * row[i];
      }
      const part = dot(this.restored, weights);
      for (let i = 0; i < found.length; i += 1) found[i] += part * this.restored[i];
    }
    if (this.codes === null) return found;
    const whole = zeros(allWeights.length);
    this.codes.forEach((code, i) => {
      whole[code] = found[i];
    });
    return whole;
  }
}

const WHOLE = 1e-9;

// Products w (1 - w) at the codes that a range covers in part, or null: see `cut_shares`.
function cutShares(weights) {
  const inside = weights.map((w) => (w > WHOLE && w < 1 - WHOLE ? w * (1 - w) : 0));
  const number = inside.reduce((n, each) => n + Number(each > 0), 0);
  return number > 0 && number <= 2 && weights.every((w) => w >= 0 && w <= 1) ? inside : null;
}

// Weights of the codes of a column: means of groups, and features of them; see `ColumnBasis`.
class Basis {
  constructor(counts, ladder) {
    const mass = counts.map((each) => Math.max(each, 0) + 1e-9 / counts.length);
    const whole = sumOf(mass);
    this.mass = mass.map((each) => each / whole);
    this.ladder = ladder;
    const n = ladder.ordered;
    this.share = sumOf(this.mass.subarray(0, n));
    let rank = 0;
    let before = 0;
    this.steps = this.mass.subarray(0, n).map((each) => {
      rank += each;
      const angle = Math.asin(Math.sqrt(Math.min(rank / this.share, 1)));
      const step = Math.sqrt(((angle - before) * 2) / Math.PI);
      before = angle;
      return step;
    });
    this.averages = new Map();
    this.even = this.evenly();
  }

  // Features of the field, and of what independent records do by chance.
  features(weights, cut) {
    const mean = dot(this.mass, weights);
    const size = weights.length;
    const apart = zeros(2 * size);
    for (let code = 0; code < size; code += 1) apart[code] = Math.sqrt(this.mass[code]) * (weights[code] - mean);
    if (cut) for (let code = 0; code < size; code += 1) apart[size + code] = Math.sqrt(this.mass[code] * cut[code]);
    const n = this.steps.length;
    if (!n) return [apart, apart];
    const middle = dot(this.mass.subarray(0, n), weights) / this.share;
    const field = zeros(3 * n + (n < size ? size - n + 1 : 0));
    let sum = 0;
    for (let code = 0; code < n; code += 1) {
      const inside = this.mass[code] * (weights[code] - middle);
      sum += inside;
      field[code] = Math.sqrt(12) * this.steps[code] * (sum - inside / 2);
      field[n + code] = this.steps[code] * inside;
      if (cut) field[2 * n + code] = 2 * this.steps[code] * this.mass[code] * cut[code];
    }
    if (n < size) {
      field.set(apart.subarray(n, size), 3 * n);
      field[field.length - 1] = Math.sqrt(this.share) * (middle - mean);
    }
    return [field, apart];
  }

  average(size) {
    if (!this.averages.has(size)) {
      const { units, sizes, n } = this.ladder;
      const group = Int32Array.from(units, (unit) => Math.floor(unit / (n / size)));
      const whole = zeros(size);
      group.forEach((each, code) => {
        whole[each] += this.mass[code];
      });
      // Groups without codes have the weight of those around them.
      const filled = whole.map((each) => Number(each > 0));
      const near = [];
      for (const level of sizes.filter((each) => each < size).reverse()) {
        const wide = size / level;
        for (let place = 0; place < size; place += 1) {
          const first = Math.floor(place / wide) * wide;
          const around = whole.subarray(first, first + wide);
          if (!filled[place] && !near[place] && sumOf(around) > 0) near[place] = { first, around };
        }
      }
      this.averages.set(size, { group, near, shares: this.mass.map((each, code) => each / whole[group[code]]) });
    }
    return this.averages.get(size);
  }

  // Mean weights of groups of codes.
  means(weights, size) {
    const { group, near, shares } = this.average(size);
    const found = zeros(size);
    for (let code = 0; code < weights.length; code += 1) found[group[code]] += shares[code] * weights[code];
    const means = found.slice();
    near.forEach(({ first, around }, place) => {
      found[place] = dot(around, means.subarray(first, first + around.length)) / sumOf(around);
    });
    return found;
  }

  within(weights, size) {
    const means = this.means(weights, size);
    return Float64Array.from(this.average(size).group, (each) => means[each]);
  }

  coefficients(weights, size) {
    const means = this.means(weights, size);
    const { sizes, n } = this.ladder;
    const functions = basisOf(sizes.slice(0, sizes.indexOf(size) + 1));
    const found = zeros(size);
    for (let i = 0; i < size; i += 1) {
      if (means[i] !== 0) for (let k = 0; k < size; k += 1) found[k] += functions[i][k] * means[i];
    }
    return found.map((each) => each * Math.sqrt(n / size)).subarray(1);
  }

  // Shares of the codes if all units count alike.
  evenly() {
    const { n } = this.ladder;
    const { group, near, shares } = this.average(n);
    const counted = zeros(n);
    for (let unit = 0; unit < n; unit += 1) {
      if (!near[unit]) counted[unit] += 1;
      else {
        const { first, around } = near[unit];
        const all = sumOf(around);
        around.forEach((each, i) => {
          counted[first + i] += each / all;
        });
      }
    }
    return shares.map((each, code) => (each * counted[group[code]]) / n);
  }
}

// ---------------------------------------------------------------- the model

const [THIRD, HEAP] = [0.1, 0.3];
const ROUNDING = 1e-9;
const PROMISE = "The interval is made to contain the true answer with a probability of ";
const AFFINE = 1e-5;
const MOST_DENSE = 1 << 20;

// Gives an array part by part.
function cutter(array) {
  let at = 0;
  return (n) => {
    at += n;
    return array.subarray(at - n, at);
  };
}

// Variance of the number of records that meet two conditions, if of each only the share is known.
function largest(records, a, b) {
  const far = Math.max(Math.min(a, b) - a * b, a * b - Math.max(a + b - 1, 0));
  return Math.max(records * far, 1) ** 2 / 3;
}

// Weighted rows, and the coefficients of everything measured: see `ViewsModel`.
// Weights are a Map from axis to a vector of codes, ascending.
export class Model {
  constructor(facts, arrays, shape) {
    this.shape = shape;
    this.cells = facts.cells;
    this.rows = shape.map((_, axis) => arrays[`rows${axis}`]);
    this.masses = arrays.row_weights;
    this.caches = new Map();
    this.left = new Map();
    this.vary = [];
    this.names = new WeakMap();
    this.named = 0;
    this.possible = new Map();
    const masks = cutter(arrays.possible || new Uint8Array(0));
    for (const axes of facts.possible) {
      const sizes = axes.map((axis) => shape[axis]);
      this.possible.set(axes.join(), { axes, mask: table(sizes, masks(product(sizes))) });
    }
    const cutters = (names, before = "") =>
      Object.fromEntries(names.map((name) => [name, cutter(arrays[before + name] || zeros(0))]));
    const cut = cutters(["counts", "units", "finer", "margin_variances"]);
    this.columns = new Map();
    this.bases = new Map();
    for (const each of facts.columns) {
      const size = shape[each.axis];
      const allowed = this.possible.get(`${each.axis}`);
      const codes = allowed ? [...Array(size).keys()].filter((code) => allowed.mask.data[code]) : null;
      const ladder = { units: cut.units(size), sizes: each.groups, ordered: each.ordered };
      ladder.n = ladder.sizes[ladder.sizes.length - 1];
      const n = sumOf(each.blocks.slice(1, -1));
      const column = new Column(each, cut.counts(size), cut.finer(n), codes);
      if (each.looks) column.join(ladder, cut.margin_variances(each.looks));
      this.columns.set(each.axis, column);
      this.bases.set(each.axis, new Basis(column.counts, ladder));
    }
    // Of each measured set: how much is added to the rows, what is left open, and its scale.
    this.looks = new Map();
    const parts = cutters(["corrected", "believed_variances"]);
    facts.looks.forEach(([axes, sizes]) => {
      if (axes.length < 2) return;
      const [added, variances] = Object.values(parts).map((each) => table(sizes, each(product(sizes))));
      this.looks.set(axes.join(), { sizes: sizes.map((each) => each + 1), added, variances });
    });
    this.scales = new Map([...this.looks.keys()].map((axes, i) => [axes, facts.scales[i]]));
    [this.unmeasured, this.reaches] = [facts.unmeasured, facts.reaches];
    this.total = facts.total;
    this.totalVariance = facts.total_variance;
    this.sums = new Map();
    const cutSums = cutters(["values", "has_value", "missing", "sums", "n_missing"], "sums_");
    for (const [axis, by, ...variances] of facts.sums) {
      const each = { variances };
      for (const name of ["values", "has_value", "missing"]) each[name] = cutSums[name](shape[axis]);
      for (const name of ["sums", "n_missing"]) each[name] = cutSums[name](shape[by]);
      this.sums.set(`${axis},${by}`, each);
    }
  }

  cached(key, make) {
    if (!this.caches.has(key)) this.caches.set(key, make());
    return this.caches.get(key);
  }

  part(weights) {
    let factor = 1;
    let left = new Map();
    for (const [axis, vector] of weights) {
      const { even, masked } = this.remembered(vector, `inside ${axis}`, () => this.inside(axis, vector));
      if (masked === null) factor *= even;
      else left.set(axis, masked);
    }
    if (!this.allowed(left)) factor = 0;
    if (!factor) left = new Map();
    return { factor, weights: left };
  }

  // The number that all weights of possible codes are, or weights that are 0 at other codes.
  inside(axis, vector) {
    const allowed = this.possible.get(`${axis}`);
    const kept = allowed ? vector.filter((_, code) => allowed.mask.data[code]) : vector;
    if (!this.columns.has(axis) || kept.every((each) => each === kept[0])) return { even: kept[0], masked: null };
    return { masked: allowed ? vector.map((each, code) => (allowed.mask.data[code] ? each : 0)) : vector };
  }

  remembered(vector, key, make) {
    if (!this.names.has(vector)) {
      this.named += 1;
      this.names.set(vector, { id: this.named, known: new Map() });
    }
    const { known } = this.names.get(vector);
    if (!known.has(key)) known.set(key, make());
    return known.get(key);
  }

  idOf(vector) {
    return this.remembered(vector, "id", () => this.names.get(vector).id);
  }

  allowed(weights) {
    for (const { axes, mask } of this.possible.values()) {
      if (axes.length > 1 && axes.every((axis) => weights.has(axis))) {
        const [first, ...rest] = axes.map((axis) => this.remembered(weights.get(axis), "chosen", () =>
          weights.get(axis).map((each) => (each === 0 ? 0 : 1))));
        const left = this.remembered(first, `allowed ${axes}`, () => along([first], mask, 0).data);
        if (dot(rest.length > 1 ? outer(rest) : rest[0], left) === 0) return false;
      }
    }
    return true;
  }

  // Sums of masses of rows in each cell of some columns, of so many groups (null: of codes).
  sumsOfRows(axes, grouped, masses) {
    const cells = new Int32Array(masses.length);
    let number = 1;
    axes.forEach((axis, place) => {
      const [size, group] = grouped(axis, place);
      const codes = this.rows[axis];
      number *= size;
      if (group === null) for (let row = 0; row < cells.length; row += 1) cells[row] = cells[row] * size + codes[row];
      else for (let row = 0; row < cells.length; row += 1) cells[row] = cells[row] * size + group[codes[row]];
    });
    const found = zeros(number);
    for (let row = 0; row < cells.length; row += 1) found[cells[row]] += masses[row];
    return found;
  }

  rowCounts(axis) {
    return this.cached(`rows ${axis}`, () => this.added([axis], [], null));
  }

  columnResidual(axis) {
    const rows = this.rowCounts(axis);
    const { counts } = this.columns.get(axis);
    return this.cached(`column ${axis}`, () => counts.map((each, code) => each - this.total * rows[code]));
  }

  measured(axes) {
    return this.cached(`measured ${axes}`, () =>
      [...axes.keys()]
        .flatMap((more) => (more ? combinations(axes, more + 1) : []))
        .filter((part) => this.looks.has(part.join())),
    );
  }

  answer(question) {
    const { factor, weights } = this.part(question);
    return factor ? factor * this.answered([...weights.keys()], weights) : 0;
  }

  answered(axes, weights) {
    if (!axes.length) return this.total;
    if (this.cells !== null) return this.total * this.ofRows(axes, weights);
    if (axes.length === 1) return dot(this.columns.get(axes[0]).counts, weights.get(axes[0]));
    let found = this.total * this.ofRows(axes, weights);
    found += this.corrections(axes, weights, found);
    for (const [axis, by] of bothWays(axes)) {
      if (this.sums.has(`${axis},${by}`)) found = this.summed(axis, by, weights, found);
    }
    return found;
  }

  summed(axis, by, weights, others) {
    const known = this.sums.get(`${axis},${by}`);
    const { found, fits } = this.told(known, weights.get(axis));
    if (!fits) return others;
    const [whole, ofValue, none] = found;
    const w = weights.get(by);
    const told = whole * dot(this.columns.get(by).counts, w) + ofValue * dot(known.sums, w);
    return told + (none - whole) * dot(known.n_missing, w);
  }

  // Weights as those of records with a value, of the value, and of others: least squares.
  told(known, weights) {
    const { values, has_value: has, missing } = known;
    const at = (mask) => [...weights.keys()].filter((code) => mask[code]);
    const inside = at(has);
    const average = (codes, of) => codes.reduce((a, c) => a + of[c], 0) / Math.max(codes.length, 1);
    const middle = average(inside, values);
    const level = average(inside, weights);
    const away = inside.map((code) => values[code] - middle);
    const square = dot(away, away);
    const cross = sumOf(inside.map((code, i) => away[i] * (weights[code] - level)));
    // Values that are all the same: of the many solutions the smallest.
    const flat = square === 0 && middle !== 0;
    const slope = flat ? level / 2 / middle : square > 0 ? cross / square : 0;
    const whole = flat ? level / 2 : level - slope * middle;
    const none = average(at(missing), weights);
    const off = weights.map((each, i) => has[i] * whole + values[i] * slope + missing[i] * none - each);
    return { found: [whole, slope, none], fits: sizeOf(off) <= AFFINE * sizeOf(weights) };
  }

  hats(part, weights) {
    const { sizes } = this.looks.get(part.join());
    return part.map((axis, place) => {
      const [vector, size] = [weights.get(axis), sizes[place]];
      return this.remembered(vector, `hats ${axis} ${size}`, () => this.bases.get(axis).coefficients(vector, size));
    });
  }

  // How weights of a column count where it is not looked at: see `_Column.mean`.
  meanOf(axis, vector, axes) {
    const law = this.looks.has(axes.join()) ? "even" : "mass";
    return this.remembered(vector, `${law} ${axis}`, () => dot(this.bases.get(axis)[law], vector));
  }

  corrections(axes, weights, rows) {
    const outside = this.outside(axes, weights);
    let found = 0;
    for (const axis of axes) {
      const residual = this.columnResidual(axis);
      const whole = this.cached(`residual sum ${axis}`, () => sumOf(residual));
      const vector = weights.get(axis);
      const own = this.remembered(vector, `residual ${axis}`, () => dot(residual, vector));
      found += (own - this.meanOf(axis, vector, axes) * whole) * outside([axis]);
    }
    for (const part of this.measured(axes)) {
      found += under(this.looks.get(part.join()).added, this.hats(part, weights)) * outside(part);
    }
    const plain = axes.every((axis) => weights.get(axis).every((each) => each >= 0));
    return this.isShared(axes) && plain ? Math.max(found, -rows) : found;
  }

  isShared(axes) {
    return axes.length > 2 && !this.looks.has(axes.join());
  }

  // How much of an error of some columns meets the conditions on the others: see `Asked.outside`.
  outside(axes, weights) {
    const shared = this.isShared(axes);
    const on = (axis) => this.remembered(weights.get(axis), "on", () => {
      const each = weights.get(axis);
      const least = ROUNDING * sizeOf(each);
      return each.every((w) => w === 0 || w === 1) ? each : each.map((w) => Number(Math.abs(w) > least));
    });
    const rows = Math.max(this.total, 1);
    return (part) => {
      const others = axes.filter((axis) => !part.includes(axis));
      const means = product(others.map((axis) => this.meanOf(axis, weights.get(axis), axes)));
      if (!shared || !part.length || !others.length) return means;
      const kept = new Map(axes.map((axis) => [axis, part.includes(axis) ? on(axis) : weights.get(axis)]));
      const meeting = new Map(part.map((axis) => [axis, on(axis)]));
      return (rows * this.ofRows(axes, kept) + means) / (rows * this.ofRows(part, meeting) + 1);
    };
  }

  // Share of the rows under weights. The rows are added up over all axes but those whose weights
  // change within a question (`vary`), once for the weights of the others.
  ofRows(axes, weights) {
    const kept = axes.filter((axis) => this.vary.includes(axis)).slice(0, 2);
    if (kept.length === 2 && this.shape[kept[0]] * this.shape[kept[1]] > MOST_DENSE) kept.pop();
    if (!kept.length) kept.push(axes[axes.length - 1]);
    const others = axes.filter((axis) => !kept.includes(axis));
    const key = `${kept}:${others.map((axis) => `${axis}#${this.idOf(weights.get(axis))}`)}`;
    if (!this.left.has(key)) {
      if (this.left.size > 200) this.left.clear();
      this.left.set(key, this.added(kept, others, weights));
    }
    const left = this.left.get(key);
    const last = weights.get(kept[kept.length - 1]);
    if (kept.length === 1) return dot(left, last);
    const first = weights.get(kept[0]);
    const cells = table([first.length, last.length], left);
    return dot(this.remembered(first, `rows ${key}`, () => along([first], cells, 0)).data, last);
  }

  added(kept, others, weights) {
    let masses = this.masses;
    for (const axis of others) {
      const codes = this.rows[axis];
      const vector = weights.get(axis);
      const next = zeros(masses.length);
      for (let row = 0; row < next.length; row += 1) next[row] = masses[row] * vector[codes[row]];
      masses = next;
    }
    return this.sumsOfRows(kept, (axis) => [this.shape[axis], null], masses);
  }

  // Variances and covariance of two answers: see `ViewsModel.covariances`.
  covariance(first, second) {
    return [this.errors(first, first), this.errors(first, second), this.errors(second, second)];
  }

  variance(question) {
    return Math.max(this.errors(question, question), 0);
  }

  errors(first, second) {
    const questions = first === second ? [first] : [first, second];
    let parts = questions.map((each) => this.part(each));
    if (this.cells !== null) return this.errorsOfCells(parts);
    const reduced = parts.map((part) => this.withoutSums(part));
    parts = reduced.map(([part]) => part);
    const two = (values) => values[0] * values[values.length - 1];
    const summed = reduced.map(([, each]) => each);
    let found = 0;
    if (summed.every((each) => each !== null) && summed.every(({ key }) => key === summed[0].key)) {
      found += dot(summed[0].features, summed[summed.length - 1].features);
    }
    const asked = parts.map(({ factor, weights }) => {
      const axes = [...weights.keys()];
      const alone = axes.length === 1;
      const outside = alone
        ? (part) => (part.length ? 1 : this.meanAlone(axes[0], weights.get(axes[0])))
        : this.outside(axes, weights);
      return { weights, times: (part) => factor * outside(part), alone };
    });
    const shared = [...asked[0].weights.keys()].filter((axis) => asked.every(({ weights }) => weights.has(axis)));
    for (const axis of shared) {
      const cuts = parts.map((part) => this.cut(axis, part));
      if (cuts.every((each) => each !== null)) found += dot(cuts[0], cuts[cuts.length - 1]);
    }
    // Of four and more columns only what a table tells of them.
    const few = [0, 1, 2, 3].flatMap((order) => combinations(shared, order));
    for (const part of [...few, ...this.measured(shared).filter((each) => each.length > 3)]) {
      const terms = asked.map((each) => this.term(part, each));
      found += two(asked.map(({ times }) => times(part))) * this.together(part, terms);
    }
    return found;
  }

  cutShares(vector) {
    return this.remembered(vector, "cut", () => cutShares(vector));
  }

  // The parts of codes that ranges cover in part, among the records that meet the others.
  cut(axis, { factor, weights }) {
    const cut = this.cutShares(weights.get(axis));
    if (cut === null) return null;
    const { counts } = this.columns.get(axis);
    const alone = this.ofRows([axis], new Map([[axis, weights.get(axis)]]));
    const among = weights.size === 1 ? 1 : alone > 0 ? this.ofRows([...weights.keys()], weights) / alone : 0;
    const at = (code) => Math.max(counts[code], 0);
    return cut.map((each, code) => {
      if (!each) return 0;
      const near = [code - 1, code + 1].filter((c) => c >= 0 && c < counts.length);
      const steps = near.map((c) => Math.abs(at(c) - at(code)) / Math.max(at(c) + at(code), 1e-300));
      return factor * among * Math.sqrt(HEAP) * Math.max(0, ...steps) * at(code);
    });
  }

  // Where the rows are the counts of all columns together.
  errorsOfCells(parts) {
    const met = parts.map(({ factor, weights }) => {
      const found = zeros(this.masses.length).fill(factor);
      for (const [axis, vector] of weights) {
        const codes = this.rows[axis];
        for (let row = 0; row < found.length; row += 1) found[row] *= vector[codes[row]];
      }
      return found;
    });
    return this.cells[0] * dot(met[0], met[met.length - 1]) + (met.length === 1 ? this.cells[1] : 0);
  }

  // How weights of a column by itself count for its total: as its noise is spread.
  meanAlone(axis, vector) {
    const spread = this.cached(`spread ${axis}`, () => this.columns.get(axis).covariance(ones(this.shape[axis])));
    return dot(spread, vector) / sumOf(spread);
  }

  // What the covariance of a set of columns is made from, of one product of weights.
  term(part, { weights, alone }) {
    if (!part.length) return null;
    if (part.length > 1) return { hats: this.looks.has(part.join()) && this.hats(part, weights), ...this.fine(part, weights) };
    const [axis] = part;
    const vector = weights.get(axis);
    const mean = alone ? this.meanAlone(axis, vector) : this.meanOf(axis, vector, [...weights.keys()]);
    return this.remembered(vector, `term ${axis} ${mean}`, () => {
      const centred = vector.map((each) => each - mean);
      return { centred, spread: this.columns.get(axis).covariance(centred) };
    });
  }

  // Features of weights, and of what tables of groups answer of them; and how dense records are.
  fine(part, weights) {
    const look = this.looks.get(part.join());
    const features = part.map((axis, place) => {
      const vector = weights.get(axis);
      const basis = this.bases.get(axis);
      const of = (key, make) => this.remembered(vector, `features ${axis} ${key}`, make);
      const whole = of("", () => basis.features(vector, this.cutShares(vector)));
      if (!look) return [whole];
      const size = look.sizes[place];
      return [whole, of(size, () => basis.features(basis.within(vector, size), null))];
    });
    const shares = part.length === 2 && this.shares(part, weights);
    if (!shares) return { features, density: 1 };
    const possible = shares.map((each) => each.possible);
    const rows = this.ofRows(part, new Map(part.map((axis) => [axis, weights.get(axis)])));
    const density = Math.max(rows, product(possible)) / Math.max(product(shares.map(({ share }) => share)), 1e-12);
    const most = look ? this.leftByTable(part, weights, look.sizes) : largest(Math.max(this.total, 1), ...possible);
    const own = density ** 2 * this.beyond(part, [features]);
    return { features, density: density * Math.sqrt(Math.min(most / Math.max(own, 1e-300), 1)) };
  }

  together(part, terms) {
    if (!part.length) return this.totalVariance;
    const [one, other] = [terms[0], terms[terms.length - 1]];
    if (part.length === 1) return dot(one.spread, other.centred);
    let found = one.density * other.density * this.beyond(part, terms.map(({ features }) => features));
    if (one.hats) {
      const squares = one.hats.map((hat, place) => hat.map((each, k) => each * other.hats[place][k]));
      found += under(this.looks.get(part.join()).variances, squares);
    }
    return found;
  }

  beyond(part, both) {
    const [one, other] = [both[0], both[both.length - 1]];
    const kinds = [...one[0].keys()];
    let found = 0;
    [Math.max(this.total, 1) ** 2 * this.scale(part), Math.max(this.total, 1)].forEach((scale, law) => {
      for (const a of kinds) {
        for (const b of kinds) {
          const sign = a === b ? scale : -scale;
          found += sign * product(one.map((each, place) => dot(each[a][law], other[place][b][law])));
        }
      }
    });
    return found;
  }

  scale(part) {
    const key = part.join();
    if (this.scales.has(key)) return this.scales.get(key);
    if (part.length > 2) return THIRD * Math.min(...combinations(part, 2).map((pair) => this.scale(pair)));
    const ordered = part.filter((axis) => this.bases.get(axis).ladder.ordered > 0).length;
    return this.unmeasured[ordered] / product(part.map((axis) => this.reaches[axis] ** 2));
  }

  // Shares of the records, and how large noise lets them be.
  shares(part, weights) {
    const plain = part.every((axis) => weights.get(axis).every((each) => each >= 0 && each <= 1));
    return plain && part.map((axis) => this.remembered(weights.get(axis), `share ${axis}`, () => {
      const vector = weights.get(axis);
      const share = dot(this.bases.get(axis).mass, vector);
      const variance = Math.max(dot(this.columns.get(axis).covariance(vector), vector), 0);
      return { share, possible: Math.hypot(share, Math.sqrt(variance) / Math.max(this.total, 1)) };
    }));
  }

  // Variance that a table leaves to counts whose conditions cut its groups: of the records of a
  // group that one condition cuts, it says how many meet the other.
  leftByTable(part, weights, sizes) {
    const sides = part.map((axis, place) => {
      const [vector, basis, size] = [weights.get(axis), this.bases.get(axis), sizes[place]];
      const squares = basis.means(vector.map((each) => each ** 2), size);
      return { ...basis.average(size), own: basis.means(vector, size), squares };
    });
    const grouped = (_, place) => [sizes[place], sides[place].group];
    const rows = this.cached(`groups ${part}`, () => this.sumsOfRows(part, grouped, this.masses));
    let found = 0;
    sides.forEach(({ own, squares, near }, place) => {
      const other = sides[1 - place].own;
      own.forEach((mean, group) => {
        // No record is in groups without codes.
        if (near[group] || squares[group] - mean ** 2 <= ROUNDING) return;
        const counts = other.map((_, i) => this.total * rows[place ? i * sizes[1] + group : group * sizes[1] + i]);
        const records = sumOf(counts);
        found += largest(records, mean, records > 0 ? dot(counts, other) / records : 0);
      });
    });
    return found;
  }

  // A product without what measured sums answer of it, and features of the noise of these.
  withoutSums(part) {
    for (const [axis, by] of bothWays([...part.weights.keys()])) {
      const key = `${axis},${by}`;
      if (this.sums.has(key)) {
        const known = this.sums.get(key);
        const { found, fits } = this.told(known, part.weights.get(axis));
        if (fits) {
          const [whole, ofValue, none] = found.map((each) => part.factor * each);
          const w = part.weights.get(by);
          const [value, missing] = known.variances.map(Math.sqrt);
          const features = [...w.map((each) => value * ofValue * each), ...w.map((each) => missing * (none - whole) * each)];
          return [{ factor: whole, weights: new Map([[by, w]]) }, { key, features }];
        }
      }
    }
    return [part, null];
  }
}

// The sum of a table times the outer product of a vector for each of its axes.
function under(cells, vectors) {
  let { data } = cells;
  let shape = [...cells.shape];
  for (const vector of vectors.slice(0, -1)) {
    data = along([vector], table(shape, data), 0).data;
    shape = shape.slice(1);
  }
  return dot(data, vectors[vectors.length - 1]);
}

const sorted = (weights) => new Map([...weights].sort(([a], [b]) => a - b));

const bothWays = (axes) => (axes.length === 2 ? [[axes[0], axes[1]], [axes[1], axes[0]]] : []);

// ---------------------------------------------------------------- questions

const BINS = " Numbers may lie anywhere in their bins.";
const NO_VALUE = " It may be any value that was declared: there are too few records for this noise.";
const PLACES = 40;
// Cells of a cross table, or groups: more would not be read, and take seconds.
export const MOST_CELLS = 2500;
// Groups of a column in a table; columns of more codes have bands.
export const MOST_GROUPS = 40;
const BANDS = 10;

export const clip = (x, low, high) => Math.min(Math.max(x, low), high);

// A release that answers. `data` is what the page holds, `model` null where it cannot compute.
export class Release {
  constructor(data, model) {
    this.data = data;
    this.columns = data.columns;
    this.model = model;
  }

  // What a question cannot have, in words, or null.
  refuse(question) {
    const { kind } = question;
    const column = this.columns[question.column];
    if ((kind === "mean" || kind === "means") && !column?.numbers) return "Choose a column of numbers.";
    if (kind === "quantile" && !column?.quantile) return "Choose a column whose values have an order.";
    if (kind !== "means" && kind !== "cross") return null;
    const by = this.by(question);
    if (by.some((each) => !this.columns[each])) return "Choose the columns of the groups.";
    if (new Set(by).size < by.length) return "Choose two different columns.";
    if (kind === "means" && by[0] === question.column) return "Choose groups by another column than that of the mean.";
    if (product(by.map((each) => this.groupsOf(each).length)) <= MOST_CELLS) return null;
    return `This table has more than ${english(MOST_CELLS)} cells. Ask for fewer, or use Python.`;
  }

  by(question) {
    return question.kind === "cross" ? [question.rows, question.across] : [question.rows];
  }

  // Which codes of a column a condition covers, as weights.
  mask(place, condition) {
    return this.model.cached(`mask ${place} ${JSON.stringify(condition)}`, () => {
      const column = this.columns[place];
      const found = zeros(column.size);
      for (const code of this.codesOf(column, condition)) found[code] = 1;
      return found;
    });
  }

  codesOf(column, condition) {
    if (condition === null) return [...Array(column.size).keys()];
    if (condition.codes) return condition.codes;
    const found = [...Array(column.bins).keys()].slice(condition.from, condition.to + 1);
    column.special.forEach((value, i) => {
      const inside = condition.below ? value < condition.below : value <= column.high[condition.to];
      if (inside && column.low[condition.from] <= value) found.push(column.bins + i);
    });
    return found;
  }

  // Weights of codes of a column for the codes of the measured column that decides it.
  lifted(place, weights) {
    const { of } = this.columns[place];
    if (!of) return weights;
    return this.model.remembered(weights, `lifted ${place}`, () => Float64Array.from(of, (code) => weights[code]));
  }

  times(a, b) {
    if (!a) return b;
    return this.model.remembered(a, `times ${this.model.idOf(b)}`, () => a.map((x, i) => x * b[i]));
  }

  // Weights of conditions; `more` multiplies weights of some columns.
  weights(conditions, more = []) {
    const found = new Map();
    const masks = [...conditions].map(([place, condition]) => [place, this.mask(place, condition)]);
    for (const [place, mask] of [...masks, ...more]) {
      const { axis } = this.columns[place];
      found.set(axis, this.times(found.get(axis), this.lifted(place, mask)));
    }
    return sorted(found);
  }

  conditions(question, only = () => true) {
    return new Map([...question.where].filter(([, condition]) => only(condition)));
  }

  // Conditions, and a value in a column.
  withValue(conditions, place) {
    const column = this.columns[place];
    const present = this.model.cached(`present ${place}`, () => zeros(column.size).fill(1, 0, column.values));
    return this.weights(conditions, [[place, present]]);
  }

  answer(question) {
    const { kind, column, rows, across } = question;
    const [changing, answer] = {
      count: [[], this.count],
      share: [[], this.share],
      mean: [[column], this.mean],
      quantile: [[column], this.quantile],
      cross: [[rows, across], this.table],
      means: [[rows, column], this.table],
    }[kind];
    this.model.vary = changing.map((place) => this.columns[place].axis);
    return answer.call(this, question);
  }

  count(question) {
    return this.counted(this.weights(this.conditions(question)), question.level);
  }

  reach(level) {
    return this.data.levels.find(([each]) => each === level)[1];
  }

  counted(weights, level) {
    const value = this.model.answer(weights);
    const std = Math.sqrt(this.model.variance(weights));
    const quantile = this.reach(level);
    const reach = quantile * std;
    const text = `${PROMISE}${level}%. It covers ${this.data.covers}.${this.data.about}`;
    const found = { value, std, lower: Math.max(value - reach, 0), upper: value + reach, text };
    // All of it below zero: the end of the law of what is possible.
    const tail = -Math.log1p(-level / 100) / quantile ** 2;
    if (found.upper <= 0) found.upper = value < 0 ? (tail * reach ** 2) / -value : 0;
    return found;
  }

  // Ends of the interval of a function of two answers, over simulated releases: see `simulated`.
  simulated([count, value], [a, b, c], statistic, level, [least, most]) {
    const [one, other] = this.model.cached("draws", () => normalDraws(this.reach(95)));
    const factor = this.reach(level) / this.reach(95);
    const [first, whole] = [Math.sqrt(a), Math.sqrt(c)];
    const shared = a > 0 ? clip(b / first, -whole, whole) : 0;
    const rest = c - shared ** 2 > 1e-12 * c ? Math.sqrt(c - shared ** 2) : 0;
    const found = one.map((z, d) => {
      const records = count + factor * first * z;
      // Where there are no records nothing is known: each of the bounds in turn.
      if (!(records > WHOLE)) return [least, most][d % 2];
      return clip(statistic(records, value + factor * (shared * z + rest * other[d])), least, most);
    });
    const [lower, upper] = endsOf(found);
    const std = (upper - lower) / (2 * this.reach(level));
    return { std, lower, upper, text: this.said(level), nothing: lower <= least && upper >= most && least < most };
  }

  said(level) {
    return `${PROMISE}${level}%, by simulation from a covariance that covers ${this.data.covers}.${this.data.about}`;
  }

  share(question) {
    const bottom = this.weights(this.conditions(question, (each) => each.among));
    const top = this.weights(this.conditions(question));
    const values = [this.model.answer(bottom), this.model.answer(top)];
    const covariance = this.model.covariance(bottom, top);
    const of = (count, both) => both / Math.max(count, WHOLE);
    const value = values[0] > WHOLE ? clip(values[1] / values[0], 0, 1) : NaN;
    const found = this.simulated(values, covariance, of, question.level, [0, 1]);
    found.text += found.nothing ? NO_VALUE : "";
    return { value, ...found };
  }

  // What is known of the numbers of a column under conditions: by the codes of its axis.
  numbers(place, conditions) {
    const column = this.columns[place];
    const held = this.lifted(place, this.mask(place, conditions.get(place) || null));
    const within = (values) =>
      this.model.remembered(held, `within ${place} ${this.model.idOf(values)}`, () =>
        values.map((each, code) => (held[code] > 0 ? each : 0)),
      );
    const { mean, reach, low, high } = column.numbers;
    return { axis: column.axis, mean: within(mean), reach: within(reach), lows: low, highs: high };
  }

  meanOf(weights, numbers, level) {
    const { axis, mean, reach, lows, highs } = numbers;
    const held = weights.get(axis);
    const times = (vector) => new Map(weights).set(axis, this.times(held, vector));
    const count = this.model.answer(weights);
    const total = this.model.answer(times(mean));
    const any = held.some((each) => each > 0);
    const end = (bounds, of, from) => bounds.reduce((x, each, i) => (held[i] > 0 || !any ? of(x, each) : x), from);
    const [low, high] = [end(lows, Math.min, Infinity), end(highs, Math.max, -Infinity)];
    const value = count > WHOLE ? clip(total / count, low, high) : NaN;
    const centre = Number.isNaN(value) ? (low + high) / 2 : value;
    const scale = high > low ? high - low : 1;
    const centred = new Map(weights).set(axis, held.map((each, i) => each * ((mean[i] - centre) / scale)));
    const covariance = this.model.covariance(weights, centred);
    const anywhere = reach.some((each) => each !== 0) ? Math.max(this.model.answer(times(reach)), 0) : 0;
    covariance[2] += (anywhere / 2 / scale) ** 2;
    const of = (records, sum) => centre + scale * (sum / Math.max(records, WHOLE));
    const off = (total - centre * count) / scale;
    return { value, anywhere, ...this.simulated([count, off], covariance, of, level, [low, high]) };
  }

  mean(question) {
    const conditions = this.conditions(question);
    const weights = this.withValue(conditions, question.column);
    const found = this.meanOf(weights, this.numbers(question.column, conditions), question.level);
    found.text += (found.anywhere ? BINS : "") + (found.nothing ? NO_VALUE : "");
    return found;
  }

  // The groups of a column: its codes, or bands of about equally many bins.
  groupsOf(place) {
    const column = this.columns[place];
    if (column.kind === "category" || column.size <= MOST_GROUPS) {
      return column.labels.map((label, code) => ({ label, condition: { codes: [code] } }));
    }
    const width = Math.ceil(column.bins / BANDS);
    return Array.from({ length: Math.ceil(column.bins / width) }, (_, band) => {
      const from = band * width;
      const to = Math.min(from + width, column.bins) - 1;
      return { label: spanLabel(column, from, to), condition: { from, to, below: nextOf(column, to) }, band: true };
    });
  }

  banded(place) {
    return this.groupsOf(place).some((each) => each.band);
  }

  table(question) {
    const conditions = this.conditions(question);
    const by = this.by(question);
    const groups = by.map((place) => this.groupsOf(place));
    const mean = question.kind === "means";
    const base = mean ? this.withValue(conditions, question.column) : this.weights(conditions);
    const numbers = mean ? this.numbers(question.column, conditions) : null;
    const vectorOf = (place, { condition }) => this.lifted(place, this.mask(place, condition));
    const vectors = by.map((place, i) => groups[i].map((group) => vectorOf(place, group)));
    const cells = [];
    const visit = (place, weights) => {
      if (place === by.length) {
        cells.push(mean ? this.meanOf(weights, numbers, question.level) : this.counted(weights, question.level));
        return;
      }
      const { axis } = this.columns[by[place]];
      for (const only of vectors[place]) {
        visit(place + 1, sorted(new Map(weights).set(axis, this.times(weights.get(axis), only))));
      }
    };
    visit(0, base);
    let text = cells.length ? cells[0].text : "";
    if (mean && cells.some((each) => each.anywhere)) text += BINS;
    if (mean && cells.some((each) => each.nothing)) text += NO_VALUE;
    return { cells, groups, text };
  }

  countsOf(place) {
    const column = this.columns[place];
    const { model } = this;
    const { axis } = column;
    let counts;
    if (!model.columns.has(axis)) {
      counts = zeros(model.shape[axis]);
      const allowed = model.possible.get(`${axis}`);
      counts[allowed ? allowed.mask.data.indexOf(1) : 0] = model.total;
    } else if (model.cells !== null) {
      counts = model.rowCounts(axis).map((each) => model.total * each);
    } else ({ counts } = model.columns.get(axis));
    if (!column.of) return counts;
    const found = zeros(column.size);
    column.of.forEach((code, i) => {
      found[code] += counts[i];
    });
    return found;
  }

  quantile(question) {
    const { column: place, q: share, level } = question;
    const column = this.columns[place];
    const { order } = column.quantile;
    const conditions = this.conditions(question);
    const base = this.weights(conditions);
    const countOf = (_, code) => {
      const only = this.lifted(place, this.mask(place, { codes: [code] }));
      return this.model.answer(sorted(new Map(base).set(column.axis, this.times(base.get(column.axis), only))));
    };
    let counts = conditions.size ? Float64Array.from({ length: column.values }, countOf) : this.countsOf(place);
    counts = counts.subarray(0, column.values);
    const rising = withoutNegatives(counts, order);
    const value = rising.some((each) => each !== 0) ? valueBelow(column, rising, share) : NaN;
    const all = sumOf(counts);
    const balance = cumulated(order, counts).map((each) => each - share * all);
    const variances = this.variancesBelow(column, place, this.withValue(conditions, place), share, rising);
    const ends = held(balance, variances.map((each) => this.reach(level) * Math.sqrt(each)));
    const [first, last] = ends.map((at) => order[at]);
    let text = this.said(level);
    if (order.length > 1 && first === order[0] && last === order[order.length - 1]) text += NO_VALUE;
    if (column.kind === "category") {
      return { value: Number.isNaN(value) ? null : value, std: NaN, lower: first, upper: last, text };
    }
    let [lower, upper] = [column.quantile.low[first], column.quantile.high[last]];
    if (!Number.isNaN(value)) [lower, upper] = [Math.min(lower, value), Math.max(upper, value)];
    if (column.quantile.wide) text += BINS;
    return { value, std: (upper - lower) / (2 * this.reach(level)), lower, upper, text };
  }

  // Variance of the balance after each code: see `Ranked._variances`.
  variancesBelow(column, place, present, share, rising) {
    const { order } = column.quantile;
    const n = order.length;
    const below = cumulated(order, rising);
    const wanted = [...Array(PLACES).keys()].map((i) => i / (PLACES - 1)).concat(share);
    const places = wanted.map((part) => Math.min(firstAtLeast(below, part * below[n - 1] * (1 - ROUNDING)), n - 1));
    const at = [...new Set(places)].sort((a, b) => a - b);
    const known = at.map((k) => {
      const own = zeros(column.size).fill(-share, 0, n);
      for (const code of order.slice(0, k + 1)) own[code] = 1 - share;
      const lifted = this.lifted(place, own);
      const vector = present.get(column.axis).map((each, code) => each * lifted[code]);
      return this.model.variance(new Map(present).set(column.axis, vector));
    });
    let left = 0;
    return zeros(n).map((_, k) => {
      while (left + 1 < at.length && at[left + 1] <= k) left += 1;
      const right = at[left] < k && left + 1 < at.length ? left + 1 : left;
      return Math.max(known[left], known[right]);
    });
  }
}

// Running sums of values in an order.
function cumulated(order, values) {
  let sum = 0;
  return Float64Array.from(order, (code) => (sum += values[code]));
}

// ---------------------------------------------------------------- simulation

const DRAWS = 2000;

// What leaves a fortieth of some numbers below and above.
function endsOf(numbers) {
  const sorted = numbers.slice().sort();
  const at = (place, k = Math.floor(place)) => sorted[k] + (place - k) * (sorted[k + 1] - sorted[k]);
  return [0.025, 0.975].map((share) => at(share * (DRAWS - 1)));
}

// Evenly spread normal numbers, by Box and Muller, each with its negative: see `normal_draws`.
function normalDraws(quantile) {
  const half = DRAWS / 2;
  return [Math.cos, Math.sin].map((of) => {
    const row = zeros(DRAWS);
    for (let i = 0; i < half; i += 1) {
      const length = Math.sqrt(-2 * Math.log((i + 0.5) / half));
      row[i] = length * of(2 * Math.PI * (((i + 0.5) * Math.sqrt(2)) % 1));
      row[half + i] = -row[i];
    }
    const factor = quantile / endsOf(row)[1];
    return row.map((each) => each * factor);
  });
}

function held(balance, reach) {
  const possible = (k) => balance[k] + reach[k] >= 0 && (k === 0 || balance[k - 1] - reach[k - 1] <= 0);
  const found = [...balance.keys()].filter(possible);
  return found.length ? [found[0], found[found.length - 1]] : [0, balance.length - 1];
}

// The first place whose number is at least this.
export function firstAtLeast(values, wanted) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Counts whose running sums are the nearest to those of noisy ones that never fall.
function withoutNegatives(counts, order) {
  if (counts.every((each) => each >= 0)) return counts;
  const total = order.reduce((sum, code) => sum + counts[code], 0);
  if (!(total > 0)) return counts.map((each) => Math.max(each, 0));
  const levels = [];
  let running = 0;
  for (const code of order) {
    running += counts[code];
    levels.push([running, 1]);
    while (levels.length > 1) {
      const [value, weight] = levels[levels.length - 1];
      const [before, others] = levels[levels.length - 2];
      if (before < value) break;
      levels.splice(-2, 2, [(before * others + value * weight) / (others + weight), others + weight]);
    }
  }
  // The last sum is the total, which is known best: no other one is larger.
  const rising = levels.flatMap(([value, weight]) => Array(weight).fill(clip(value, 0, total)));
  const found = zeros(counts.length);
  order.forEach((code, i) => (found[code] = rising[i] - (i ? rising[i - 1] : 0)));
  return found;
}

// The value up to which a share of the counts lies.
function valueBelow(column, counts, share) {
  const running = new Float64Array(column.kind === "category" ? counts.length + 1 : column.bins + 1);
  for (let i = 1; i < running.length; i += 1) running[i] = running[i - 1] + counts[i - 1];
  const bins = running.length - 1;
  const placed = (target) => clip(firstAtLeast(running.subarray(1), target), 0, bins - 1);
  if (column.kind === "category") return placed(share * running[bins]);
  const inside = (target) => {
    const bin = placed(target);
    const height = running[bin + 1] - running[bin];
    const part = height > 0 ? (target - running[bin]) / height : 0;
    return column.quantile.at(bin, clip(part, 0, 1));
  };
  const special = column.special.map((value, i) => [value, counts[column.bins + i], i]).sort((a, b) => a[0] - b[0]);
  let target = share * (running[bins] + special.reduce((a, each) => a + each[1], 0));
  if (!special.length) return inside(target);
  target = Math.max(target, Number.MIN_VALUE);
  // What lies before each special value, and with it.
  let gone = 0;
  const before = special.map(([, weight, i]) => {
    const position = column.quantile.before[i];
    const bin = Math.min(Math.floor(position), bins - 1);
    const found = running[bin] + (position - bin) * (running[bin + 1] - running[bin]) + gone;
    gone += weight;
    return found;
  });
  const passed = firstAtLeast(before, target);
  if (passed > 0) {
    const last = special[passed - 1];
    if (target <= before[passed - 1] + last[1]) return last[0];
  }
  const less = special.slice(0, passed).reduce((a, each) => a + each[1], 0);
  return inside(clip(target - less, 0, running[bins]));
}

// ---------------------------------------------------------------- numbers inside bins

// The number of a bin below which a share of it lies: `Spread.values_at` and `Points.values_at`.
function inBins(contents) {
  if (contents.edges) {
    const { edges } = contents;
    return (bin, share) => (share < 1 ? edges[bin] + share * (edges[bin + 1] - edges[bin]) : edges[bin + 1]);
  }
  const { firsts, special, grid } = contents;
  return (bin, share) => {
    const [first, stop] = [firsts[bin], firsts[bin + 1]];
    const inside = special.filter((each) => first <= each && each < stop);
    const free = stop - first - inside.length;
    let k = clip(Math.ceil(first + share * free) - 1, first, first + free - 1);
    for (const each of special) if (first <= each && each <= k) k += 1;
    return (k * grid[0] + grid[1]) / grid[2];
  };
}

// ---------------------------------------------------------------- reading

const KINDS = { f8: Float64Array, i4: Int32Array, u4: Uint32Array, u2: Uint16Array, u1: Uint8Array };

function bytesOf(base64) {
  const text = atob(base64);
  const found = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) found[i] = text.charCodeAt(i);
  return found;
}

// The release of a page: its data as text, as Python wrote it.
export async function read(text) {
  const data = JSON.parse(text);
  if (data.format !== "skdp page") throw new Error("This is not the data of a page.");
  if (data.version !== 1) throw new Error("A later version of skdp wrote this page.");
  const stream = new Blob([bytesOf(data.arrays.bytes)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const arrays = {};
  let at = 0;
  for (const [name, kind, length] of data.arrays.manifest) {
    const Kind = KINDS[kind];
    at = Math.ceil(at / 8) * 8;
    arrays[name] = new Kind(buffer, at, length);
    at += length * Kind.BYTES_PER_ELEMENT;
  }
  for (const column of data.columns) {
    const { numbers, quantile, contents } = column;
    const named = (holder, names) => {
      for (const name of names) if (typeof holder?.[name] === "string") holder[name] = arrays[holder[name]];
    };
    named(column, ["of", "low", "high"]);
    named(numbers, ["mean", "reach", "low", "high"]);
    named(quantile, ["low", "high", "order"]);
    named(contents, ["edges", "firsts"]);
    if (contents) quantile.at = inBins(contents);
  }
  return new Release(data, data.model && new Model(data.model.facts, arrays, data.model.shape));
}

// Where the bin after some bin begins.
function nextOf(column, bin) {
  if (bin + 1 < column.bins) return column.low[bin + 1];
  return column.step ? column.high[bin] + column.step : column.high[bin];
}

// The label of bins from one to another, in the words of the column.
export function spanLabel(column, from, to) {
  const low = column.texts ? column.texts[from][0] : digits(column.low[from]);
  const high = column.texts ? column.texts[to][1] : digits(column.high[to]);
  return low === high ? low : `${low} to ${high}`;
}

// Formats are kept: making one takes longer than a cell of a table.
const FORMATS = new Map();

export function english(number, least = 0, most = least) {
  const key = `${least} ${most}`;
  if (!FORMATS.has(key)) {
    const options = { minimumFractionDigits: least, maximumFractionDigits: most };
    FORMATS.set(key, new Intl.NumberFormat("en", options));
  }
  return FORMATS.get(key).format(number);
}

const digits = (x) => {
  const short = Number(x.toPrecision(6));
  return Math.abs(short) >= 10000 ? english(short, 0, 6) : `${short}`;
};

// ---------------------------------------------------------------- questions as Python, and in words

// A text as Python reads it: JSON's escapes are Python's.
export const quoted = (text) => JSON.stringify(text);

// A number or a date of a column as Python reads it.
function literal(column, value) {
  return column.kind === "date" ? quoted(isoDay(value)) : `${value}`;
}

export const isoDay = (days) => {
  const date = new Date(Math.floor(days) * 86400000);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString().slice(0, 10);
};

function codeLiteral(column, code) {
  if (code >= column.values) return "None";
  const named = column.kind === "category" || (column.texts && !column.unit);
  if (!named) return literal(column, column.special[code - column.bins]);
  return column.literals ? column.literals[code] : quoted(column.labels[code]);
}

function conditionLiteral(column, condition) {
  if (condition.codes) {
    const codes = condition.codes.map((code) => codeLiteral(column, code));
    return codes.length === 1 ? codes[0] : `[${codes.join(", ")}]`;
  }
  const { from, to } = condition;
  if (column.texts) return `(${quoted(column.texts[from][0])}, ${quoted(column.texts[to][1])})`;
  return `(${column.low[from]}, ${column.high[to]})`;
}

function queryLiteral(release, conditions) {
  const each = [...conditions].map(([place, condition]) => {
    const column = release.columns[place];
    return `${quoted(column.name)}: ${conditionLiteral(column, condition)}`;
  });
  return each.length ? `{${each.join(", ")}}` : "None";
}

function bandsLiteral(release, by) {
  const each = by.filter((place) => release.banded(place)).map((place) => {
    const column = release.columns[place];
    const groups = release.groupsOf(place).map(({ condition }) => condition);
    const edges = [...groups.map(({ from }) => column.low[from]), groups[groups.length - 1].below];
    return `${quoted(column.name)}: [${edges.map((edge) => literal(column, edge)).join(", ")}]`;
  });
  return each.length ? `bands={${each.join(", ")}}, right=False, ` : "";
}

// The call that gives the same answer.
export function python(release, question) {
  const name = (place) => quoted(release.columns[place].name);
  const query = queryLiteral(release, release.conditions(question));
  const level = question.level === 95 ? "" : `, level=${question.level / 100}`;
  const bands = (by) => bandsLiteral(release, by);
  const { column, rows, across } = question;
  const call = {
    count: () => `count(${query}, `,
    share: () => `proportion(${query}, ${queryLiteral(release, release.conditions(question, (each) => each.among))}, `,
    mean: () => `mean(${name(column)}, ${query}, `,
    quantile: () => `quantile(${name(column)}, ${question.q}, ${query}, `,
    cross: () => `crosstab(${name(rows)}, ${name(across)}, ${query}, ${bands([rows, across])}`,
    means: () => `aggregate(${name(rows)}, ${name(column)}, ${query}, ${bands([rows])}`,
  }[question.kind];
  return `release.${call()}return_interval=True${level})`;
}

// A number in the digits that its error leaves.
export function rounded(number, error) {
  if (!Number.isFinite(number)) return "unknown";
  if (!(Number.isFinite(error) && error > 0)) return english(Number(number.toPrecision(6)), 0, 6);
  const decimals = clip(1 - Math.floor(Math.log10(error)), 0, 12);
  return english(Number(number.toFixed(decimals)) + 0, decimals);
}

// A text by itself: one that is written from right to left does not turn what follows it.
const TURNS = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufefc]/;
const alone = (text) => (TURNS.test(text) ? `\u2068${text}\u2069` : text);

export const short = (text, most = 60) => alone(text.length > most ? `${text.slice(0, most - 1)}…` : text);

// What is printed of an answer lies in its interval.
const inside = ({ value, lower, upper }) => (Number.isFinite(value) ? clip(value, lower, upper) : value);

// Texts of an answer: of its value and its ends, in the words of the column.
export function shown(release, question, cell) {
  const column = release.columns[question.column];
  const { kind } = question;
  const each = (text) => [inside(cell), cell.lower, cell.upper].map(text);
  if (kind === "quantile" && column.kind === "category") {
    return each((code) => (code === null ? "unknown" : column.labels[code]));
  }
  if (["quantile", "mean", "means"].includes(kind) && column.kind === "date") return each((x) => isoDay(x) || "unknown");
  if (kind === "quantile" && column.integer) return each((x) => (Number.isFinite(x) ? digits(x) : "unknown"));
  if (["count", "cross"].includes(kind) && Number.isFinite(cell.value)) {
    // Whole people, with nothing of the interval cut off.
    return [Math.round(inside(cell)), Math.floor(cell.lower), Math.ceil(cell.upper)].map((x) => english(x));
  }
  const [scale, unit] = kind === "share" ? [100, "%"] : [1, ""];
  let error = Math.max(cell.upper - cell.value, cell.value - cell.lower) * scale;
  if (Number.isNaN(error)) error = (cell.upper - cell.lower) * scale;
  return each((x) => (Number.isFinite(x) ? rounded(x * scale, error) + unit : "unknown"));
}

function conditionWords(column, condition) {
  if (condition.codes) {
    const labels = condition.codes.map((code) => short(column.labels[code], 40));
    if (labels.length > 6) labels.splice(5, labels.length, `${condition.codes.length - 5} others`);
    const last = labels.pop();
    return `${short(column.name, 40)} ${labels.length ? `${labels.join(", ")} or ${last}` : last}`;
  }
  return `${short(column.name, 40)} from ${spanLabel(column, condition.from, condition.to)}`;
}

function conditionsWords(release, conditions) {
  const each = [...conditions].map(([place, c]) => conditionWords(release.columns[place], c));
  return each.length ? ` with ${each.join(" and ")}` : "";
}

// What is asked, and the sentence that can be quoted.
export function inWords(release, question, answer) {
  const where = conditionsWords(release, release.conditions(question));
  const name = (place) => short(release.columns[place].name, 40);
  const counted = release.data.counted ? `, counting ${release.data.counted}` : "";
  if (answer.cells) {
    if (question.kind === "cross") {
      return `Records${where} by ${name(question.rows)} and ${name(question.across)}${counted}`;
    }
    return `Mean of ${name(question.column)} by ${name(question.rows)}${where && `, of records${where}`}${counted}`;
  }
  const [value, lower, upper] = shown(release, question, answer);
  const among = release.conditions(question, (each) => each.among);
  const what = {
    count: () => `the number of records${where} is about ${value}`,
    share: () =>
      `the share of records${conditionsWords(release, release.conditions(question, (each) => !each.among))} ` +
      `among ${among.size ? `those${conditionsWords(release, among)}` : "all records"} is about ${value}`,
    mean: () => `the mean of ${name(question.column)} of the records${where} is about ${value}`,
    quantile: () =>
      `${question.q === 0.5 ? "the median" : `the ${question.q} quantile`} of ${name(question.column)} ` +
      `of the records${where} is about ${value}`,
  }[question.kind]();
  const epsilon = release.epsilon ? `, epsilon ${release.epsilon}` : "";
  return `According to “${short(release.title, 120)}” (differentially private${epsilon}), ${what}${counted} (${question.level}% interval: ${lower} to ${upper}).`;
}

// ---------------------------------------------------------------- what is downloaded

export function csvOf(lines) {
  const cell = (value) => {
    const words = `${value ?? ""}`;
    return /[",\r\n]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words;
  };
  return `${lines.map((each) => each.map(cell).join(",")).join("\r\n")}\r\n`;
}
