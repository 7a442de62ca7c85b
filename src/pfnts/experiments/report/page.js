"use strict";
// Everything here adds to a page that can be read without it: sorting, curves and colours.
(() => {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("data").textContent);
  const SPACE = "http://www.w3.org/2000/svg";

  function make(name, attributes = {}, parent = null, text = null) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== null) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  }

  function draw(name, attributes, parent, text = null) {
    const node = document.createElementNS(SPACE, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== null) node.textContent = text;
    parent.append(node);
    return node;
  }

  // ---- colours of the page ----
  const system = matchMedia("(prefers-color-scheme: dark)");
  const theme = document.getElementById("theme");
  const remember = {
    // Storage may be forbidden for files; the switch works without it.
    get() { try { return localStorage.getItem("pfnts-theme"); } catch { return null; } },
    set(value) { try { localStorage.setItem("pfnts-theme", value); } catch { /* not kept */ } },
  };
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  function nameTheme() {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
  }
  if (["light", "dark"].includes(remember.get())) root.dataset.theme = remember.get();
  theme.hidden = false;
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remember.set(root.dataset.theme);
    nameTheme();
  });
  system.addEventListener("change", nameTheme);
  nameTheme();

  // ---- tables ----
  function sortBy(table, column) {
    const heads = [...table.tHead.rows[0].cells];
    const head = heads[column];
    const numeric = head.classList.contains("num");
    const turn = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", turn === 1 ? "ascending" : "descending");
    const key = (row) => (numeric ? parseFloat(row.cells[column].dataset.value) : row.cells[column].textContent);
    const compare = (a, b) => {
      const [left, right] = [key(a), key(b)];
      if (!numeric) return turn * left.localeCompare(right);
      // What is missing stays at the end, whichever way round.
      return Number.isNaN(left) - Number.isNaN(right) || turn * (left - right) || 0;
    };
    table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) =>
      head.querySelector("button").addEventListener("click", () => sortBy(table, column)));
  }

  // ---- scales ----
  function scale(low, high, from, to, log) {
    const f = log ? Math.log10 : (v) => v;
    const [a, b] = [f(low), f(high)];
    return (v) => from + ((f(v) - a) / (b - a || 1)) * (to - from);
  }

  function ticks(low, high, log, wanted) {
    if (log) {
      const fine = Math.log10(high / low) < 2 ? [1, 2, 5] : [1];
      const found = [];
      for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++) {
        for (const m of fine) {
          const tick = m * 10 ** p;
          if (tick >= low * 0.999 && tick <= high * 1.001) found.push(tick);
        }
      }
      return found;
    }
    const rough = (high - low || 1) / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(i * step);
    return found;
  }

  function short(value) {
    const size = Math.abs(value);
    if (size >= 1000) return `${parseFloat((value / 1000).toPrecision(3))}k`;
    return `${parseFloat(value.toPrecision(3))}`;
  }

  function exact(value) {
    const size = Math.abs(value);
    const digits = size < 1 ? 4 : size < 999.95 ? 1 : 0;
    return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  }

  // Labels move apart until none touch: clusters are centred on what they name as far as there is room, and
  // merged where they overlap.
  function spaced(heights, gap, top, bottom) {
    const order = heights.map((_, i) => i).sort((a, b) => heights[a] - heights[b]);
    const clusters = [];
    const start = (c) => {
      const long = gap * (c.of.length - 1);
      return Math.max(top, Math.min(bottom - long, c.sum / c.of.length - long / 2));
    };
    for (const i of order) {
      clusters.push({ sum: heights[i], of: [i] });
      while (clusters.length > 1) {
        const [last, before] = [clusters.at(-1), clusters.at(-2)];
        if (start(last) - (start(before) + gap * (before.of.length - 1)) >= gap) break;
        clusters.splice(-2, 2, { sum: before.sum + last.sum, of: [...before.of, ...last.of] });
      }
    }
    const placed = [];
    for (const c of clusters) c.of.forEach((i, n) => { placed[i] = start(c) + gap * n; });
    return placed;
  }

  // A band is sent as its half width where it is symmetric.
  function unpack(line) {
    if (!line.sd) return line;
    const edge = (sign) => line.y.map((v, i) => (line.sd[i] === null ? null : v + sign * line.sd[i]));
    return { ...line, low: edge(-1), high: edge(1) };
  }

  // ---- one panel ----
  function addPanel(board, state, panel, grid) {
    const card = make("section", { class: "card" }, grid);
    const header = make("header", {}, card);
    make("h3", {}, header, panel.title);
    if (panel.tag) make("span", { class: "tag" }, header, panel.tag);
    const enlarge = make("button", { class: "enlarge", type: "button", "aria-label": `Enlarge ${panel.title}`, "aria-pressed": "false" }, header, "⤢");
    const plot = draw("svg", { class: "plot", tabindex: "0", role: "img", "aria-label": `${panel.title}: ${board.ylabel} over ${board.xlabel}; arrow keys read the values` }, card);
    const tip = make("div", { class: "tip", "aria-live": "polite", hidden: "" }, card);
    const clip = `clip-${state.count++}`;
    let seen = null; // what hovering needs of the last drawing
    let at = null;

    function redraw() {
      plot.replaceChildren();
      const large = card.classList.contains("wide");
      const width = Math.max(plot.clientWidth, 220);
      const roomy = width > 620;
      const height = large ? 440 : roomy ? 320 : 230;
      const box = { left: 46, right: width - (roomy ? 190 : 10), top: 8, bottom: height - 34 };
      plot.setAttribute("viewBox", `0 0 ${width} ${height}`);
      plot.setAttribute("height", height);
      const lines = panel.lines.filter((line) => !state.hidden.has(line.s));
      const log = state.log;
      const logX = log || board.log_x;
      const first = log ? Math.min(board.first, panel.x.at(-1)) : panel.x[0];
      const begin = Math.max(panel.x.findIndex((x) => x >= first), 0);
      const settled = board.grows ? begin : Math.floor(panel.x.length / 20);
      const all = lines.flatMap((line) => line.y.slice(settled)).filter((v) => v !== null && (!log || v > 0));
      if (!all.length) {
        draw("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, plot, lines.length ? "nothing lost" : "no policy chosen");
        seen = null;
        return;
      }
      let [low, high] = [Math.min(...all), Math.max(...all)];
      if (panel.fixed !== null && !board.grows) [low, high] = [Math.min(low, panel.fixed), Math.max(high, panel.fixed)];
      if (log) [low, high] = [low / 1.4, high * 1.4];
      else if (!board.grows) [low, high] = [low - 0.15 * (high - low) - 1e-9, high + 0.25 * (high - low) + 1e-9];
      else [low, high] = [0, high * 1.06 || 1];
      const sx = scale(logX ? panel.x[begin] : 0, panel.x.at(-1), box.left, box.right, logX);
      const sy = scale(low, high, box.bottom, box.top, log);
      const inside = (v) => sy(Math.min(Math.max(v, low), high));

      for (const tick of ticks(low, high, log, 5)) {
        draw("line", { class: "rule", x1: box.left, x2: box.right, y1: sy(tick), y2: sy(tick) }, plot);
        draw("text", { x: box.left - 5, y: sy(tick) + 4, "text-anchor": "end" }, plot, short(tick));
      }
      const across = ticks(logX ? panel.x[begin] : 0, panel.x.at(-1), logX, roomy ? 8 : 4);
      for (const tick of across) {
        const end = sx(tick) > box.right - 12;
        draw("line", { class: "axis", x1: sx(tick), x2: sx(tick), y1: box.bottom, y2: box.bottom + 4 }, plot);
        draw("text", { x: sx(tick), y: box.bottom + 16, "text-anchor": end ? "end" : "middle" }, plot, short(tick));
      }
      draw("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }, plot);
      draw("text", { x: box.right, y: height - 4, "text-anchor": "end" }, plot, board.xlabel);
      const mask = draw("clipPath", { id: clip }, draw("defs", {}, plot));
      draw("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top }, mask);
      const inner = draw("g", { "clip-path": `url(#${clip})` }, plot);

      const place = (i, v) => `${sx(panel.x[i]).toFixed(1)},${inside(v).toFixed(1)}`;
      const usable = (line) => line.y.map((v, i) => i).filter((i) => i >= begin && line.y[i] !== null && (!log || line.y[i] > 0));
      for (const line of lines) {
        if (!line.low) continue;
        const kept = usable(line).filter((i) => line.low[i] !== null);
        if (kept.length < 2) continue;
        const points = [...kept.map((i) => place(i, line.high[i])), ...kept.reverse().map((i) => place(i, line.low[i]))];
        draw("polygon", { points: points.join(" "), fill: `var(--c${board.series[line.s].colour})`, opacity: 0.1 }, inner);
      }
      if (panel.fixed !== null && panel.fixed >= low && panel.fixed <= high) {
        draw("line", { class: "fixed", x1: box.left, x2: box.right, y1: sy(panel.fixed), y2: sy(panel.fixed) }, inner);
        draw("text", { x: box.left + 4, y: sy(panel.fixed) - 4 }, plot, board.fixed_label);
      }
      for (const line of [...lines].reverse()) {
        const style = board.series[line.s];
        const points = usable(line).map((i) => place(i, line.y[i])).join(" ");
        draw("polyline", { points, fill: "none", stroke: `var(--c${style.colour})`, "stroke-width": 1.8, "stroke-dasharray": style.dash, "stroke-linejoin": "round" }, inner);
      }
      if (roomy) {
        const ends = lines.filter((line) => line.y.at(-1) !== null && (!log || line.y.at(-1) > 0));
        const heights = spaced(ends.map((line) => inside(line.y.at(-1))), 15, box.top + 4, box.bottom);
        ends.forEach((line, i) => {
          const colour = `var(--c${board.series[line.s].colour})`;
          draw("line", { x1: box.right + 2, x2: box.right + 14, y1: inside(line.y.at(-1)), y2: heights[i], stroke: colour }, plot);
          draw("text", { x: box.right + 18, y: heights[i] + 4, style: `fill:${colour}` }, plot, `${board.series[line.s].label}  ${exact(line.y.at(-1))}`);
        });
      }
      seen = { lines, sx, inside, box, begin, width, marks: draw("g", {}, plot) };
      if (at !== null) read(at);
    }

    function read(index) {
      if (!seen) return;
      at = Math.min(Math.max(index, seen.begin), panel.x.length - 1);
      const { lines, sx, inside, box, marks } = seen;
      const x = sx(panel.x[at]);
      marks.replaceChildren();
      draw("line", { class: "cross", x1: x, x2: x, y1: box.top, y2: box.bottom }, marks);
      tip.replaceChildren(make("strong", {}, null, `${board.xlabel} ${panel.x[at].toLocaleString("en")}`));
      const here = lines.filter((line) => line.y[at] !== null).sort((a, b) => a.y[at] - b.y[at]);
      if (!board.grows) here.reverse();
      for (const line of here) {
        const style = board.series[line.s];
        draw("circle", { cx: x, cy: inside(line.y[at]), r: 3, fill: `var(--c${style.colour})` }, marks);
        const row = make("div", {}, tip);
        make("i", { class: "swatch", style: `--c:var(--c${style.colour})` }, row);
        make("span", {}, row, style.label);
        make("span", {}, row, exact(line.y[at]));
      }
      tip.hidden = false;
      // On the side where there is more room, so that the crosshair stays in sight.
      const right = x < (box.left + box.right) / 2;
      const ratio = plot.clientWidth / seen.width;
      tip.style.top = `${plot.offsetTop ?? 0}px`;
      tip.style.left = right ? `${12 + (x + 10) * ratio}px` : "auto";
      tip.style.right = right ? "auto" : `${12 + (seen.width - x + 10) * ratio}px`;
      tip.style.top = `${header.offsetTop + header.offsetHeight + 4}px`;
    }

    function leave() {
      at = null;
      tip.hidden = true;
      if (seen) seen.marks.replaceChildren();
    }

    function nearest(event) {
      if (!seen) return;
      const area = plot.getBoundingClientRect();
      const x = ((event.clientX - area.left) / area.width) * seen.width;
      let best = seen.begin;
      for (let i = seen.begin; i < panel.x.length; i++) {
        if (Math.abs(seen.sx(panel.x[i]) - x) < Math.abs(seen.sx(panel.x[best]) - x)) best = i;
      }
      read(best);
    }

    plot.addEventListener("pointermove", nearest);
    plot.addEventListener("pointerdown", nearest);
    plot.addEventListener("pointerleave", leave);
    plot.addEventListener("blur", leave);
    plot.addEventListener("keydown", (event) => {
      const step = event.shiftKey ? 10 : 1;
      const start = at ?? panel.x.length - 1;
      const target = { ArrowLeft: start - step, ArrowRight: start + step, Home: 0, End: panel.x.length - 1 }[event.key];
      if (event.key === "Escape") leave();
      if (target === undefined) return;
      event.preventDefault();
      read(target);
    });
    enlarge.addEventListener("click", () => {
      const large = card.classList.toggle("wide");
      enlarge.setAttribute("aria-pressed", large);
      redraw();
    });
    return redraw;
  }

  // ---- panels with one legend ----
  function addBoard(place, board) {
    const state = { hidden: new Set(), log: board.grows, count: addBoard.count };
    make("h3", {}, place, board.heading);
    const controls = make("div", { class: "controls", role: "group", "aria-label": "Policies shown" }, place);
    const grid = make("div", { class: "grid" }, place);
    const panels = [];
    const redraw = () => panels.forEach((panel) => panel());
    board.series.forEach((style, s) => {
      const chip = make("button", { class: "chip", type: "button", "aria-pressed": "true" }, controls);
      const sample = draw("svg", { width: 22, height: 8, "aria-hidden": "true" }, chip);
      draw("line", { x1: 0, x2: 22, y1: 4, y2: 4, stroke: `var(--c${style.colour})`, "stroke-width": 2.5, "stroke-dasharray": style.dash }, sample);
      make("span", {}, chip, style.label);
      chip.addEventListener("click", () => {
        if (!state.hidden.delete(s)) state.hidden.add(s);
        chip.setAttribute("aria-pressed", !state.hidden.has(s));
        redraw();
      });
    });
    if (board.grows) {
      const choice = make("div", { class: "switch", role: "group", "aria-label": "Axes" }, controls);
      const buttons = ["log", "linear"].map((name) => {
        const button = make("button", { type: "button", "aria-pressed": String(name === "log") }, choice, name);
        button.addEventListener("click", () => {
          state.log = name === "log";
          buttons.forEach((other) => other.setAttribute("aria-pressed", other === button));
          redraw();
        });
        return button;
      });
    }
    for (const panel of board.panels) {
      panels.push(addPanel(board, state, { ...panel, lines: panel.lines.map(unpack) }, grid));
    }
    addBoard.count = state.count;
    let width = 0;
    new ResizeObserver(() => {
      if (grid.clientWidth === width) return;
      width = grid.clientWidth;
      // Not at once: drawing may change the height, which the observer would be told while it still reports.
      requestAnimationFrame(redraw);
    }).observe(grid);
  }
  addBoard.count = 0;
  for (const place of document.querySelectorAll("[data-board]")) addBoard(place, data.boards[place.dataset.board]);
})();
