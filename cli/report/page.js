// Puts the page together from the data. Texts of the runs are only ever set as text, never as markup.

const place = (id) => document.getElementById(id);

window.onerror = (words) => {
  place("alarm").textContent = "This page could not be drawn: " + words;
  place("alarm").hidden = false;
};

const report = JSON.parse(place("data").textContent);
const runs = report.runs;
const shown = runs.map(() => true);
const drawings = [];  // {canvas, draw, run?}: all that is drawn, again when the window or the colours change.
const charts = [];

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function drawn(canvas, draw) {
  drawings.push({canvas, draw});
  return canvas;
}

const markOf = (index) => drawn(element("canvas", {className: "mark"}), (canvas) => drawMark(canvas, index));

// What is evaluated is an accuracy as a rule, but may be any figure; runs of different jobs may have different ones.
const sameMetric = runs.every((run) => run.metric.name === runs[0].metric.name);
const metricName = sameMetric ? runs[0].metric.name : "evaluated";
const unitOf = (run) => run.metric.unit;
const inPercent = runs.every((run) => unitOf(run) === "%");

// Figures of the table: heading, field of the result, how it is shown.
const fixed = (digits, unit = "", factor = 1) => (value) => (value * factor).toFixed(digits) + unit;
const count = (value) => Math.round(value).toLocaleString("en");
const FIGURES = [
  ["to target", "time_to_target_s", fixed(1, " s")],
  ["samples/s", "samples_per_s", count],
  [metricName, "metric", ({value, unit}) => (unit === "%" ? fixed(1, " %", 100) : fixed(4, unit && " " + unit))(value)],
  ["waited", "wait_s", fixed(1, " s")],
  ["group avg", "group_averages", count],
  ["global avg", "global_averages", count],
  ["skipped", "skipped_steps", count],
  ["abandoned", "abandoned_batches", count],
  ["updates", "updates", count],
  ["samples/update", "samples_per_update", count],
  ["step (median)", "step_s", fixed(1, " ms", 1000)],
  ["trained", "train_s", fixed(1, " s")],
];

const outcomeOf = (run) => `${run.workers} worker${run.workers === 1 ? "" : "s"}, ${run.outcome}`;

function fillFigures() {
  const head = element("tr", {}, ...["run", ...FIGURES.map(([heading]) => heading)].map(
    (heading) => element("th", {scope: "col", textContent: heading})));
  const rows = runs.map((run, index) => {
    const cells = FIGURES.map(([, field, show]) => {
      const value = run.result[field];
      const known = typeof value === "number" || typeof value?.value === "number";
      return element("td", {textContent: known ? show(value) : "–"});
    });
    const outcome = element("div", {className: run.failed || run.result.lost ? "outcome failed" : "outcome", textContent: outcomeOf(run)});
    return element("tr", {}, element("th", {scope: "row"}, markOf(index), " ", run.name, outcome), ...cells);
  });
  place("figures").append(element("thead", {}, head), element("tbody", {}, ...rows));
}

function fillLegend() {
  runs.forEach((run, index) => {
    const button = element("button", {type: "button", title: run.name}, markOf(index), element("span", {textContent: run.name}));
    button.setAttribute("aria-pressed", "true");
    button.onclick = () => {
      shown[index] = !shown[index];
      button.setAttribute("aria-pressed", shown[index]);
      charts.forEach((chart) => chart.setDatasetVisibility(index, shown[index]));
      charts.forEach((chart) => chart.update());
      document.querySelectorAll(`[data-run="${index}"]`).forEach((card) => { card.hidden = !shown[index]; });
      draw();
    };
    place("legend").append(button);
  });
}

function fillSettings() {
  const settingsOf = (run) => ({
    script: run.program.script?.path ?? run.program.path, arguments: (run.program.arguments ?? []).join(" "), begun: run.program.begun,
    ...run.options, ...Object.fromEntries(Object.entries(run.environment).map(([name, value]) => ["environment: " + name, value])),
  });
  const all = runs.map(settingsOf);
  const names = [...new Set(all.flatMap(Object.keys))].filter((name) => name !== "run_directory");
  const text = (value) => (value === undefined || value === null || value === "" ? "–" : typeof value === "string" ? value : JSON.stringify(value));
  const row = (name, values) => {
    const cells = values.map((value) => element("td", {className: "text", textContent: value}));
    return element("tr", {className: new Set(values).size > 1 ? "differs" : ""}, element("th", {scope: "row", textContent: name}), ...cells);
  };
  const head = element("tr", {}, element("th", {textContent: "setting"}),
    ...runs.map((run) => element("th", {scope: "col", textContent: run.name})));
  const given = names.filter((name) => all.some((settings) => text(settings[name]) !== "–"));
  const rows = given.map((name) => row(name, all.map((settings) => text(settings[name]))));
  rows.push(row("run directory", runs.map((run) => run.directory)));
  place("settings").append(element("thead", {}, head), element("tbody", {}, ...rows));
  if (runs.length > 1) place("settings-hint").textContent = "≠: the runs differ in this.";
}

function addChart(into, title, empty, make) {
  const plot = element("div", {className: "plot"});
  place(into).append(element("div", {className: "card"}, element("h3", {textContent: title}), plot));
  if (empty) {
    plot.append(element("div", {className: "none", textContent: empty}));
    return;
  }
  const canvas = element("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", title);
  plot.append(canvas);
  let chart;
  drawn(canvas, () => {
    if (chart) { chart.destroy(); charts.splice(charts.indexOf(chart), 1); }
    chart = new Chart(canvas, make());
    charts.push(chart);
    shown.forEach((visible, index) => chart.setDatasetVisibility(index, visible));
    chart.update();
  });
}

function fillCharts() {
  const none = (curve, words) => (runs.some((run) => curve(run).value.length) ? "" : words);
  const lossOf = {curve: (run) => run.loss, y: "training loss"};
  const y = inPercent ? "%" : sameMetric ? unitOf(runs[0]) || metricName : "each job's own figure";
  const evaluationsOf = {curve: (run) => run.evaluations, y, scale: inPercent ? 100 : 1};
  const loss = none(lossOf.curve, "no update was recorded");
  const evaluated = none(evaluationsOf.curve, "there was no evaluation");
  const time = {along: "clock_s", x: "training time [s]"};
  const samples = {along: "samples", x: "samples of all workers"};
  addChart("curves", "Loss over time", loss, () => lineChart(runs, {...lossOf, ...time}));
  addChart("curves", "Loss over samples", loss, () => lineChart(runs, {...lossOf, ...samples}));
  const heading = sameMetric ? metricName[0].toUpperCase() + metricName.slice(1) : "Evaluations";
  addChart("curves", heading + " over time", evaluated, () => lineChart(runs, {...evaluationsOf, ...time}));
  addChart("curves", heading + " over samples", evaluated, () => lineChart(runs, {...evaluationsOf, ...samples}));

  const names = [...new Set(runs.flatMap((run) => Object.keys(run.logged)))].sort();
  for (const name of names) {
    const loggedOf = (run) => run.logged[name] ?? {clock_s: [], samples: [], value: []};
    addChart("logged", `${name}, on average over the workers`, "", () => lineChart(runs, {curve: loggedOf, ...time, y: name}));
  }
  place("logged-section").hidden = !names.length;

  const periods = runs.some((run) => new Set(run.period.value).size > 1);
  const staleness = runs.some((run) => run.staleness.some((number) => number > 0));
  if (staleness) addChart("extras", "How late contributions were", "", () => stalenessChart(runs));
  if (periods) {
    addChart("extras", "Period over time", "",
      () => lineChart(runs, {curve: (run) => run.period, ...time, y: "updates between averagings", stepped: "before"}));
  }
  place("more").hidden = !staleness && !periods;
}

function totalsTable(timeline) {
  const kinds = Object.keys(ACTIVITIES).filter((kind) => timeline.totals.some((totals) => totals[kind]));
  const head = element("tr", {}, element("th"), ...kinds.map((kind) => element("th", {scope: "col", textContent: kind})));
  const rows = timeline.tracks.map((name, k) => element("tr", {}, element("th", {scope: "row", textContent: name}),
    ...kinds.map((kind) => element("td", {textContent: timeline.totals[k][kind] ? seconds(timeline.totals[k][kind]) : "–"}))));
  return element("div", {className: "scroll"}, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
}

function timelineCard(run, index) {
  const {timeline} = run;
  const card = element("div", {className: "card"}, element("h3", {}, markOf(index), " ", run.name));
  card.dataset.run = index;
  const head = (...words) => element("div", {className: "timeline-head"}, ...words);
  const whole = element("canvas", {className: "timeline"});
  card.append(head(`The whole run, ${seconds(timeline.duration_s)} with evaluations: shares of each slice of time`),
    drawn(whole, (canvas) => drawShares(canvas, timeline)));

  const canvas = element("canvas", {className: "timeline"});
  const under = element("div", {className: "under"});
  let chosen = timeline.excerpts[Math.floor(timeline.excerpts.length / 2)];
  const show = () => drawExcerpt(canvas, timeline, chosen, (text) => { under.textContent = text; });
  const buttons = timeline.excerpts.map((excerpt) => {
    const button = element("button", {type: "button", textContent: excerpt.name});
    button.setAttribute("aria-pressed", excerpt === chosen);
    button.onclick = () => {
      chosen = excerpt;
      buttons.forEach((other) => other.setAttribute("aria-pressed", other === button));
      show();
    };
    return button;
  });
  card.append(head(element("span", {textContent: "Update by update"}), element("span", {}, ...buttons.flatMap((button) => [button, " "]))),
    drawn(canvas, show), under,
    element("details", {}, element("summary", {textContent: "In figures"}), totalsTable(timeline)));
  return card;
}

function fillTimelines() {
  const traced = runs.filter((run) => run.timeline);
  if (!traced.length) place("timelines").append(element("p", {className: "hint", textContent: "No run left a trace."}));
  for (const [activity, {words}] of Object.entries(ACTIVITIES)) {
    if (!traced.some((run) => run.timeline.totals.some((totals) => totals[activity]))) continue;
    const sample = drawn(element("canvas", {className: "mark"}), (canvas) => drawSample(canvas, activity));
    place("activities").append(element("li", {}, sample, words));
  }
  runs.forEach((run, index) => { if (run.timeline) place("timelines").append(timelineCard(run, index)); });
}

function viewsCard(run, index) {
  const head = element("tr", {}, ...["at", "update", "took", "what"].map(
    (name) => element("th", {scope: "col", className: name === "what" ? "text" : "", textContent: name})));
  const rows = run.views.map(({clock_s, update, event, text, took_s}) => element("tr", {},
    element("th", {scope: "row", textContent: seconds(clock_s)}), element("td", {textContent: count(update)}),
    element("td", {textContent: took_s === null ? "–" : seconds(took_s)}), element("td", {className: "text", textContent: text || event})));
  const card = element("div", {className: "card"}, element("h3", {}, markOf(index), " ", run.name),
    element("div", {className: "scroll"}, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows))));
  card.dataset.run = index;
  return card;
}

function fillViews() {
  place("views-section").hidden = !runs.some((run) => run.views.length);
  runs.forEach((run, index) => { if (run.views.length) place("views").append(viewsCard(run, index)); });
}

// A row an epoch, the columns in which there is anything; those of long runs the first and the last.
const FATES = ["committed", "abandoned", "skipped", "late", "lost", "tail", "twice"];
const EPOCHS_MOST = 60;

function ledgerCard(run, index) {
  const {ledger} = run.result;
  const columns = FATES.filter((fate) => fate === "committed" || ledger.some((row) => row[fate]));
  const listed = ledger.length > EPOCHS_MOST ? [...ledger.slice(0, EPOCHS_MOST / 2), null, ...ledger.slice(-EPOCHS_MOST / 2)] : ledger;
  const head = element("tr", {}, ...["epoch", "samples", ...columns].map((name) => element("th", {scope: "col", textContent: name})));
  const rows = listed.map((row) => element("tr", {}, element("th", {scope: "row", textContent: row ? row.epoch : "…"}),
    ...["samples", ...columns].map((name) => element("td", {textContent: row ? count(row[name]) : "…"}))));
  const card = element("div", {className: "card"}, element("h3", {}, markOf(index), " ", run.name),
    element("div", {className: "scroll"}, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows))));
  card.dataset.run = index;
  return card;
}

function fillLedgers() {
  const counted = runs.filter((run) => run.result.ledger?.length);
  place("ledger-section").hidden = !counted.length;
  runs.forEach((run, index) => { if (counted.includes(run)) place("ledgers").append(ledgerCard(run, index)); });
}

function fillNotes() {
  const notes = runs.flatMap((run) => run.notes.map((note) => element("li", {textContent: (runs.length > 1 ? run.name + ": " : "") + note})));
  place("notes").append(...notes);
  place("notes-section").hidden = !notes.length;
}

/** Whether anything is on a canvas. */
function isDrawn(canvas) {
  if (!canvas.width || !canvas.height) return false;
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return data.some((byte) => byte !== 0);
}

function draw() {
  const visible = drawings.filter(({canvas}) => !canvas.closest("[hidden]"));
  visible.forEach(({canvas, draw}) => draw(canvas));
  const good = visible.filter(({canvas}) => isDrawn(canvas)).length;
  place("status").textContent = `${good} of ${visible.length} drawings made.`;
}

document.title = `Paceline report: ${runs.map((run) => run.name).join(", ")}`;
place("summary").textContent = report.summary ||
  (runs.length > 1 ? `${runs.length} runs.` : `${runs[0].name}: ${outcomeOf(runs[0])}.`);
fillLegend();
fillFigures();
fillCharts();
fillTimelines();
fillViews();
fillLedgers();
fillSettings();
fillNotes();
draw();

let width = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth === width) return;
  width = window.innerWidth;
  draw();
});
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
