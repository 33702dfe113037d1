// The sections Queues and Page cache.

import { fill, ms, quantile, rate } from './store.js';

const WINDOW_S = 10;
const LISTED_MAX = 200;

const byId = (id) => document.getElementById(id);

export function drawQueues(store) {
  const { state } = store;
  const before = store.countsBefore(WINDOW_S);
  const seconds = (state.now - before.at) / 1e9;
  if (seconds <= 0) return;
  const slacks = new Map();
  for (const request of store.requests) {
    if (request.deadline === undefined || request.finished < before.at) continue;
    if (!slacks.has(request.model)) slacks.set(request.model, []);
    slacks.get(request.model).push(request.deadline - request.finished);
  }
  const asked = state.models.filter((model) => model.waiting > 0 || model.sent > 0 || slacks.has(model.name));
  asked.sort((a, b) => b.waiting - a.waiting || b.sent - a.sent);
  const rows = asked.slice(0, LISTED_MAX).map((model) => {
    const answers = ((model.outcomes.served ?? 0) - (before.models.get(model.name)?.served ?? 0)) / seconds;
    const sorted = (slacks.get(model.name) ?? []).sort((a, b) => a - b);
    return [
      model.name, model.waiting, model.sent, model.copies, rate(answers),
      model.waiting === 0 ? '0' : answers > 0 ? (model.waiting / answers).toFixed(2) : '–',
      ms(quantile(sorted, 0.5)), ms(quantile(sorted, 0.01)),
    ];
  });
  if (rows.length === 0) rows.push(['nothing waits', '', '', '', '', '', '', '']);
  fill(byId('queue-list'), rows, ['name']);
}

// UNLOADs that were sent to the same device at the same instant as the LOAD.
function evictions(store) {
  const evicted = new Map();
  for (const action of store.actions.values()) {
    if (action.type !== 'UNLOAD' || action.sent === undefined) continue;
    const key = `${action.device} ${action.sent}`;
    evicted.set(key, [...(evicted.get(key) ?? []), action.model]);
  }
  return evicted;
}

export function drawPages(store) {
  const { state } = store;
  const loaded = state.models.filter((model) => model.copies > 0);
  loaded.sort((a, b) => b.pages * b.copies - a.pages * a.copies);
  fill(byId('page-list'), loaded.slice(0, LISTED_MAX).map((model) => [
    model.name, model.pages, model.copies, model.pages * model.copies, (model.held_by ?? []).join(', '),
  ]), ['name', '', '', '', 'text']);
  const evicted = evictions(store);
  const loads = [...store.actions.values()].filter((action) => action.type === 'LOAD').slice(-LISTED_MAX).reverse();
  const rows = loads.map((load) => [
    load.end === undefined ? 'under way' : ((state.now - load.end) / 1e9).toFixed(1), load.device, load.model,
    load.end === undefined ? '–' : load.status === 'done' ? ms(load.end - load.begin) : `✕ ${load.status}`,
    (evicted.get(`${load.device} ${load.sent}`) ?? []).join(', ') || '–',
  ]);
  if (rows.length === 0) rows.push(['none', '', '', '', '']);
  fill(byId('load-list'), rows, ['', '', 'name', '', 'wrap']);
}
