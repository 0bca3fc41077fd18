// The page of a release: charts, questions and answers, drawn from what `page.mjs` reads.
//
// Texts of a release become text nodes, never HTML: names may hold anything. Both files are one script
// in a page, without these lines of import.

import {
  MOST_GROUPS, clip, csvOf, english, firstAtLeast, inWords, isoDay, python, quoted, read, short, shown,
  spanLabel,
} from "./page.mjs";

// ---------------------------------------------------------------- drawing

// An element with attributes, listeners (`onclick`) and children; texts are text nodes.
function make(tag, attributes = {}, ...children) {
  const drawn = DRAWN.has(tag);
  const found = drawn ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") found.addEventListener(name.slice(2), value);
    else if (value === true) found.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) found.setAttribute(name, value);
  }
  found.append(...children.filter((child) => child !== null));
  return found;
}

const DRAWN = new Set(["svg", "g", "rect", "line", "text", "circle"]);
const WIDTH = 320;
const LETTER = 6.2;

const text = (x, y, words, more = {}) => make("text", { x, y, ...more }, words);
const box = (kind, x, y, width, height, rx = 0) => make("rect", { class: kind, x, y, width, height, rx });
const line = (kind, x1, y1, x2, y2) => make("line", { class: kind, x1, y1, x2, y2 });
const titled = (group, words) => {
  group.prepend(Object.assign(document.createElementNS("http://www.w3.org/2000/svg", "title"), { textContent: words }));
  return group;
};

const soft = (words, tag = "p") => make(tag, { class: "soft" }, words);
const cut = (words, most) => make("span", { class: "cut" }, short(words, most));
const button = (words, onclick, more = {}) => make("button", { type: "button", onclick, ...more }, words);
const columnHead = (words, most) => make("th", { scope: "col" }, cut(words, most));
const rowHead = (words, most) => make("th", { scope: "row" }, cut(words, most));
const scrolled = (label, head, rows) =>
  make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
    make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows)));

const withMargin = (count, margin) =>
  english(Math.round(count)) + (margin === null ? "" : ` ± ${english(Math.round(margin))}`);

// The bars of a column; `pick` is told which bar was chosen, `picked` says which are.
function chart(column, pick, picked) {
  const { bars } = column;
  const most = Math.max(1e-9, ...bars.map(([, , count, margin]) => count + (margin || 0)));
  const named = column.kind === "category";
  const groups = [];
  const words = [];
  const height = named ? 30 * bars.length : 136;
  const [top, base] = [18, height - 20];
  const wide = WIDTH / bars.length;
  bars.forEach(([label, , count, margin], i) => {
    const share = (x) => clip(x, 0, most) / most;
    const [middle, low, high] = [count, count - (margin || 0), count + (margin || 0)].map(share);
    const number = withMargin(count, margin);
    const on = picked(i);
    const group = make("g", {
      class: `pickable${on ? " picked" : ""}`,
      role: "button",
      tabindex: i ? -1 : 0,
      "aria-pressed": on ? "true" : "false",
      "aria-label": `${short(label, 200)}: ${number} records`,
      onclick: () => pick(i),
      onkeydown: (event) => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (step) {
          event.preventDefault();
          const next = groups[clip(i + step, 0, groups.length - 1)];
          groups.forEach((each) => each.setAttribute("tabindex", each === next ? 0 : -1));
          next.focus();
        } else if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          pick(i);
        }
      },
    });
    if (named) {
      const y = 30 * i;
      const room = Math.floor((WIDTH - LETTER * number.length) / LETTER) - 4;
      // Texts lie above the bar and not in it, whose name says the same in full.
      words.push(
        text(2, y + 13, short(label, Math.max(room, 4)), { class: "strong", "aria-hidden": "true" }),
        text(WIDTH - 2, y + 13, number, { "text-anchor": "end", "aria-hidden": "true" }),
      );
      group.append(box("hit", 0, y + 1, WIDTH, 28, 3), box("bar", 0, y + 18, middle * WIDTH, 8));
      if (margin) group.append(line("band", low * WIDTH, y + 22, high * WIDTH, y + 22));
    } else {
      const at = (x) => base - (base - top) * x;
      const gap = Math.min(1, 0.1 * wide);
      group.append(
        box("hit", i * wide, top, wide, base - top),
        box("bar", i * wide + gap, at(middle), wide - 2 * gap, base - at(middle)),
      );
      if (margin) group.append(line("band", (i + 0.5) * wide, at(low), (i + 0.5) * wide, at(high)));
    }
    groups.push(titled(group, `${short(label, 200)}: ${number}`));
  });
  const label = `Records by ${short(column.name, 200)}`;
  const found = make("svg", { viewBox: `0 0 ${WIDTH} ${Math.max(height, 1)}`, role: "group", "aria-label": label });
  if (!named) found.append(line("axis", 0, top, WIDTH, top), text(0, top - 5, english(Math.round(most))));
  found.append(...groups, ...words);
  if (!named) {
    found.append(line("axis", 0, base, WIDTH, base));
    let free = WIDTH + 1;
    for (const [place, words] of [...ticks(column)].reverse()) {
      const long = LETTER * words.length;
      const x = clip((place + 0.5) * wide - long / 2, 0, Math.max(WIDTH - long, 0));
      if (x + long <= free) found.append(text(x, height - 5, words));
      if (x + long <= free) free = x - LETTER;
    }
  }
  return found;
}

// Texts below the first bar, at each third, and of the end or of what is no number.
function ticks(column) {
  const { bars } = column;
  const n = bars.length;
  const others = bars.filter(([, codes]) => Array.isArray(codes) && codes[0] >= column.bins).length;
  const bins = n - others;
  const found = new Map();
  for (const k of [0, Math.floor(bins / 3), Math.floor((2 * bins) / 3)]) {
    if (k < bins - 1 || k === 0) found.set(k, short(bars[k][0].split(" to ")[0], 11));
  }
  const end = others ? bars.slice(bins).map(([label]) => label).join(", ") : bars[n - 1][0].split(" to ").pop();
  found.set(n - 1, short(end, 14));
  return found;
}

// The interval of an answer on its scale.
function interval(cell, texts, bounds) {
  const finite = [cell.lower, cell.value, cell.upper].filter(Number.isFinite);
  let [low, high] = bounds || [Math.min(...finite), Math.max(...finite)];
  if (!bounds) {
    const room = (high - low || Math.abs(high) || 1) * 0.35;
    [low, high] = [low >= 0 ? Math.max(low - room, 0) : low - room, high + room];
  }
  const x = (value) => 8 + (304 * (clip(value, low, high) - low)) / (high - low || 1);
  const ends = [x(cell.lower), x(cell.upper)];
  const found = make(
    "svg",
    { viewBox: "0 0 320 46", role: "img", "aria-label": `Interval from ${texts[1]} to ${texts[2]}` },
    line("axis", 8, 14, 312, 14),
    line("reach", ends[0], 14, ends[1], 14),
  );
  if (Number.isFinite(cell.value)) found.append(make("circle", { class: "dot", cx: x(cell.value), cy: 14, r: 6 }));
  const [left, right] = [short(texts[1], 22), short(texts[2], 22)];
  const long = [left, right].map((each) => LETTER * each.length);
  let from = clip(ends[0] - long[0] / 2, 0, WIDTH - long[0]);
  let to = clip(ends[1] - long[1] / 2, 0, WIDTH - long[1]);
  if (from + long[0] + 12 > to) {
    const middle = (ends[0] + ends[1]) / 2;
    from = clip(middle - long[0] - 6, 0, WIDTH - long[0] - long[1] - 12);
    to = from + long[0] + 12;
  }
  found.append(text(from, 40, left), text(to, 40, right));
  return found;
}

// ---------------------------------------------------------------- the page

const KINDS_OF_QUESTIONS = [
  ["count", "How many records"],
  ["share", "Share of records"],
  ["mean", "Mean of a column"],
  ["quantile", "Median or quantile"],
  ["cross", "Cross table of two columns"],
  ["means", "Means by group"],
];

class Desk {
  constructor(release) {
    this.release = release;
    this.columns = release.columns;
    const number = this.columns.findIndex((column) => column.numbers);
    const value = this.columns.findIndex((column) => column.quantile);
    this.question = {
      kind: "count",
      column: number >= 0 ? number : Math.max(value, 0),
      q: 0.5,
      rows: 0,
      across: Math.min(1, this.columns.length - 1),
      level: release.data.levels.some(([each]) => each === release.data.level) ? release.data.level : 95,
      where: new Map(),
    };
    this.fromLink();
  }

  start() {
    this.drawAsk();
    this.drawColumns();
    this.changed(false);
    window.addEventListener("hashchange", () => {
      if (this.fromLink()) {
        this.drawAsk();
        this.changed(false);
      }
    });
  }

  // The question of a link; false where there is none, or none that can be read.
  fromLink() {
    if (!window.location.hash.startsWith("#q=")) return false;
    try {
      const asked = JSON.parse(decodeURIComponent(window.location.hash.slice(3)));
      const within = (each, n) => Number.isInteger(each) && each >= 0 && each < n;
      const place = (each) => within(each, this.columns.length);
      const fits = ([at, { codes, from, to }]) => {
        if (!place(at)) return false;
        const { size, bins } = this.columns[at];
        if (codes) return codes.length > 0 && codes.every((code) => within(code, size));
        return within(from, bins) && within(to, bins) && from <= to;
      };
      const { kind, column, q, rows, across, level } = asked;
      const known = KINDS_OF_QUESTIONS.some(([each]) => each === kind) && [column, rows, across].every(place);
      const leveled = this.release.data.levels.some(([each]) => each === level);
      if (!(known && leveled && q > 0 && q < 1 && asked.where.every(fits))) return false;
      const kept = ({ codes, from, to, among }) =>
        ({ ...(codes ? { codes } : { from, to }), ...(among ? { among: true } : {}) });
      const where = new Map(asked.where.map(([at, condition]) => [at, kept(condition)]));
      this.question = { kind, column, q, rows, across, level, where };
      return true;
    } catch {
      return false;
    }
  }

  link() {
    const asked = { ...this.question, where: [...this.question.where] };
    return `#q=${encodeURIComponent(JSON.stringify(asked))}`;
  }

  drawAsk() {
    const section = document.getElementById("ask");
    this.fields = make("div", { class: "fields" });
    this.conditions = make("div", {});
    this.answer = make("div", { class: "panel answer", role: "region", "aria-label": "Answer", "aria-live": "polite" });
    const panel = make("div", { class: "panel" }, this.fields, this.conditions);
    const asking = make("div", { class: "asking" }, panel, this.answer);
    section.replaceChildren(make("h2", { id: "ask-title" }, "Ask"), asking);
    this.drawFields();
    this.drawConditions();
  }

  select(label, options, chosen, onChange) {
    const field = make("select", { onchange: () => onChange(field.value) });
    for (const [value, words] of options) {
      field.append(make("option", { value, selected: `${value}` === `${chosen}` }, short(words, 60)));
    }
    return make("label", {}, label, field);
  }

  set(change) {
    Object.assign(this.question, change);
    this.drawFields();
    this.changed();
  }

  columnSelect(label, key, fits) {
    const options = this.columns.map((column, place) => [place, column.name]).filter(([place]) => fits(this.columns[place]));
    if (options.length && !options.some(([place]) => place === this.question[key])) [[this.question[key]]] = options;
    return this.select(label, options, this.question[key], (value) => this.set({ [key]: Number(value) }));
  }

  drawFields() {
    const { question, release } = this;
    const active = document.activeElement && this.fields.contains(document.activeElement)
      ? [...this.fields.querySelectorAll("select, input")].indexOf(document.activeElement) : -1;
    const kinds = this.select("Question", KINDS_OF_QUESTIONS, question.kind, (kind) => {
      this.set({ kind });
      this.drawConditions();
    });
    const fields = [kinds];
    const grouped = (column) => column.kind !== "date" || column.unit || column.size <= MOST_GROUPS;
    if (question.kind === "mean" || question.kind === "means") {
      fields.push(this.columnSelect("Column", "column", (column) => column.numbers));
    }
    if (question.kind === "quantile") {
      fields.push(this.columnSelect("Column", "column", (column) => column.quantile));
      const q = make("input", {
        type: "number", min: 1, max: 99, step: 1, value: Math.round(100 * question.q),
        onchange: () => this.set({ q: clip(Math.round(Number(q.value)) || 50, 1, 99) / 100 }),
      });
      fields.push(make("label", {}, "Percent below it", q));
    }
    if (question.kind === "cross") {
      fields.push(this.columnSelect("Rows", "rows", grouped), this.columnSelect("Across", "across", grouped));
    }
    if (question.kind === "means") fields.push(this.columnSelect("By", "rows", grouped));
    const levels = release.data.levels.map(([each]) => [each, `${each}%`]);
    fields.push(this.select("Confidence", levels, question.level, (level) => this.set({ level: Number(level) })));
    this.fields.replaceChildren(...fields);
    if (active >= 0) this.fields.querySelectorAll("select, input")[active]?.focus();
  }

  redraw() {
    this.drawConditions();
    this.changed();
  }

  drawConditions() {
    const { question } = this;
    const parts = [...question.where.keys()].map((place) => this.editor(place));
    const free = this.columns.map((column, place) => [place, column.name]).filter(([place]) => !question.where.has(place));
    if (free.length) {
      const add = this.select("Only records where", [["", "Choose a column, or click on charts"], ...free], "", (value) => {
        if (value === "") return;
        const place = Number(value);
        const column = this.columns[place];
        question.where.set(place, column.kind === "category" ? { codes: [0] } : { from: 0, to: column.bins - 1 });
        this.drawConditions();
        this.conditions.querySelector(`[data-place="${place}"] input, [data-place="${place}"] select`)?.focus();
        this.changed();
      });
      add.classList.add("told");
      parts.push(add);
    }
    if (question.where.size) {
      const clear = () => {
        question.where.clear();
        this.redraw();
      };
      parts.push(make("div", { class: "row" }, button("Remove all conditions", clear)));
    }
    this.conditions.replaceChildren(...parts);
  }

  editor(place) {
    const { question } = this;
    const column = this.columns[place];
    const condition = question.where.get(place);
    const put = (change) => {
      const { among } = question.where.get(place);
      question.where.set(place, { ...change, ...(among ? { among } : {}) });
      this.changed();
    };
    const body = [];
    const extras = [...Array(column.size).keys()].slice(column.kind === "category" ? 0 : column.bins);
    const chosen = new Set(condition.codes || []);
    const boxes = make("div", { class: "choices", role: "group", "aria-label": `Values of ${short(column.name, 100)}` });
    const fill = (wanted) => {
      const found = extras.filter((code) => column.labels[code].toLowerCase().includes(wanted.toLowerCase()));
      boxes.replaceChildren(
        ...found.slice(0, 200).map((code) => {
          const box = make("input", {
            type: "checkbox", checked: chosen.has(code),
            onchange: () => {
              if (box.checked) chosen.add(code);
              else chosen.delete(code);
              if (chosen.size) put({ codes: [...chosen].sort((a, b) => a - b) });
              else if (column.kind === "category") {
                box.checked = true;
                chosen.add(code);
              } else put({ from: 0, to: column.bins - 1 });
              if (column.kind !== "category") this.drawConditions();
            },
          });
          return make("label", {}, box, cut(column.labels[code], 300));
        }),
        ...(found.length > 200 ? [soft(`${found.length - 200} more: write a part of the name.`)] : []),
      );
    };
    if (column.kind !== "category") body.push(this.range(place, condition, put));
    if (extras.length > 12) {
      const search = make("input", { type: "search", placeholder: "a part of the name", oninput: () => fill(search.value) });
      body.push(make("label", {}, `Find among ${english(extras.length)} values`, search));
    }
    if (extras.length) {
      if (column.kind !== "category") body.push(soft("or instead"));
      fill("");
      body.push(boxes);
    }
    if (question.kind === "share") {
      const box = make("input", {
        type: "checkbox", checked: condition.among,
        onchange: () => {
          const { among, ...now } = question.where.get(place);
          question.where.set(place, box.checked ? { ...now, among: true } : now);
          this.changed();
        },
      });
      body.push(make("label", { class: "tick" }, box, "The share is of these records"));
    }
    const leave = () => {
      question.where.delete(place);
      this.redraw();
    };
    const remove = button("Remove", leave, { "aria-label": `Remove the condition on ${short(column.name, 100)}` });
    const legend = make("legend", {}, cut(column.name, 200));
    return make("fieldset", { "data-place": place }, legend, ...body, make("div", { class: "row" }, remove));
  }

  // From and to: ends of bins, so that what is asked is what was counted.
  range(place, condition, put) {
    const column = this.columns[place];
    const at = condition.codes ? { from: null, to: null } : condition;
    const told = make("p", { class: "soft" });
    const tell = ({ from, to }) => {
      told.textContent = from === null ? "" : `Covered: ${spanLabel(column, from, to)}, whole bins.`;
    };
    tell(at);
    if (column.texts && !column.unit) {
      const options = (end) => column.texts.map((each, bin) => [bin, each[end]]);
      const both = ["from", "to"].map((name, end) =>
        this.select(name === "from" ? "From" : "To", options(end), at[name] ?? (end ? column.bins - 1 : 0), (value) => {
          const now = { from: at.from ?? 0, to: at.to ?? column.bins - 1, [name]: Number(value) };
          at.from = Math.min(now.from, now.to);
          at.to = Math.max(now.from, now.to);
          put({ from: at.from, to: at.to });
          this.drawConditions();
        }));
      return make("div", {}, make("div", { class: "between" }, ...both), told);
    }
    const date = column.kind === "date";
    const written = (value) => (date ? isoDay(value) : value);
    const number = (words) => (date ? Date.parse(words) / 86400000 : Number(words));
    const field = (name, value) => make("input", {
        type: date ? "date" : "number",
        step: date ? null : column.step || "any",
        value: value === null ? "" : written(value),
        onchange: () => {
          const ends = [low.value, high.value].map((words) => (words === "" ? NaN : number(words)));
          const last = column.bins - 1;
          let from = Math.max(column.low.findLastIndex((low) => low <= ends[0]), 0);
          let to = Number.isNaN(ends[1]) ? last : firstAtLeast(column.high.slice(0, last), ends[1]);
          if (from > to) [from, to] = name === "from" ? [from, from] : [to, to];
          low.value = written(column.low[from]);
          high.value = written(column.high[to]);
          tell({ from, to });
          put({ from, to });
        },
      });
    const low = field("from", at.from === null ? null : column.low[at.from]);
    const high = field("to", at.to === null ? null : column.high[at.to]);
    const both = [make("label", {}, "From", low), make("label", {}, "To", high)];
    return make("div", {}, make("div", { class: "between" }, ...both), told);
  }

  changed(link = true) {
    try {
      if (link) window.history.replaceState(null, "", this.link());
    } catch {
      // A frame without an address has no links.
    }
    this.drawAnswer();
    this.cards?.forEach((draw) => draw());
  }

  drawAnswer() {
    const { release, question } = this;
    const code = `import skdp\n\nrelease = skdp.Synopsis.load(${quoted(release.data.source)})\n${python(release, question)}`;
    const refused = release.model ? release.refuse(question) : "This page cannot answer this release.";
    if (refused) {
      this.answer.replaceChildren(
        make("p", {}, make("strong", {}, refused)),
        ...(release.model ? []
          : [make("p", {}, "Its numbers are of a kind that only Python computes with. This line gives the answer:")]),
        make("pre", { tabindex: 0 }, code),
        make("div", { class: "row" }, this.copy("Copy as Python", () => code)),
      );
      return;
    }
    const answer = release.answer(question);
    const words = inWords(release, question, answer);
    const parts = answer.cells ? [make("h3", {}, words), this.drawTable(answer)] : this.drawOne(answer, words);
    parts.push(
      make("details", {}, make("summary", {}, "What the interval covers"), soft(answer.text)),
      make("details", {}, make("summary", {}, "As Python"), make("pre", { tabindex: 0 }, code)),
      make("div", { class: "row" },
        answer.cells ? null : this.copy("Copy the sentence", () => words),
        this.copy("Copy a link", () => window.location.href.split("#")[0] + this.link()),
        this.copy("Copy as Python", () => code),
        button("Download as CSV", () => download("answer.csv", this.csv(answer))),
      ),
    );
    this.answer.replaceChildren(...parts);
  }

  drawOne(answer, words) {
    const { release, question } = this;
    const texts = shown(release, question, answer);
    const column = release.columns[question.column];
    const category = question.kind === "quantile" && column.kind === "category";
    const bounds = category ? [-0.5, column.values - 0.5] : question.kind === "share" ? [0, 1] : null;
    const parts = [
      make("p", { class: "value" }, cut(texts[0], 120)),
      make("p", {}, `${question.level}% interval: ${short(texts[1], 60)} to ${short(texts[2], 60)}`),
      interval(answer, texts, bounds),
    ];
    if (question.kind === "count" && answer.value < 0) {
      parts.push(soft("Noise may make a small count negative: read it as none, or few."));
    } else if (question.kind === "count" && answer.lower === 0 && answer.upper > 0) {
      parts.push(soft("This cannot be told from zero: the noise is as large."));
    }
    return [...parts, make("blockquote", {}, words)];
  }

  drawTable(answer) {
    const { release, question } = this;
    const most = Math.max(1e-300, ...answer.cells.map((cell) => cell.value || 0));
    const draw = (cell) => {
      const [value, lower, upper] = shown(release, question, cell);
      const td = make("td", {}, value, soft(`${lower} to ${upper}`, "span"));
      if (question.kind === "cross") {
        const shade = clip(cell.value / most, 0, 1);
        td.style.backgroundColor = `rgba(var(--plus), ${(0.32 * shade).toFixed(3)})`;
        td.className = "shaded";
      }
      return td;
    };
    const [rows, across] = answer.groups;
    const head = across ? across.map(({ label }) => columnHead(label, 120)) : [make("th", { scope: "col" }, "Mean")];
    const width = head.length;
    const corner = columnHead(release.columns[question.rows].name, 60);
    const body = rows.map(({ label }, i) =>
      make("tr", {}, rowHead(label, 120),
        ...answer.cells.slice(i * width, (i + 1) * width).map(draw)));
    return scrolled("Table of the answer", [corner, ...head], body);
  }

  csv(answer) {
    const { release, question } = this;
    const { kind } = release.columns[question.column];
    const named = question.kind === "quantile" ? kind !== "number" : question.kind.startsWith("mean") && kind === "date";
    const value = (cell) => named ? shown(release, question, cell)
      : [cell.value, cell.lower, cell.upper].map((x) => (Number.isFinite(x) ? x : ""));
    if (!answer.cells) {
      const row = [python(release, question), ...value(answer), question.level / 100];
      return csvOf([["question", "value", "lower", "upper", "level"], row]);
    }
    const names = release.by(question).map((place) => release.columns[place].name);
    const [rows, across] = answer.groups;
    const lines = answer.cells.map((cell, i) => {
      const labels = across ? [rows[Math.floor(i / across.length)].label, across[i % across.length].label] : [rows[i].label];
      return [...labels, ...value(cell)];
    });
    return csvOf([[...names, question.kind === "cross" ? "count" : "mean", "lower", "upper"], ...lines]);
  }

  copy(words, what) {
    const found = button(words, async () => {
      try {
        await navigator.clipboard.writeText(what());
        found.textContent = "Copied";
      } catch {
        const area = make("textarea", { "aria-label": words, rows: 3 });
        area.value = what();
        found.after(area);
        area.select();
        found.textContent = "Copy what is marked";
      }
      setTimeout(() => {
        found.textContent = words;
      }, 2500);
    });
    return found;
  }

  drawColumns() {
    const { release } = this;
    const cards = make("div", { class: "cards" });
    this.cards = this.columns.map((column, place) => {
      const holder = make("div", {});
      let drawn = null;
      const draw = () => {
        const now = JSON.stringify(this.question.where.get(place) || null);
        if (now === drawn) return;
        drawn = now;
        const focused = holder.contains(document.activeElement)
          ? [...holder.querySelectorAll(".pickable")].indexOf(document.activeElement) : -1;
        holder.replaceChildren(chart(column, (i) => this.pick(place, i), (i) => this.picked(place, i)));
        if (focused >= 0) holder.querySelectorAll(".pickable")[focused].focus();
      };
      const table = make("details", {}, make("summary", {}, "Numbers"));
      table.addEventListener("toggle", () => {
        if (table.children.length > 1) return;
        const rows = column.bars.map(([label, , count, margin]) =>
          make("tr", {}, make("th", { scope: "row" }, short(label, 300)), make("td", {}, withMargin(count, margin))));
        table.append(make("table", {}, make("tbody", {}, ...rows)));
      });
      cards.append(make("div", { class: "card" }, make("figure", {},
        make("h3", {}, cut(column.name, 300)),
        holder,
        make("figcaption", {}, cut(column.caption, 300))), table));
      return draw;
    });
    const parts = [
      make("h2", { id: "columns-title" }, "Every column"),
      make("p", {}, `A bar is an estimated number of records, the line on it the margin of error at ${release.data.level}%. ` +
        "Click on bars to ask for these records; click again to take them out."),
      cards,
    ];
    document.getElementById("columns").replaceChildren(...parts);
  }

  barCodes(place, i) {
    const codes = this.columns[place].bars[i][1];
    return Array.isArray(codes) ? codes : Array.from({ length: codes.to - codes.from + 1 }, (_, k) => codes.from + k);
  }

  picked(place, i) {
    const condition = this.question.where.get(place);
    if (!condition) return false;
    const codes = this.barCodes(place, i);
    const chosen = condition.codes ? new Set(condition.codes) : null;
    return codes.every((code) =>
      chosen ? chosen.has(code) : condition.from <= code && code <= condition.to && code < this.columns[place].bins);
  }

  pick(place, i) {
    const { question } = this;
    const column = this.columns[place];
    const condition = question.where.get(place);
    const among = condition?.among ? { among: true } : {};
    const codes = this.barCodes(place, i);
    const bins = column.kind !== "category" && codes[0] < column.bins;
    const on = this.picked(place, i);
    let next = null;
    if (bins) {
      const [low, high] = [codes[0], codes[codes.length - 1]];
      if (!condition || condition.codes) next = { from: low, to: high };
      else if (!on) next = { from: Math.min(condition.from, low), to: Math.max(condition.to, high) };
      // At an end the range becomes shorter, in the middle it becomes this bar.
      else if (condition.from === low && condition.to === high) next = null;
      else if (condition.from === low) next = { from: high + 1, to: condition.to };
      else if (condition.to === high) next = { from: condition.from, to: low - 1 };
      else next = { from: low, to: high };
    } else {
      const others = (condition?.codes || []).filter((code) => !codes.includes(code));
      const chosen = on ? others : [...others, ...codes];
      if (chosen.length) next = { codes: chosen.sort((a, b) => a - b) };
    }
    if (next === null) question.where.delete(place);
    else question.where.set(place, { ...next, ...among });
    this.redraw();
  }
}

function download(name, words) {
  const address = URL.createObjectURL(new Blob([words], { type: "text/csv" }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// Parts of the page, also in a frame whose address is not its own.
function follow(event) {
  const target = document.querySelector(event.currentTarget.getAttribute("href"));
  if (!target) return;
  event.preventDefault();
  target.setAttribute("tabindex", "-1");
  target.focus({ preventScroll: true });
  target.scrollIntoView();
}

async function start() {
  document.querySelectorAll('a[href^="#"]').forEach((link) => link.addEventListener("click", follow));
  const told = document.getElementById("damage");
  try {
    const words = document.getElementById("data").textContent;
    const release = await read(words);
    release.title = document.title;
    release.epsilon = release.data.epsilon;
    new Desk(release).start();
  } catch (error) {
    told.textContent = `This page is damaged and cannot be read: ${error.message} Ask for another copy.`;
    told.hidden = false;
  }
  document.documentElement.dataset.ready = "yes";
}

if (typeof document !== "undefined") start();
