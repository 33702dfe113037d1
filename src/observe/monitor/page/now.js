// The sections Now, Predictions and Devices.

import { colours, context, fill, hatch, ms, quantile, rate, total } from './store.js';

const WINDOW_S = 10;

export const REASONS = {
  unmeetable: 'even alone on an idle device it would have missed its deadline',
  overload: 'what waited before it left no time, or a queue was full',
  expired: 'its time ran out while it waited',
  late: 'it ran, and its answer came after the deadline',
  worker_lost: 'its device failed, was lost or refused the action, or there is none',
  unloaded: 'its model was removed, or is not served',
  cancelled: 'its client went away',
  draining: 'the server was shutting down',
  disconnected: 'the connection to the controller was lost',
  over_share: 'its tenant asked for more than its share, and others would have waited for it',
  model_error: "the model's own code failed on it",
};

const text = (id, value) => { document.getElementById(id).textContent = value; };
const byNumber = (a, b) => a - b;

// Per second, of those that ended in the window.
function rates(now, before, seconds) {
  const served = ((now.served ?? 0) - (before.served ?? 0)) / seconds;
  const all = (total(now) - total(before)) / seconds;
  return { served, refused: all - served, all };
}

export function drawNow(store) {
  const { state } = store;
  const before = store.countsBefore(WINDOW_S);
  const seconds = (state.now - before.at) / 1e9;
  if (seconds <= 0) return;
  const all = rates(state.outcomes, before.outcomes, seconds);
  const latencies = new Map();
  for (const request of store.requests) {
    if (request.outcome !== 'served' || request.finished < before.at) continue;
    if (!latencies.has(request.model)) latencies.set(request.model, []);
    latencies.get(request.model).push(request.finished - request.arrival);
  }
  const together = [...latencies.values()].flat().sort(byNumber);
  text('goodput', rate(all.served));
  text('attainment', all.all > 0 ? `${(100 * all.served / all.all).toFixed(1)} %` : '–');
  text('refused', rate(all.refused));
  text('p50', ms(quantile(together, 0.5), 1));
  text('p99', ms(quantile(together, 0.99), 1));
  text('waiting', state.models.reduce((sum, model) => sum + model.waiting, 0));
  drawModels(store, before, seconds, latencies);
  drawRefusals(state, before, seconds);
  drawTrend(store);
}

function drawModels(store, before, seconds, latencies) {
  const { state } = store;
  const rows = state.models.map((model) => {
    const of = rates(model.outcomes, before.models.get(model.name) ?? {}, seconds);
    const sorted = (latencies.get(model.name) ?? []).sort(byNumber);
    return [of.all, [
      model.name, rate(of.served), rate(of.refused), of.all > 0 ? `${(100 * of.served / of.all).toFixed(1)} %` : '–',
      ms(quantile(sorted, 0.5), 1), ms(quantile(sorted, 0.99), 1), model.waiting, model.copies,
    ]];
  });
  rows.sort((a, b) => b[0] - a[0]);
  fill(document.getElementById('models'), rows.slice(0, 200).map((row) => row[1]), ['name']);
  const hidden = Math.max(0, rows.length - 200) + state.models_left_out;
  const notes = [];
  if (hidden > 0) notes.push(`${hidden} further models are not listed.`);
  if (store.lost > 0) notes.push(`${store.lost} events came too fast to be shown: quantiles and lists are of the others, counts of all.`);
  text('models-note', notes.join(' '));
}

function drawRefusals(state, before, seconds) {
  const rows = Object.entries(state.outcomes)
    .filter(([reason]) => reason !== 'served')
    .sort((a, b) => b[1] - a[1])
    .map(([reason, count]) => [reason, rate((count - (before.outcomes[reason] ?? 0)) / seconds), count, REASONS[reason] ?? '']);
  if (rows.length === 0) rows.push(['none', '', '', 'no request was refused since this process began']);
  fill(document.getElementById('refusals'), rows, ['text', '', '', 'wrap']);
}

// Two minutes by the second: in time upwards, refused on top of it, hatched.
function drawTrend(store) {
  const colour = colours();
  const height = 96;
  const [pen, width] = context(document.getElementById('trend'), height);
  const columns = 120;
  const bars = Array.from({ length: columns }, () => ({ served: 0, refused: 0 }));
  for (let i = 1; i < store.counts.length; i += 1) {
    const [a, b] = [store.counts[i - 1], store.counts[i]];
    const served = (b.outcomes.served ?? 0) - (a.outcomes.served ?? 0);
    const refused = total(b.outcomes) - total(a.outcomes) - served;
    // What came between answers that are seconds apart is spread over these.
    const column = (count) => columns - 1 - Math.floor((store.state.now - count.at) / 1e9);
    const [first, last] = [b.at - a.at > 1e9 ? column(a) + 1 : column(b), column(b)];
    for (let at = Math.max(0, first); at <= last; at += 1) {
      bars[at].served += served / (last - first + 1);
      bars[at].refused += refused / (last - first + 1);
    }
  }
  const most = Math.max(1, ...bars.map((bar) => bar.served + bar.refused));
  const step = width / columns;
  const up = (number) => number / most * (height - 22);
  const lines = hatch(pen, colour.failed);
  bars.forEach((bar, column) => {
    const [x, wide] = [column * step + 0.5, Math.max(1, step - 1)];
    pen.fillStyle = colour.served;
    pen.fillRect(x, height - up(bar.served), wide, up(bar.served));
    pen.fillStyle = lines;
    pen.fillRect(x, height - up(bar.served + bar.refused), wide, up(bar.refused));
  });
  pen.fillStyle = colour.soft;
  pen.fillText(`${most.toFixed(0)} per second at most`, 8, 14);
}

export function drawPredictions(store) {
  const groups = new Map();
  for (const action of store.actions.values()) {
    if (action.status !== 'done' || action.expected_end === undefined || action.type === 'UNLOAD') continue;
    const key = JSON.stringify([action.model, action.type, action.batch ?? 0]);
    if (!groups.has(key)) groups.set(key, { action, expected: [], measured: [], errors: [] });
    const group = groups.get(key);
    const expected = action.expected_end - action.expected_begin;
    group.expected.push(expected);
    group.measured.push(action.end - action.begin);
    group.errors.push(action.end - action.begin - expected);
  }
  const rows = [...groups.values()].sort((a, b) => b.errors.length - a.errors.length).slice(0, 200).map((group) => {
    const errors = group.errors.sort(byNumber);
    const sizes = errors.map(Math.abs).sort(byNumber);
    const expected = quantile(group.expected.sort(byNumber), 0.5);
    return [
      group.action.model, group.action.type, group.action.batch ?? '–', errors.length, ms(expected, 3),
      ms(quantile(group.measured.sort(byNumber), 0.5), 3), (quantile(errors, 0.5) / 1e3).toFixed(0),
      (quantile(sizes, 0.99) / 1e3).toFixed(0), expected > 0 ? `${(100 * quantile(sizes, 0.5) / expected).toFixed(1)} %` : '–',
    ];
  });
  fill(document.getElementById('errors'), rows, ['name', 'text']);
}

const SIGNS = { up: '● up', suspected: '? suspected', draining: '◐ draining', lost: '✕ lost' };

function ago(ns) {
  const s = ns / 1e9;
  return s < 120 ? `${s.toFixed(0)} s` : s < 7200 ? `${(s / 60).toFixed(0)} min` : `${(s / 3600).toFixed(1)} h`;
}

export function drawDevices(state) {
  const rows = state.devices.map((device) => [
    device.id, device.kind,
    (SIGNS[device.state] ?? device.state) + (device.trouble === 'none' ? '' : `: ${device.trouble}`),
    ago(state.now - device.since), device.lanes,
    device.pages > 0 ? `${device.pages_used} of ${device.pages}` : '–', device.residents, device.actions,
    ms(device.margin), ms(device.lookahead),
  ]);
  fill(document.getElementById('device-list'), rows, ['', 'name', 'text']);
}
