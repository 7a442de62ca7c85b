// Small charts in SVG. Everything is made by the DOM's own functions: no text is ever read as markup.

const SVG = "http://www.w3.org/2000/svg";
const H = 190, LEFT = 44, RIGHT = 8, TOP = 8, BOTTOM = 22;

export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function draw(tag, attributes = {}, text = null) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== null) element.textContent = text;
  return element;
}

export function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value !== 0 && (Math.abs(value) < 0.001 || Math.abs(value) >= 1e6)) return value.toExponential(1);
  return Number(value.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 4 });
}

export function percent(value, digits = 0) {
  return value === null || value === undefined ? "–" : `${(100 * value).toFixed(digits)} %`;
}

function clock(seconds, span) {
  const date = new Date(seconds * 1000);
  return span > 86400 * 2
    ? date.toLocaleDateString([], { month: "short", day: "numeric" })
    : date.toLocaleTimeString([], { hour12: false, hour: "2-digit", minute: "2-digit", ...(span < 600 ? { second: "2-digit" } : {}) });
}

function ticks(low, high) {
  const step = 10 ** Math.floor(Math.log10((high - low) / 2 || 1));
  const unit = [1, 2, 5, 10].map((m) => m * step).find((s) => (high - low) / s <= 4) || 10 * step;
  const found = [];
  for (let tick = Math.ceil(low / unit) * unit; tick <= high + 1e-12; tick += unit) found.push(tick);
  return found;
}

// Lines with bands over time: series is [{colour, points: [{x, y, low, high}]}].
export function lines(series, { width: W = 520, low = null, high = null, label = "" } = {}) {
  const points = series.flatMap((one) => one.points);
  if (points.length === 0) return make("p", { class: "quiet" }, "Nothing yet.");
  const xs = points.map((p) => p.x);
  let [x0, x1] = [Math.min(...xs), Math.max(...xs)];
  if (x0 === x1) { x0 -= 1; x1 += 1; }
  // The first quarter rests on few rewards: its wide bands may be cut off, and squeeze nothing.
  const late = points.filter((p) => p.x >= x0 + (x1 - x0) / 4);
  const ys = late.flatMap((p) => [p.y, p.low ?? p.y, p.high ?? p.y]);
  let y0 = low ?? Math.min(...ys), y1 = high ?? Math.max(...ys);
  if (y0 === y1) { y0 -= 0.5; y1 += 0.5; }
  const sx = (x) => LEFT + ((x - x0) / (x1 - x0)) * (W - LEFT - RIGHT);
  const sy = (y) => TOP + (1 - (Math.min(Math.max(y, y0), y1) - y0) / (y1 - y0)) * (H - TOP - BOTTOM);
  const svg = frame(W, label, x0, x1, y0, y1, sy);
  for (const { colour, points: line } of series) {
    const banded = line.filter((p) => p.low !== undefined && p.low !== null);
    if (banded.length > 1) {
      const edge = [...banded.map((p) => `${sx(p.x)},${sy(p.high)}`), ...banded.reverse().map((p) => `${sx(p.x)},${sy(p.low)}`)];
      svg.append(draw("polygon", { class: `band fill k${colour}`, points: edge.join(" ") }));
    }
    if (line.length > 1) svg.append(draw("polyline", { class: `line k${colour}`, points: line.map((p) => `${sx(p.x)},${sy(p.y)}`).join(" ") }));
    else for (const p of line) svg.append(draw("circle", { class: `fill k${colour}`, cx: sx(p.x), cy: sy(p.y), r: 3 }));
  }
  return svg;
}

// Shares stacked to one: steps is [{x, shares: [..]}], one share for each colour.
export function stacked(steps, colours, { width: W = 520, label = "" } = {}) {
  if (steps.length === 0) return make("p", { class: "quiet" }, "Nothing yet.");
  const all = steps.length === 1 ? [steps[0], { ...steps[0], x: steps[0].x + 1 }] : steps;
  const x0 = all[0].x, x1 = all[all.length - 1].x;
  const sx = (x) => LEFT + ((x - x0) / (x1 - x0 || 1)) * (W - LEFT - RIGHT);
  const sy = (y) => TOP + (1 - y) * (H - TOP - BOTTOM);
  const svg = frame(W, label, x0, x1, 0, 1, sy, percent);
  const below = all.map(() => 0);
  colours.forEach((colour, k) => {
    const upper = all.map((step, i) => `${sx(step.x)},${sy(below[i] + step.shares[k])}`);
    const lower = all.map((step, i) => `${sx(step.x)},${sy(below[i])}`).reverse();
    svg.append(draw("polygon", { class: `fill k${colour}`, points: [...upper, ...lower].join(" ") }));
    all.forEach((step, i) => { below[i] += step.shares[k]; });
  });
  return svg;
}

function frame(W, label, x0, x1, y0, y1, sy, written = short) {
  const svg = draw("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label });
  for (const tick of ticks(y0, y1)) {
    svg.append(draw("line", { class: "axis", x1: LEFT, x2: W - RIGHT, y1: sy(tick), y2: sy(tick) }));
    svg.append(draw("text", { x: LEFT - 6, y: sy(tick) + 4, "text-anchor": "end" }, written(tick)));
  }
  svg.append(draw("text", { x: LEFT, y: H - 4 }, clock(x0, x1 - x0)));
  svg.append(draw("text", { x: W - RIGHT, y: H - 4, "text-anchor": "end" }, clock(x1, x1 - x0)));
  return svg;
}

// Means with intervals, one row for each arm: rows is [{label, colour, mean, low, high, note}].
export function intervals(rows, { width = 420, names = true, label = "" } = {}) {
  const known = rows.filter((row) => row.mean !== null && row.mean !== undefined);
  const ends = known.flatMap((row) => [row.low ?? row.mean, row.high ?? row.mean]);
  let y0 = Math.min(...ends), y1 = Math.max(...ends);
  if (!(y1 > y0)) { y0 -= 0.5; y1 += 0.5; }
  const left = names ? 120 : 4, right = names ? 122 : 4, height = 22;
  const sx = (value) => left + ((value - y0) / (y1 - y0)) * (width - left - right);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${rows.length * height}`, role: "img", "aria-label": label });
  rows.forEach((row, i) => {
    const y = i * height + height / 2;
    if (names) {
      const text = row.label.length > 17 ? `${row.label.slice(0, 16)}…` : row.label;
      svg.append(draw("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, text));
      svg.append(draw("text", { x: width, y: y + 4, "text-anchor": "end" }, row.note ?? short(row.mean)));
    }
    if (row.mean === null || row.mean === undefined) return;
    if (row.low !== null && row.low !== undefined) {
      svg.append(draw("line", { class: `line k${row.colour}`, x1: sx(row.low), x2: sx(row.high), y1: y, y2: y }));
    }
    svg.append(draw("circle", { class: `fill k${row.colour}`, cx: sx(row.mean), cy: y, r: 4 }));
  });
  return svg;
}

export function legend(entries) {
  return make("div", { class: "legend" }, ...entries.map(({ label, colour }) =>
    make("span", { title: label }, make("i", { class: `dot k${colour}` }), label)));
}
