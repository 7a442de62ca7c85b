import { intervals, legend, lines, make, percent, short, stacked } from "./charts.js";

const at = (id) => document.getElementById(id);
const SHOWN = 7; // colours before the last, which stands for all others
const state = { name: null, position: -1, source: null, asked: 0, open: new Set(), columns: "", removers: new Map(), seen: [] };

async function call(method, path, body) {
  const options = { method, headers: body ? { "Content-Type": "application/json" } : {} };
  const answer = await fetch(path, { ...options, body: body ? JSON.stringify(body) : undefined });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.detail || answer.statusText);
  return found;
}

const address = (rest = "") => `/v1/experiments/${encodeURIComponent(state.name)}${rest}`;

async function start() {
  await listExperiments();
  window.addEventListener("hashchange", choose);
  setInterval(health, 5000);
  setInterval(() => { if (state.name && !document.hidden) refresh(); }, 5000);
  setInterval(listExperiments, 15000);
  health();
  choose();
}

async function listExperiments() {
  let found;
  try { found = (await call("GET", "/v1/experiments")).experiments; } catch { return; }
  const names = found.map((one) => one.name);
  if (JSON.stringify(names) === JSON.stringify(state.names)) return;
  state.names = names;
  mark();
  if (!state.name && names.length) choose();
}

function mark() {
  at("experiments").replaceChildren(...(state.names || []).map((name) => {
    const link = make("a", { href: `#${encodeURIComponent(name)}` }, name);
    if (name === state.name) link.setAttribute("aria-current", "page");
    return link;
  }));
}

function choose() {
  const wanted = decodeURIComponent(location.hash.slice(1));
  state.name = state.names?.includes(wanted) ? wanted : state.names?.[0] ?? null;
  at("main").hidden = !state.name;
  at("empty").hidden = Boolean(state.name) || !state.names;
  mark();
  if (state.source) state.source.close();
  if (!state.name) {
    at("example").textContent = `curl -X POST ${location.origin}/v1/experiments -H 'Content-Type: application/json' \\\n  -d '{"name": "offers", "arms": [{"id": "none"}, {"id": "discount"}]}'`;
    return;
  }
  Object.assign(state, { position: -1, columns: "", open: new Set(), removers: new Map(), seen: [] });
  at("tried").replaceChildren();
  at("arm-message").textContent = "";
  refresh().then(listen);
}

// The log itself says when there is something new; the figures are fetched once a second at most.
function listen() {
  state.source = new EventSource(address(`/events?after=${state.position}`));
  const news = () => {
    clearTimeout(state.timer);
    state.timer = setTimeout(refresh, Math.max(0, 1000 - (Date.now() - state.asked)));
  };
  for (const kind of ["decided", "settled", "late", "arm_added", "arm_removed", "changed", "observed", "schema", "erased"]) {
    state.source.addEventListener(kind, news);
  }
}

async function health() {
  let ready, why = "";
  try {
    const answer = await fetch("/readyz");
    const found = await answer.json();
    ready = answer.ok;
    why = (found.reasons || []).join("; ");
  } catch { ready = false; why = "no connection"; }
  at("health").textContent = ready ? "ready" : `not ready: ${why}`;
  at("health").title = why;
  at("health").className = `pill ${ready ? "good" : "bad"}`;
}

async function refresh() {
  state.asked = Date.now();
  const name = state.name;
  let report, experiment;
  try {
    [report, experiment] = await Promise.all([call("GET", address("/report")), call("GET", address())]);
  } catch (error) { at("sentence").textContent = error.message; return; }
  if (name !== state.name) return;
  state.position = report.position;
  colour(report);
  title(report, experiment);
  tiles(report);
  arms(report);
  charts(report);
  operation(report);
  decisions(report);
  form(experiment, report);
}

function colour(report) {
  state.colours = new Map(report.arms.map((arm) => [arm.id, Math.min(arm.number, SHOWN)]));
}
const colourOf = (arm) => state.colours.get(arm) ?? SHOWN;

function title(report, experiment) {
  at("name").textContent = report.name;
  document.title = `${report.name} – pfnts`;
  const alone = Object.entries(report.single_arms).sort(([, a], [, b]) => b.mean - a.mean);
  const clear = alone.length === experiment.arms.length && alone.length > 1 && alone[0][1].low > Math.max(...alone.slice(1).map(([, one]) => one.high));
  const lift = report.lift;
  const parts = [`${experiment.policy.name}, ${report.brings_candidates ? "candidates of each decision" : `${experiment.arms.length} arms`}`];
  if (lift && lift.low > 0) parts.push(`the policy earns ${relative(lift)} more than the holdout`);
  else if (lift && lift.high < 0) parts.push(`the policy earns ${relative(lift)} less than the holdout`);
  else if (lift) parts.push("no difference from the holdout can be told yet");
  if (experiment.arms.length > 1) parts.push(clear ? `${alone[0][0]} is the best single arm` : "no single arm is clearly the best");
  at("sentence").textContent = parts.join(" · ");
  if (document.activeElement !== at("mode")) at("mode").value = report.mode;
  at("export").href = address("/export");
  at("footnote").textContent = `log position ${report.position}, model at ${report.model.position} (${report.model.fingerprint || "none"}), ${report.model.version}, ${report.replica}`;
}

// The lift as a share of what the holdout earns, where that means something.
function relative(lift) {
  const share = Math.abs(lift.value / lift.holdout);
  return lift.holdout > 0 && share < 10 ? percent(share) : "";
}

// Decisions a second since the report before the last one, so that it does not jump about.
function pace(report) {
  const now = { time: Date.parse(report.time), decisions: report.decisions };
  state.seen = [...state.seen.filter((one) => now.time - one.time < 60_000), now];
  const [first] = state.seen;
  return now.time > first.time + 2000 ? (now.decisions - first.decisions) / ((now.time - first.time) / 1000) : null;
}

function tile(value, text, note, tone = "") {
  return make("div", { class: "tile" }, make("span", {}, text), make("b", { class: tone }, value), make("span", {}, note));
}

function range(found) {
  return found && found.low !== null && found.low !== undefined ? `${short(found.low)} to ${short(found.high)}` : "too few rewards";
}

function tiles(report) {
  const { lift, rewards, latency, groups } = report;
  const policy = groups.policy || { mean: null };
  const due = report.decisions - rewards.pending;
  const missing = due ? rewards.missing / due : 0;
  const fallback = report.decisions ? (report.reasons.fallback || 0) / report.decisions : 0;
  const sign = lift && lift.value > 0 ? "+" : "";
  const tone = !lift ? "" : lift.low > 0 ? "good" : lift.high < 0 ? "bad" : "";
  const slow = latency && latency.p95 > 0.25;
  const rate = pace(report);
  const earns = tone && relative(lift) ? `, ${sign || "−"}${relative(lift)}` : "";
  at("tiles").replaceChildren(
    tile(lift ? sign + short(lift.value) : "–", "Lift over the holdout", lift ? `${range(lift)} (95 %)${earns}` : report.holdout ? "too few rewards" : "no holdout is set", tone),
    tile(short(policy.mean), "Mean reward, policy", range(policy)),
    tile(report.decisions.toLocaleString("en"), "Decisions", `${(rewards.learned + rewards.default).toLocaleString("en")} with a reward${rate === null ? "" : `, ${short(rate)} a second`}`),
    tile(rewards.pending.toLocaleString("en"), "Rewards awaited", `${percent(missing, 1)} went missing, ${rewards.late} late`, missing > 0.1 ? "warn" : ""),
    tile(latency ? `${Math.round(1000 * latency.p95)} ms` : "–", "Latency, p95", fallback ? `${percent(fallback, 1)} fell back to the baseline` : "no fallback", slow || fallback > 0.01 ? "warn" : ""),
    tile(report.model.lag ? `${report.model.lag} behind` : "up to date", "Model", `refreshed ${ago(report.model.age)}`, report.model.lag > 1000 ? "warn" : ""),
  );
}

function ago(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  return `${Math.round(seconds / 3600)} h ago`;
}

function arms(report) {
  const alone = report.single_arms;
  const all = Object.values(alone).flatMap((one) => [one.low, one.high]);
  const heads = [
    ["Arm"], ["Share"], ["Decisions"], ["Mean reward", "Of those who got it"],
    ["If everyone got it", "Estimated from the probabilities with which the policy chose, with 95 % intervals"], [""], [""],
  ];
  const head = make("tr", {}, ...heads.map(([text, why], k) => make("th", { class: k === 2 || k === 3 || k === 5 ? "optional" : "", title: why || "" }, text)));
  const rows = report.arms.map((arm) => {
    const name = make("td", { title: arm.id }, make("i", { class: `dot k${colourOf(arm.id)}` }), arm.id);
    if (arm.id === report.baseline_arm) name.append(make("span", { class: "tag" }, "baseline"));
    if (!arm.live) name.append(make("span", { class: "tag" }, "removed"));
    if (arm.features) name.append(make("small", { title: written(arm.features) }, written(arm.features)));
    const plot = make("td", { class: "optional" });
    const own = alone[arm.id];
    if (own) {
      const others = [{ mean: Math.min(...all) }, { mean: Math.max(...all) }];
      const svg = intervals([{ ...own, colour: colourOf(arm.id) }, ...others.map((o) => ({ ...o, colour: 9 }))], { width: 160, names: false, label: "interval" });
      svg.setAttribute("viewBox", "0 0 160 22");
      svg.querySelectorAll(".k9").forEach((one) => one.remove());
      svg.style.width = "160px";
      plot.append(svg);
    }
    return make("tr", { class: arm.live ? "" : "gone" }, name,
      make("td", {}, percent(arm.share)), make("td", { class: "optional" }, arm.decisions.toLocaleString("en")),
      make("td", { class: "optional" }, short(arm.mean), make("small", {}, range(arm))),
      make("td", {}, own ? short(own.mean) : "–", make("small", {}, arm.live ? range(own) : "")), plot, make("td", {}, arm.live && arm.id !== report.baseline_arm && !report.brings_candidates ? remover(arm.id) : ""));
  });
  at("arms").replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
}

// One button for each arm for as long as the page shows it: a new one each second would swallow clicks.
function remover(arm) {
  if (state.removers.has(arm)) return state.removers.get(arm);
  const button = make("button", { class: "plain", type: "button", title: `Take ${arm} out of the choice` }, "Remove");
  button.addEventListener("click", async () => {
    if (!button.classList.contains("sure")) {
      button.classList.add("sure");
      button.textContent = "For good?";
      setTimeout(() => { button.classList.remove("sure"); button.textContent = "Remove"; }, 4000);
      return;
    }
    button.blur();
    state.removers.delete(arm);
    await told("arm-message", () => call("DELETE", address(`/arms/${encodeURIComponent(arm)}`)), `Removed ${arm}.`);
  });
  state.removers.set(arm, button);
  return button;
}

async function told(id, work, done) {
  try { await work(); at(id).textContent = done; } catch (error) { at(id).textContent = error.message; }
  refresh();
}

// Neighbouring steps are put together until there are few enough to be told from noise.
function coarse(steps, most = 24) {
  const size = Math.ceil(steps.length / most) || 1;
  const found = [];
  for (let i = 0; i < steps.length; i += size) {
    const arms = {};
    for (const step of steps.slice(i, i + size)) {
      for (const [arm, cell] of Object.entries(step.arms)) {
        const into = (arms[arm] ??= { decisions: 0, rewards: 0, total: 0, squares: 0, entropy: 0 });
        for (const key of Object.keys(into)) into[key] += cell[key];
      }
    }
    found.push({ time: steps[i].time, arms });
  }
  return found;
}

// Mean of all rewards of an arm up to each step, with its interval, once there are enough to have one.
function running(steps, arm, { min, max }) {
  const sum = { rewards: 0, total: 0, squares: 0 };
  return steps.flatMap((step) => {
    for (const key of Object.keys(sum)) sum[key] += step.arms[arm]?.[key] || 0;
    const mean = sum.total / sum.rewards;
    const variance = (sum.squares - sum.rewards * mean ** 2) / (sum.rewards - 1);
    if (sum.rewards < 20 || !(variance > 0)) return [];
    const reach = 1.96 * Math.sqrt(variance / sum.rewards);
    return [{ x: step.time, y: mean, low: Math.max(mean - reach, min), high: Math.min(mean + reach, max) }];
  });
}

function charts(report) {
  const steps = coarse(report.series.steps);
  const known = report.arms.filter((arm) => arm.decisions);
  const entries = known.slice(0, SHOWN + 1).map((arm) => ({ label: arm.id, colour: colourOf(arm.id) }));
  const width = Math.max(at("rewards").clientWidth, 260);
  const series = known.map((arm) => ({ colour: colourOf(arm.id), points: running(steps, arm.id, report.reward) }));
  at("rewards").replaceChildren(lines(series, { width, label: "Mean reward of each arm up to each time" }), legend(entries));
  const shares = steps.map((step) => {
    const sum = Object.values(step.arms).reduce((n, cell) => n + cell.decisions, 0) || 1;
    return { x: step.time, shares: known.map((arm) => (step.arms[arm.id]?.decisions || 0) / sum) };
  });
  at("traffic").replaceChildren(stacked(shares, known.map((arm) => colourOf(arm.id)), { width, label: "Share of decisions of each arm over time" }), legend(entries));
  const entropy = steps.map((step) => {
    const cells = Object.values(step.arms);
    const n = cells.reduce((sum, cell) => sum + cell.decisions, 0);
    return { x: step.time, y: cells.reduce((sum, cell) => sum + cell.entropy, 0) / (n || 1), n };
  }).filter((point) => point.n);
  at("entropy").replaceChildren(lines([{ colour: 0, points: entropy }], { width, low: 0, high: 1, label: "Entropy of propensities over time" }));
}

function operation(report) {
  const { rewards, latency, reasons } = report;
  const facts = [
    ["Rewards learned", rewards.learned], ["Default rewards after the wait", rewards.default],
    ["Missing (no reward in time)", rewards.missing], ["Late (came after the wait)", rewards.late], ["Awaited", rewards.pending],
    ...Object.entries(reasons).map(([reason, n]) => [`Decided by ${reason}`, n]),
    ["Latency p50 / p95 / p99", latency ? ["p50", "p95", "p99"].map((p) => `${(1000 * latency[p]).toFixed(0)}`).join(" / ") + " ms" : "–"],
    ["Model is behind the log by", `${report.model.lag} ${report.model.lag === 1 ? "record" : "records"}`],
    ["Refused for overload (429)", report.requests["429"] || 0],
    ["Refused for the store (503)", report.requests["503"] || 0],
    ["This process", `${report.replica}${report.leads ? ", leads" : ""}`],
  ];
  at("operation").replaceChildren(...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, typeof value === "number" ? value.toLocaleString("en") : value)]));
}

function decisions(report) {
  if (state.open.size) return; // the list stands still while somebody reads
  const rows = report.recent.slice(0, 12).map((one) => {
    const reward = one.settled === null ? "awaited" : one.settled === "missing" ? "missing" : short(one.reward);
    const row = make("details", { open: state.open.has(one.decision_id) },
      make("summary", {},
        make("span", {}, new Date(one.time).toLocaleTimeString([], { hour12: false })),
        make("span", { title: one.arm }, make("i", { class: `dot k${colourOf(one.arm)}` }), one.arm),
        make("span", { class: "quiet" }, one.reason),
        make("span", { title: "Reward" }, reward),
        make("span", { class: "unit quiet", title: one.unit || "" }, one.unit || "")),
      why(one));
    row.addEventListener("toggle", () => state.open[row.open ? "add" : "delete"](one.decision_id));
    return row;
  });
  at("decisions").replaceChildren(...(rows.length ? rows : [make("p", { class: "quiet" }, "Nothing yet.")]));
}

const PICTURED = 12;

// All arms or candidates in their order; of many, the likeliest first and no others.
function picture(all, expected) {
  const box = make("div");
  const count = Object.keys(all).length;
  const chosen = count > PICTURED ? Object.entries(all).sort(([, a], [, b]) => b - a).slice(0, PICTURED) : Object.entries(all);
  const propensities = Object.fromEntries(chosen);
  const posterior = expected && chosen.flatMap(([arm]) => expected.filter((one) => one.arm === arm));
  if (count > PICTURED) box.append(make("p", { class: "quiet" }, `The ${PICTURED} likeliest of ${count}:`));
  if (posterior) {
    box.append(make("p", { class: "quiet" }, "What the model expects of each arm here, with 95 % intervals, and with which probability it takes it:"));
    box.append(intervals(posterior.map((arm) => ({ ...arm, label: arm.arm, colour: colourOf(arm.arm), note: `${short(arm.mean)} · ${percent(propensities[arm.arm], 1)}` })), { label: "Expected reward of each arm" }));
  } else {
    box.append(make("p", { class: "quiet" }, "Probability of each arm:"));
    box.append(intervals(Object.entries(propensities).map(([label, share]) => ({ label, colour: colourOf(label), mean: share, note: percent(share, 1) })), { label: "Probability of each arm" }));
  }
  return box;
}

const REASONS = {
  warmup: "The model knew too little of some arms and drew among them.",
  thompson: "The model drew a mean reward for each arm and took the largest.",
  greedy: "The model took the arm that it expects most of.",
  explore: "A share of decisions is left to chance; this was one.",
  fallback: "The model was not ready in time; the baseline arm was served.",
  holdout: "The unit is in the holdout: it gets the baseline arm.",
  baseline: "The mode serves the baseline arm.",
};

function why(one) {
  const context = Array.isArray(one.context) ? one.context.join(", ") : Object.entries(one.context || {}).map(([k, v]) => `${k}: ${v}`).join("\n");
  const features = one.features ? `\n\n${one.arm}: ${written(one.features)}` : "";
  const shadow = one.shadow ? `\n\nIn the shadow the model chose ${one.shadow.arm}.` : "";
  return make("div", { class: "why" },
    make("div", {}, make("p", {}, REASONS[one.reason] || ""), picture(one.propensities, one.posterior)),
    make("pre", {}, `${context || "context erased"}${features}\n\n${one.decision_id}\nmodel at position ${one.position}${shadow}`));
}

function written(context) {
  return Array.isArray(context) ? context.join(", ") : Object.entries(context || {}).map(([k, v]) => `${k}: ${v}`).join(", ");
}

// Why the likeliest arm: the columns that make it lead, and the nearest rows of the two likeliest.
function reasons(found) {
  const [first, second] = found.arms;
  if (!second) return make("div");
  const cells = (...values) => make("tr", {}, ...values.map((value) => make("td", {}, value)));
  const heads = (...values) => make("thead", {}, make("tr", {}, ...values.map((value) => make("th", {}, value))));
  const columns = found.columns.slice(0, 8).map((one) => cells(one.column, String(one.value ?? "–"), `${one.effect > 0 ? "+" : ""}${short(one.effect)}`, percent(one.overturned, 0)));
  const rows = [first, second].flatMap((arm) => arm.rows.map((row) => cells(arm.arm, row.speaks_for ? "for it" : "against it", short(row.reward), written(row.context))));
  return make("div", { class: "reasons" },
    make("p", {}, found.lead >= 0 ? `${first.arm} leads ${second.arm} by ${short(found.lead)}.`
      : `${first.arm} is the likeliest although ${second.arm} is expected to pay ${short(-found.lead)} more: less is known of it, so it may be better yet.`),
    ...(found.columns.some((one) => one.effect || one.overturned) ? [
      make("p", { class: "quiet" }, `What each value adds to the lead, against the values of ${found.replacements} other rows in its place, and in how many of these the lead would be lost:`),
      make("table", {}, heads("Column", "Value", "Adds", "Lost"), make("tbody", {}, ...columns)),
    ] : [make("p", { class: "quiet" }, "No column moves the lead: the model expects it in every context alike.")]),
    make("p", { class: "quiet" }, "The most similar contexts so far, and what came of them:"),
    make("table", {}, heads("Arm", "Speaks", "Reward", "Context"), make("tbody", {}, ...rows)));
}

// One field for each column, and what stands in them as a context or as features.
function fieldsOf(columns, example) {
  const fields = columns.map((column) => {
    let field;
    if (column.kind === "categorical" && column.categories.length) field = make("select", {}, ...column.categories.map((c) => make("option", {}, c)));
    else if (column.kind === "boolean") field = make("select", {}, make("option", {}, "false"), make("option", {}, "true"));
    else field = make("input", { type: column.kind === "numeric" ? "number" : "text", step: "any", value: column.kind === "numeric" ? "0" : "" });
    field.dataset.kind = column.kind;
    const known = Array.isArray(example) ? example[Number(column.name)] : example?.[column.name];
    if (known !== null && known !== undefined) field.value = String(known);
    else if (example && field.tagName === "INPUT") { field.value = ""; field.placeholder = "unknown"; }
    return { column, field };
  });
  const positional = columns.every((column, k) => column.name === String(k));
  const values = () => {
    const found = fields.map(({ field }) => field.value === "" ? null : field.dataset.kind === "numeric" ? Number(field.value) : field.dataset.kind === "boolean" ? field.value === "true" : field.value);
    return positional ? found : Object.fromEntries(fields.map(({ column }, k) => [column.name, found[k]]));
  };
  return { labels: fields.map(({ column, field }) => make("label", {}, column.name, field)), values };
}

function form(experiment, report) {
  const key = JSON.stringify([experiment.columns, experiment.arm_columns, report.brings_candidates]);
  if (key === state.columns) return;
  state.columns = key;
  for (const id of ["arms-card", "traffic-card", "try-card"]) at(id).hidden = report.brings_candidates;
  state.features = experiment.arm_columns && !report.brings_candidates ? fieldsOf(experiment.arm_columns, report.arms[0]?.features) : null;
  at("new-features").replaceChildren(...(state.features?.labels ?? []));
  if (!experiment.columns) { at("try").replaceChildren(make("p", { class: "quiet" }, "The columns are known after the first decision.")); return; }
  const fields = fieldsOf(experiment.columns, report.recent[0]?.context);
  at("try").replaceChildren(...fields.labels, make("button", {}, "Ask the model"));
  at("try").onsubmit = async (event) => {
    event.preventDefault();
    const context = fields.values();
    try {
      const found = await call("GET", address(`/posterior?context=${encodeURIComponent(JSON.stringify(context))}`));
      at("tried").replaceChildren(make("p", { class: "quiet" }, `If it had to decide now, the reason would be ${found.reason}.`), picture(found.propensities, found.posterior));
      if (found.posterior) at("tried").append(reasons(await call("GET", address(`/explain?context=${encodeURIComponent(JSON.stringify(context))}`))));
    } catch (error) { at("tried").replaceChildren(make("p", { class: "bad" }, error.message)); }
  };
}

at("mode").addEventListener("change", () => told("arm-message", () => call("PATCH", address(), { mode: at("mode").value }), `Mode is ${at("mode").value}.`));
at("add").addEventListener("submit", (event) => {
  event.preventDefault();
  const arm = at("new-arm").value;
  at("new-arm").value = "";
  told("arm-message", () => call("POST", address("/arms"), state.features ? { id: arm, features: state.features.values() } : { id: arm }), `Added ${arm}.`);
});

start();
