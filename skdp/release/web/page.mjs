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
const same = (a, b) => a === b || a.every((each, i) => each === b[i]);
const identity = (n) => Array.from({ length: n }, (_, i) => zeros(n).fill(1, i, i + 1));

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

// The part of a table from some start to some stop on each axis.
const block = (cells, starts, stops) =>
  cells.shape.reduce((found, n, p) => along(identity(n).slice(starts[p], stops[p]), found, p), cells);

const outer = (vectors) =>
  vectors.reduce((found, vector) => {
    const column = Array.from(vector, (each) => [each]);
    return along(column, table([found.length, 1], found), 1).data;
  }, ones(1));

const transposed = (rows) => rows[0].map((_, j) => rows.map((row) => row[j]));

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
  constructor(facts, counts, finer, lacking, codes) {
    this.sizes = facts.blocks;
    this.lattice = this.sizes[this.sizes.length - 1];
    this.variances = facts.variances;
    this.totalVariance = facts.total_variance;
    this.counts = counts;
    this.codes = codes;
    this.scales = this.scaleVariances();
    this.lacking = this.scales.map((each) => zeros(each.length));
    let at = 0;
    for (let place = 2; place < this.sizes.length; place += 1) {
      const stop = at + this.scales[place].length;
      this.scales[place] = finer.subarray(at, stop);
      this.lacking[place] = lacking.subarray(at, stop);
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

  // The variance of a weighted sum of counts: of noise, and of details that were not believed.
  partsOfVariance(allWeights) {
    const weights = this.codes === null ? allWeights : Float64Array.from(this.codes, (code) => allWeights[code]);
    let whole = dot(weights, this.covered(weights));
    if (this.lowered !== null) {
      whole = whole - sumOf(this.lowered.map((row) => dot(row, weights) ** 2)) + dot(this.restored, weights) ** 2;
    }
    whole = Math.max(whole, 0);
    const padded = zeros(this.lattice);
    padded.set(weights);
    const hidden = Math.min(Math.max(dot(padded, this.spread(padded, this.lacking)), 0), whole);
    return [whole - hidden, hidden];
  }
}

// ---------------------------------------------------------------- the model

const TUNING = { cut: 0.5, dependence: 0.25, surprise: 1, third: 0.05, heap: 0.3 };
const TRUST = ["added", "noise", "lacking"];
const PROMISE = "The interval is made to contain the true answer with a probability of ";
const MOST_CUT = 2;
const WHOLE = 1e-9;
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

// Weighted rows, and the coefficients of everything measured: see `ViewsModel`.
// Weights are a Map from axis to a vector of codes, ascending.
export class Model {
  constructor(facts, arrays, shape) {
    this.shape = shape;
    this.prior = facts.prior || "";
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
    const cut = cutters(["counts", "units", "finer", "finer_estimated", "margin_variances"]);
    this.columns = new Map();
    this.ladders = new Map();
    for (const each of facts.columns) {
      const size = shape[each.axis];
      const allowed = this.possible.get(`${each.axis}`);
      const codes = allowed ? [...Array(size).keys()].filter((code) => allowed.mask.data[code]) : null;
      const ladder = { units: cut.units(size), sizes: each.groups };
      ladder.n = ladder.sizes[ladder.sizes.length - 1];
      const n = sumOf(each.blocks.slice(1, -1));
      const column = new Column(each, cut.counts(size), cut.finer(n), cut.finer_estimated(n), codes);
      if (each.looks) column.join(ladder, cut.margin_variances(each.looks));
      this.columns.set(each.axis, column);
      this.ladders.set(each.axis, ladder);
    }
    this.looks = new Map();
    this.grids = new Map();
    const values = cutter(arrays.look_values);
    const precision = cutter(arrays.look_precision);
    const trusts = cutters(TRUST, "trust_");
    facts.looks.forEach(([axes, sizes, grid]) => {
      const n = product(sizes);
      const variances = precision(n).map((each) => (each > 0 ? 1 / each : 0));
      const look = { axes, values: table(sizes, values(n)), variances: table(sizes, variances) };
      if (axes.length > 1) for (const name of TRUST) look[name] = table(sizes, trusts[name](n));
      this.looks.set(axes.join(), look);
      if (grid.length) this.grids.set(axes.join(), grid);
    });
    const all = this.looks.get("");
    this.total = all.values.data[0];
    this.totalVariance = all.variances.data[0];
    this.misfit = facts.misfit;
    this.sums = new Map();
    const parts = cutters(["values", "has_value", "missing", "sums", "n_missing"], "sums_");
    for (const [axis, by, ...variances] of facts.sums) {
      const each = { variances };
      for (const name of ["values", "has_value", "missing"]) each[name] = parts[name](shape[axis]);
      for (const name of ["sums", "n_missing"]) each[name] = parts[name](shape[by]);
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

  squared(vector) {
    return this.remembered(vector, "squared", () =>
      vector.every((each) => each === 0 || each === 1) ? vector : vector.map((each) => each * each),
    );
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

  functions(axis, size) {
    const { sizes } = this.ladders.get(axis);
    return basisOf(sizes.slice(0, sizes.indexOf(size) + 1));
  }

  groups(axis, size) {
    return this.cached(`groups ${axis} ${size}`, () => {
      const ladder = this.ladders.get(axis);
      const width = ladder.n / size;
      return Int32Array.from(ladder.units, (unit) => Math.floor(unit / width));
    });
  }

  sumsOf(axis, values, size) {
    const group = this.groups(axis, size);
    const found = zeros(size);
    for (let code = 0; code < values.length; code += 1) found[group[code]] += values[code];
    return found;
  }

  mixing(axis, size) {
    return this.cached(`mixing ${axis} ${size}`, () => {
      const group = this.groups(axis, size);
      const mass = this.rowCounts(axis).map((each) => each + 1e-9 / this.shape[axis]);
      const whole = this.sumsOf(axis, mass, size);
      const filled = identity(size);
      whole.forEach((each, i) => {
        if (!(each > 0)) filled[i][i] = 0;
      });
      let full = whole.every((each) => each > 0);
      const levels = this.ladders.get(axis).sizes.filter((each) => each < size);
      for (const level of full ? [] : levels.reverse()) {
        const wide = size / level;
        for (let place = 0; place < size; place += 1) {
          if (filled[place].every((each) => each === 0)) {
            const first = Math.floor(place / wide) * wide;
            const around = sumOf(whole.subarray(first, first + wide));
            if (around > 0) {
              for (let i = first; i < first + wide; i += 1) filled[place][i] = whole[i] / around;
            }
          }
        }
      }
      const shares = mass.map((each, code) => each / whole[group[code]]);
      return { group, shares, filled: full ? null : filled };
    });
  }

  hats(axis, vector, size) {
    return this.remembered(vector, `hats ${axis} ${size}`, () => {
      const { group, shares, filled } = this.mixing(axis, size);
      let found = zeros(size);
      for (let code = 0; code < vector.length; code += 1) {
        found[group[code]] += shares[code] * vector[code];
      }
      if (filled !== null) found = along(filled, table([size], found), 0).data;
      const functions = this.functions(axis, size);
      const hats = zeros(size);
      for (let i = 0; i < size; i += 1) {
        if (found[i] !== 0) {
          for (let k = 0; k < size; k += 1) hats[k] += functions[i][k] * found[i];
        }
      }
      const scale = Math.sqrt(this.ladders.get(axis).n / size);
      return hats.map((each) => each * scale);
    });
  }

  rowCellsOf(axes, sizes) {
    const grouped = (axis, place) => [sizes[place], this.groups(axis, sizes[place])];
    return table([...sizes], this.sumsOfRows(axes, grouped, this.masses).map((each) => this.total * each));
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

  away(axes) {
    return this.cached(`away ${axes}`, () => {
      const look = this.looks.get(axes.join());
      const sizes = look.values.shape.map((length) => length + 1);
      let hat = this.rowCellsOf(axes, sizes);
      let inside = 1;
      axes.forEach((axis, place) => {
        inside *= sizes[place] / this.ladders.get(axis).n;
        hat = along(transposed(this.functions(axis, sizes[place])), hat, place);
      });
      const scale = Math.sqrt(inside);
      const rows = block(hat, sizes.map(() => 1), sizes);
      return table(
        look.values.shape,
        look.values.data.map((each, i) => (look.variances.data[i] > 0 ? each - rows.data[i] * scale : 0)),
      );
    });
  }

  residual(axes) {
    return this.cached(`residual ${axes}`, () => {
      const { added: share } = this.looks.get(axes.join());
      const away = this.away(axes);
      return table(away.shape, away.data.map((each, i) => share.data[i] * each));
    });
  }

  coarseSizes(axes) {
    const { shape } = this.looks.get(axes.join()).values;
    return axes.map((axis, place) => {
      const levels = this.ladders.get(axis).sizes;
      const fitting = levels.filter((size) => size > 1 && size <= Math.min(shape[place] + 1, 8));
      return fitting.length ? fitting[fitting.length - 1] : levels[1];
    });
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
    found += this.corrections(axes, weights);
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
    const most = (each) => each.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
    return { found: [whole, slope, none], fits: most(off) <= AFFINE * most(weights) };
  }

  // Coefficients of weights in each column, their means, and products of the means of other columns.
  projected(axes, weights) {
    const sizes = this.sizesOf(axes);
    const hats = new Map(axes.map((axis) => [axis, this.hats(axis, weights.get(axis), sizes.get(axis))]));
    const mean = new Map(axes.map((axis) => [axis, hats.get(axis)[0] / Math.sqrt(this.ladders.get(axis).n)]));
    const others = (used) => product(axes.filter((a) => !used.includes(a)).map((a) => mean.get(a)));
    return { hats, mean, others };
  }

  // The sum of a table of a look under coefficients; that over its first column is kept.
  under(key, cells, hats) {
    const inside = hats.map((hat, place) => hat.subarray(1, 1 + cells.shape[place]));
    let { data } = this.remembered(hats[0], key, () => along([inside[0]], cells, 0));
    for (let place = 1; place < hats.length - 1; place += 1) {
      data = along([inside[place]], table([...cells.shape.slice(place)], data), 0).data;
    }
    return dot(data, inside[hats.length - 1]);
  }

  sizesOf(axes) {
    const sizeIn = (axis, part) => 1 + (this.looks.get(part.join()).values.shape[part.indexOf(axis)] || 0);
    const size = (axis) => Math.max(1, ...this.measured(axes).map((part) => sizeIn(axis, part)));
    return this.cached(`sizes ${axes}`, () => new Map(axes.map((axis) => [axis, size(axis)])));
  }

  corrections(axes, weights) {
    const { hats, mean, others } = this.projected(axes, weights);
    const pure = [];
    for (const axis of axes) {
      const residual = this.columnResidual(axis);
      const whole = this.cached(`residual sum ${axis}`, () => sumOf(residual));
      const vector = weights.get(axis);
      const own = this.remembered(vector, `residual ${axis}`, () => dot(residual, vector));
      pure.push([[axis], own - mean.get(axis) * whole]);
    }
    const shared = axes.length > 2 && !this.looks.has(axes.join());
    for (const part of this.measured(axes)) {
      if (shared || others(part) !== 0) {
        const held = part.map((axis) => hats.get(axis));
        pure.push([part, this.under(`residual ${part}`, this.residual(part), held)]);
      }
    }
    if (shared) return this.sharedOut(pure, axes, weights, others);
    return sumOf(pure.map(([part, told]) => told * others(part)));
  }

  // Corrections of parts of columns that no table holds together, as the rows share them out.
  sharedOut(pure, axes, weights, others) {
    const where = (each) => (each.every((w) => w === 0 || w === 1) ? each : each.map((w) => Number(w !== 0)));
    const on = (axis) => this.remembered(weights.get(axis), "on", () => where(weights.get(axis)));
    const rows = Math.max(this.total, 1);
    const found = pure.map(([part, told]) => {
      const kept = new Map(axes.map((axis) => [axis, part.includes(axis) ? on(axis) : weights.get(axis)]));
      const both = rows * this.ofRows(axes, kept);
      return (told * (both + others(part))) / (rows * this.ofRows(part, kept) + 1);
    });
    const least = -this.total * this.ofRows(axes, weights);
    const plain = axes.every((axis) => weights.get(axis).every((each) => each >= 0));
    return plain ? Math.max(sumOf(found), least) : sumOf(found);
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

  // Variances and covariance of two answers: see `ViewsModel.covariance`.
  covariance(first, second) {
    const [[a, p], [c, q]] = [first, second].map((each) => this.varianceOf([each]));
    const most = Math.sqrt(a * c);
    const [both] = this.varianceOf([second, first]);
    return [a + p, clip((both - a - c) / 2, -most, most), c + q];
  }

  guarantee(noise, estimated, level) {
    const whole = noise + estimated;
    const share = whole > 0 ? Math.round((100 * noise) / whole) : 100;
    const text = `${PROMISE}${level}%. `;
    if (share >= 99) return `${text}Its width is that of the noise, whose law is known.`;
    return (
      `${text}${share}% of its variance is noise, whose law is known; the rest is for what was not ` +
      `measured, and is estimated${this.prior ? `, with a prior: ${this.prior}.` : "."}`
    );
  }

  varianceOf(questions) {
    const parts = merged(questions.map((each) => this.part(each)).filter((part) => part.factor));
    if (this.cells !== null && parts.some((part) => part.weights.size)) {
      const met = zeros(this.masses.length);
      for (const { factor, weights } of parts) {
        for (let row = 0; row < met.length; row += 1) {
          let value = factor;
          for (const [axis, vector] of weights) value *= vector[this.rows[axis][row]];
          met[row] += value;
        }
      }
      return [this.cells[0] * dot(met, met) + this.cells[1], 0];
    }
    if (parts.length === 1 && parts[0].weights.size <= 1) {
      const [{ factor, weights }] = parts;
      if (!weights.size) return [factor ** 2 * this.totalVariance, 0];
      const [[axis, vector]] = weights;
      const inside = this.cutCodes(axis, vector, new Map());
      const [known, hidden] = this.columns.get(axis).partsOfVariance(vector);
      return [factor ** 2 * known, factor ** 2 * (inside + hidden)];
    }
    let constant = 0;
    const single = new Map();
    const several = new Map();
    const [left, noiseOfSums] = this.withoutSums(parts);
    let estimated = 0;
    for (const { factor, weights } of left) {
      const axes = [...weights.keys()];
      const { hats, mean, others } = this.projected(axes, weights);
      constant += factor * others([]);
      for (const axis of axes) {
        const term = { scale: factor * others([axis]), vector: weights.get(axis), mean: mean.get(axis) };
        single.set(axis, [...(single.get(axis) || []), term]);
      }
      for (const part of this.measured(axes)) {
        const term = { scale: factor * others(part), hats: part.map((axis) => hats.get(axis)) };
        several.set(part.join(), [...(several.get(part.join()) || []), term]);
      }
      estimated += Math.sqrt(this.unmeasured(axes, weights)) * Math.abs(factor);
    }
    let noise = constant ** 2 * this.totalVariance + noiseOfSums;
    let lacking = 0;
    for (const [axis, terms] of single) {
      const [known, hidden] = this.varianceOfColumn(axis, terms);
      noise += known;
      lacking += hidden;
    }
    for (const [part, terms] of several) {
      const [known, hidden] = this.varianceOfLook(part, terms);
      noise += known;
      lacking += hidden;
    }
    return [noise, estimated ** 2 + lacking];
  }

  // What one product of weights has is kept for the next question that has it.
  varianceOfColumn(axis, terms) {
    const column = this.columns.get(axis);
    if (terms.length > 1) {
      return column.partsOfVariance(added(terms, ({ vector, mean }) => vector.map((each) => each - mean)));
    }
    const [{ scale, vector, mean }] = terms;
    return this.remembered(vector, `variance ${axis} ${mean}`, () =>
      column.partsOfVariance(vector.map((each) => each - mean)),
    ).map((each) => scale ** 2 * each);
  }

  varianceOfLook(part, terms) {
    const { noise, lacking } = this.looks.get(part);
    if (terms.length > 1) {
      const inside = (hat, place) => hat.subarray(1, 1 + noise.shape[place]);
      const told = added(terms, ({ hats }) => outer(hats.map(inside))).map((each) => each * each);
      return [dot(told, noise.data), dot(told, lacking.data)];
    }
    const [{ scale, hats }] = terms;
    const squares = hats.map((hat) => this.squared(hat));
    return [
      scale ** 2 * this.under(`noise ${part}`, noise, squares),
      scale ** 2 * this.under(`lacking ${part}`, lacking, squares),
    ];
  }

  withoutSums(parts) {
    if (!this.sums.size) return [parts, 0];
    const summed = new Map();
    const left = parts.map((part) => {
      for (const [axis, by] of bothWays([...part.weights.keys()])) {
        const key = `${axis},${by}`;
        if (this.sums.has(key)) {
          const { found, fits } = this.told(this.sums.get(key), part.weights.get(axis));
          if (fits) {
            const [whole, ofValue, none] = found.map((each) => part.factor * each);
            const w = part.weights.get(by);
            const before = summed.get(key) || [zeros(w.length), zeros(w.length)];
            summed.set(key, [
              before[0].map((each, i) => each + ofValue * w[i]),
              before[1].map((each, i) => each + (none - whole) * w[i]),
            ]);
            return { factor: whole, weights: new Map([[by, w]]) };
          }
        }
      }
      return part;
    });
    let noise = 0;
    for (const [key, [values, missing]] of summed) {
      const { variances } = this.sums.get(key);
      noise += dot(values, values) * variances[0] + dot(missing, missing) * variances[1];
    }
    return [left, noise];
  }

  unmeasured(axes, weights) {
    if (axes.length < 2) return 0;
    const squares = new Map(axes.map((axis) => [axis, this.squared(weights.get(axis))]));
    const only = (kept) => new Map(kept.map((axis) => [axis, squares.get(axis)]));
    const whole = Math.max(this.counted(squares), 1);
    let found = 0;
    for (const pair of combinations(axes, 2)) {
      let cut = this.cut(pair, weights);
      if (cut > 0 && axes.length > 2) {
        const both = Math.max(this.counted(only(pair)), 1);
        cut *= Math.min(whole / both, 1) ** 2;
      }
      found = Math.max(found, cut);
    }
    for (const axis of axes) {
      const others = new Map(weights);
      others.delete(axis);
      found += this.cutCodes(axis, weights.get(axis), others);
    }
    if (axes.length > 2 && !this.looks.has(axes.join())) {
      found += TUNING.third * Math.min(...axes.map((axis) => this.third(axis, whole, axes, only)));
    }
    return found;
  }

  third(axis, whole, axes, only) {
    const others = axes.filter((other) => other !== axis);
    const count = Math.max(this.counted(only(others)), 1);
    const alone = this.counted(only([axis])) / Math.max(this.total, 1);
    const share = (Math.min(whole / count, 1) + Math.min(Math.max(alone, 0), 1)) / 2;
    const strengths = others.map((other) => this.strength([Math.min(axis, other), Math.max(axis, other)]));
    return Math.max(...strengths) * count ** 2 * share * (1 - share);
  }

  counted(weights) {
    return this.total * this.ofRows([...weights.keys()], weights);
  }

  cutCodes(axis, vector, others) {
    const cut = this.remembered(vector, "cut codes", () => {
      const found = [...vector.keys()].filter((code) => vector[code] > WHOLE && vector[code] < 1 - WHOLE);
      return vector.every((each) => each >= 0 && each <= 1) ? found : [];
    });
    if (!(cut.length > 0 && cut.length <= MOST_CUT)) return 0;
    let found = 0;
    for (const code of cut) {
      const near = [code, code - 1, code + 1].filter((c) => c >= 0 && c < vector.length);
      const [inside, ...around] = near.map((c) => Math.max(this.countOf(axis, c, others), 0));
      const rough = Math.max(0, ...around.map((each) => Math.abs(each - inside) / Math.max(each + inside, 1e-300)));
      found += TUNING.heap * (rough * inside) ** 2;
    }
    return found;
  }

  countOf(axis, code, others) {
    if (!others.size) return this.columns.get(axis).counts[code];
    const only = this.cached(`only ${axis} ${code}`, () => zeros(this.shape[axis]).fill(1, code, code + 1));
    const weights = sorted(new Map(others).set(axis, only));
    return this.total * this.ofRows([...weights.keys()], weights);
  }

  blockCounts(pair, sizes) {
    return this.cached(`blocks ${pair}`, () => {
      let cells = this.rowCellsOf(pair, sizes);
      pair.forEach((axis, place) => {
        const own = this.sumsOf(axis, this.columnResidual(axis), sizes[place]);
        const middle = sumOf(own) / own.length;
        const pure = own.map((each) => (each - middle) / sizes[1 - place]);
        for (let i = 0; i < cells.data.length; i += 1) {
          cells.data[i] += pure[place ? i % sizes[1] : Math.floor(i / sizes[1])];
        }
      });
      if (this.looks.has(pair.join())) {
        const scale = product(pair.map((axis, place) => sizes[place] / this.ladders.get(axis).n));
        const told = this.cellsOf(pair, this.residual(pair), sizes, 1 / Math.sqrt(scale));
        cells = table(cells.shape, cells.data.map((each, i) => each + told.data[i]));
      }
      return cells.data.map((each) => Math.max(each, 0));
    });
  }

  // Cells of a pair from coefficients of which no column is constant.
  cellsOf(pair, { shape, data }, sizes, scale) {
    let found = table([...sizes]);
    for (let i = 0; i < Math.min(shape[0], sizes[0] - 1); i += 1) {
      for (let j = 0; j < Math.min(shape[1], sizes[1] - 1); j += 1) {
        found.data[(i + 1) * sizes[1] + j + 1] = data[i * shape[1] + j] * scale;
      }
    }
    pair.forEach((axis, place) => {
      found = along(this.functions(axis, sizes[place]), found, place);
    });
    return found;
  }

  cut(pair, weights) {
    const key = `cut ${pair} ${this.idOf(weights.get(pair[1]))}`;
    return this.remembered(weights.get(pair[0]), key, () => this.cutBlocks(pair, weights));
  }

  cutBlocks(pair, weights) {
    const sizes = this.grids.get(pair.join()) || [1, 1];
    const [first, second] = pair.map((axis, place) => this.blockShares(axis, weights.get(axis), sizes[place]));
    let counts = null;
    let found = 0;
    for (let i = 0; i < sizes[0]; i += 1) {
      for (let j = 0; j < sizes[1]; j += 1) {
        const spread = first.square[i] * second.square[j] - (first.mean[i] * second.mean[j]) ** 2;
        if (spread > 0) {
          counts = counts || this.blockCounts(pair, sizes);
          found += counts[i * sizes[1] + j] ** 2 * spread;
        }
      }
    }
    return counts === null ? 0 : TUNING.cut * this.strength(pair) * found;
  }

  // Means of weights and of their squares in each block of codes.
  blockShares(axis, vector, size) {
    return this.remembered(vector, `shares ${axis} ${size}`, () => {
      const mass = this.columns.get(axis).counts.map((each) => Math.max(each, 0) + 1e-9);
      const whole = this.sumsOf(axis, mass, size);
      const share = (values) =>
        this.sumsOf(axis, values, size).map((each, i) => each / (whole[i] > 0 ? whole[i] : 1));
      const mean = share(mass.map((m, i) => m * vector[i]));
      return { mean, square: share(mass.map((m, i) => m * vector[i] ** 2)) };
    });
  }

  strength(pair) {
    return this.cached(`strength ${pair}`, () => this.measuredStrength(pair));
  }

  measuredStrength(pair) {
    const total = Math.max(this.total, 1);
    const look = this.looks.get(pair.join());
    if (!look) return this.typicalStrength();
    const sizes = this.coarseSizes(pair);
    const stops = sizes.map((size) => size - 1);
    const values = block(look.values, [0, 0], stops);
    const variances = block(look.variances, [0, 0], stops).data;
    const scale = product(pair.map((axis, place) => this.ladders.get(axis).n / sizes[place]));
    const pure = this.cellsOf(pair, values, sizes, Math.sqrt(scale));
    const noise = (sumOf(variances) / variances.length) * scale;
    const margins = pair.map((axis, place) =>
      this.sumsOf(axis, this.columns.get(axis).counts, sizes[place]).map((each) =>
        Math.max(each, (0.02 * total) / sizes[place]),
      ),
    );
    let told = 0;
    let chance = 0;
    let spread = 0;
    outer(margins).forEach((each, i) => {
      const expected = each / total;
      told += pure.data[i] ** 2 / expected;
      chance += 1 / expected;
      spread += 1 / expected ** 2;
    });
    const found =
      Math.max(told / total - (noise * chance) / total, 0) +
      (TUNING.surprise * noise * Math.sqrt(2 * spread)) / total;
    return Math.min(found / TUNING.dependence, 1);
  }

  typicalStrength() {
    return this.cached("typical strength", () => {
      if (this.misfit !== null) return Math.min((2 * ((Math.PI / 2) * this.misfit) ** 2) / TUNING.cut, 1);
      const pairs = [...this.looks.values()].map((look) => look.axes).filter((axes) => axes.length === 2);
      if (!pairs.length) return 1;
      const found = pairs.map((pair) => this.strength(pair)).sort((a, b) => a - b);
      return (found[(found.length - 1) >> 1] + found[found.length >> 1]) / 2;
    });
  }
}

const sorted = (weights) => new Map([...weights].sort(([a], [b]) => a - b));

const bothWays = (axes) => (axes.length === 2 ? [[axes[0], axes[1]], [axes[1], axes[0]]] : []);

// The sum of vectors, each times the scale of its term.
function added(terms, vectorOf) {
  let found = null;
  for (const term of terms) {
    const vector = vectorOf(term);
    found = found || zeros(vector.length);
    for (let i = 0; i < vector.length; i += 1) found[i] += term.scale * vector[i];
  }
  return found;
}

// Parts that differ in one column only, as one.
function merged(parts) {
  const found = [];
  for (const part of parts) {
    const place = found.findIndex((other) => joined(other, part) !== null);
    if (place < 0) found.push(part);
    else found[place] = joined(found[place], part);
  }
  return found;
}

function joined(first, second) {
  const axes = new Set([...first.weights.keys(), ...second.weights.keys()]);
  const differing = [...axes].filter((axis) => {
    const a = first.weights.get(axis);
    const b = second.weights.get(axis);
    return !a || !b || !same(a, b);
  });
  if (differing.length > 1) return null;
  if (!differing.length) return { factor: first.factor + second.factor, weights: first.weights };
  const [axis] = differing;
  const n = (first.weights.get(axis) || second.weights.get(axis)).length;
  const a = first.weights.get(axis) || ones(n);
  const b = second.weights.get(axis) || ones(n);
  const vector = a.map((each, i) => first.factor * each + second.factor * b[i]);
  if (vector.every((each) => each === vector[0])) {
    const rest = new Map(first.weights);
    rest.delete(axis);
    return { factor: vector[0], weights: vector[0] ? rest : new Map() };
  }
  return { factor: 1, weights: sorted(new Map([...first.weights, ...second.weights]).set(axis, vector)) };
}

// ---------------------------------------------------------------- questions

const BINS = " Numbers may lie anywhere in their bins.";
const NO_VALUE = " It may be any value that was declared: there are too few records for this noise.";
const PLACES = 40;
const ROUNDING = 1e-9;
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
    const [noise, estimated] = this.model.varianceOf([weights]);
    const std = Math.sqrt(noise + estimated);
    const quantile = this.reach(level);
    const reach = quantile * std;
    const text = this.model.guarantee(noise, estimated, level) + this.data.about;
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
      if (!(records > 0)) return [least, most][d % 2];
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
    const of = (count, both) => both / Math.max(count, 1e-9);
    const value = values[0] > 0 ? clip(values[1] / values[0], 0, 1) : NaN;
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
    const { mean, reach, range } = column.numbers;
    return { axis: column.axis, mean: within(mean), reach: within(reach), range };
  }

  meanOf(weights, numbers, level) {
    const { axis, mean, reach, range } = numbers;
    const held = weights.get(axis);
    const times = (vector) => new Map(weights).set(axis, this.times(held, vector));
    const count = this.model.answer(weights);
    const total = this.model.answer(times(mean));
    const value = count > 0 ? clip(total / count, ...range) : NaN;
    let [low, high] = held.some((each) => each > 0) ? [Infinity, -Infinity] : range;
    mean.forEach((each, i) => {
      if (held[i] > 0) [low, high] = [Math.min(low, each - reach[i]), Math.max(high, each + reach[i])];
    });
    [low, high] = [Math.max(low, range[0]), Math.min(high, range[1])];
    const centre = Number.isNaN(value) ? (low + high) / 2 : clip(value, low, high);
    const scale = high > low ? high - low : 1;
    const centred = new Map(weights).set(axis, held.map((each, i) => each * ((mean[i] - centre) / scale)));
    const covariance = this.model.covariance(weights, centred);
    const anywhere = reach.some((each) => each !== 0) ? Math.max(this.model.answer(times(reach)), 0) : 0;
    covariance[2] += (anywhere / 2 / scale) ** 2;
    const of = (records, sum) => centre + scale * (sum / Math.max(records, 1e-9));
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
      return sumOf(this.model.varianceOf([new Map(present).set(column.axis, vector)]));
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
  const rising = levels.flatMap(([value, weight]) => Array(weight).fill(Math.max(value, 0)));
  if (!(rising[rising.length - 1] > 0)) return counts.map((each) => Math.max(each, 0));
  const found = zeros(counts.length);
  order.forEach((code, i) => {
    found[code] = rising[i] - (i ? rising[i - 1] : 0);
  });
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
  const special = column.special.map((value, i) => [value, counts[column.bins + i], i]);
  special.sort((a, b) => a[0] - b[0]);
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
    named(numbers, ["mean", "reach"]);
    named(quantile, ["low", "high", "order"]);
    named(contents, ["edges", "firsts"]);
    if (contents) quantile.at = inBins(contents);
  }
  return new Release(data, data.model && new Model(data.model.facts, arrays, data.model.shape));
}

// SHA-256 of a text, in hexadecimal digits; `crypto.subtle` is not there in every frame.
export function fingerprint(text) {
  const bytes = new TextEncoder().encode(text);
  const rotate = (x, n) => (x >>> n) | (x << (32 - n));
  const primes = [];
  for (let n = 2; primes.length < 64; n += 1) if (primes.every((p) => n % p)) primes.push(n);
  const bits = (x) => ((x - Math.floor(x)) * 2 ** 32) >>> 0;
  const k = primes.map((p) => bits(Math.cbrt(p)));
  const state = primes.slice(0, 8).map((p) => bits(Math.sqrt(p)));
  const length = Math.ceil((bytes.length + 9) / 64) * 64;
  const padded = new Uint8Array(length);
  padded.set(bytes);
  padded[bytes.length] = 128;
  const view = new DataView(padded.buffer);
  view.setBigUint64(length - 8, BigInt(bytes.length * 8));
  const w = new Int32Array(64);
  for (let from = 0; from < length; from += 64) {
    for (let i = 0; i < 16; i += 1) w[i] = view.getInt32(from + 4 * i);
    for (let i = 16; i < 64; i += 1) {
      const a = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >>> 3);
      const b = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >>> 10);
      w[i] = (w[i - 16] + a + w[i - 7] + b) | 0;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i += 1) {
      const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
      const one = (h + s1 + ((e & f) ^ (~e & g)) + k[i] + w[i]) | 0;
      const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
      const two = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((each, i) => {
      state[i] = (state[i] + each) | 0;
    });
  }
  return state.map((each) => (each >>> 0).toString(16).padStart(8, "0")).join("");
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
  const decimals = clip(2 - Math.floor(Math.log10(error)), 0, 12);
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
  const title = short(release.title, 120);
  if (answer.cells) {
    if (question.kind === "cross") {
      return `Records${where} by ${name(question.rows)} and ${name(question.across)}`;
    }
    return `Mean of ${name(question.column)} by ${name(question.rows)}${where && `, of records${where}`}`;
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
  return `According to “${title}” (differentially private${epsilon}), ${what} (${question.level}% interval: ${lower} to ${upper}).`;
}

// ---------------------------------------------------------------- what is downloaded

export function csvOf(lines) {
  const cell = (value) => {
    const words = `${value ?? ""}`;
    return /[",\r\n]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words;
  };
  return `${lines.map((each) => each.map(cell).join(",")).join("\r\n")}\r\n`;
}

// Synthetic rows as the release holds them: as many as it counts, numbers anywhere in their bins.
export function syntheticRows(release, random = Math.random) {
  const { model, columns } = release;
  const n = Math.max(Math.round(model.total), 0);
  const lines = [columns.map((column) => column.name)];
  let passed = 0;
  const start = random();
  for (let row = 0; row < model.masses.length && lines.length <= n; row += 1) {
    passed += model.masses[row] * n;
    while (lines.length <= n && lines.length - 1 + start < passed) {
      lines.push(columns.map((column) => {
        const base = model.rows[column.axis][row];
        const code = column.of ? column.of[base] : base;
        if (code >= column.values) return "";
        if (column.kind === "category") return column.labels[code];
        const special = column.special[code - column.bins];
        if (code >= column.bins && column.unit) return isoDay(special);
        if (code >= column.bins) return column.kind === "date" ? column.labels[code] : special;
        if (!column.contents) return column.texts[code][0];
        const value = column.quantile.at(code, random());
        return column.kind === "date" ? isoDay(value) : value;
      }));
    }
  }
  return lines;
}
