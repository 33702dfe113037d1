// The section Requests: a list to filter, and what is known of the one that is chosen.

import { REASONS } from './now.js';
import { fill, ms } from './store.js';

const LISTED_MAX = 200;

const byId = (id) => document.getElementById(id);

function options(select, names) {
  const fixed = [...select.options].filter((option) => option.value === '' || option.value.startsWith('!')).length;
  if (select.options.length - fixed === names.length && names.every((name, i) => select.options[fixed + i].value === name)) return;
  const chosen = select.value;
  while (select.options.length > fixed) select.remove(fixed);
  for (const name of names) select.add(new Option(name, name));
  select.value = chosen;
}

// From its arrival, in ns.
export function story(request, action) {
  const after = (instant) => `${ms(instant - request.arrival, 3)} ms`;
  const lines = [];
  if (request.outcome === 'served') {
    lines.push(`It was answered ${after(request.finished)} after its arrival.`);
  } else {
    lines.push(`It was ended ${after(request.finished)} after its arrival, as ${request.outcome}: ${REASONS[request.outcome] ?? 'the reason has no description'}.`);
  }
  if (request.deadline === undefined) {
    lines.push('It had no deadline.');
  } else {
    const left = request.deadline - request.finished;
    lines.push(`The controller's deadline for it was ${after(request.deadline)} after its arrival${left >= 0 ? `, ${ms(left, 3)} ms after it ended` : `, ${ms(-left, 3)} ms before it ended`}.`);
  }
  if (request.earliest !== undefined) lines.push(`It could have been answered after ${after(request.earliest)} at the earliest, as predicted.`);
  if (request.cold) lines.push('Its model was loaded on no device when it arrived.');
  if (request.batch !== undefined) lines.push(`It ran in a batch of ${request.batch}, by action ${request.action} on device ${request.device}.`);
  if (action?.expected_begin !== undefined && action.begin !== undefined) {
    const late = action.begin - action.expected_begin;
    lines.push(`That EXEC began ${ms(Math.abs(late), 3)} ms ${late < 0 ? 'earlier' : 'later'} than expected when it was sent.`);
  }
  return lines;
}

// [what, from, until] in ns from its arrival.
function parts(request, action) {
  if (request.begin === undefined) return [['waited', 0, request.finished - request.arrival]];
  const begin = request.begin - request.arrival;
  const ended = begin + request.exec;
  const list = [];
  if (action?.sent !== undefined) {
    const sent = action.sent - request.arrival;
    list.push(['waited for its action', 0, sent], ['was sent, until EXEC began', sent, begin]);
  } else {
    list.push(['waited, until EXEC began', 0, begin]);
  }
  list.push(['EXEC', begin, ended], ['output and answer', ended, request.finished - request.arrival]);
  return list;
}

export class Requests {
  constructor(store, get) {
    this.store = store;
    this.get = get;
    this.chosen = null;
    this.listed = [];
    const redraw = () => this.draw(true);
    for (const id of ['by-model', 'by-outcome']) byId(id).addEventListener('change', redraw);
    byId('by-id').addEventListener('input', redraw);
    byId('filter').addEventListener('submit', (event) => event.preventDefault());
    byId('by-client').addEventListener('submit', (event) => {
      event.preventDefault();
      this.chosen = null;
      this.mark();
      byId('request').replaceChildren();
      this.ask(`id=${encodeURIComponent(byId('client-id').value)}`, true);
    });
    const body = byId('request-list').tBodies[0];
    body.addEventListener('click', (event) => this.choose(event.target.closest('tr')));
    body.addEventListener('keydown', (event) => this.key(event));
  }

  key(event) {
    const row = event.target.closest('tr');
    if (event.key === 'Enter' || event.key === ' ') this.choose(row);
    else if (event.key === 'ArrowDown') row.nextElementSibling?.focus();
    else if (event.key === 'ArrowUp') row.previousElementSibling?.focus();
    else return;
    event.preventDefault();
  }

  choose(row) {
    if (!row) return;
    this.chosen = this.listed[row.sectionRowIndex] ?? null;
    this.explain();
    this.mark();
  }

  matches(request) {
    const [model, outcome, id] = [byId('by-model').value, byId('by-outcome').value, byId('by-id').value.trim()];
    if (model && request.model !== model) return false;
    if (outcome === '!served' ? request.outcome === 'served' : outcome && request.outcome !== outcome) return false;
    return !id || request.id.includes(id);
  }

  // The list does not move away under a pointer or a focus, unless it has to change `now`.
  draw(now = false) {
    const { state, requests } = this.store;
    if (!state) return;
    options(byId('by-model'), state.models.map((model) => model.name).sort());
    options(byId('by-outcome'), Object.keys(state.outcomes).sort());
    const matching = requests.filter((request) => this.matches(request));
    byId('shown').textContent = `${Math.min(LISTED_MAX, matching.length)} of ${matching.length} that match, of the last ${requests.length}`;
    const list = byId('request-list');
    const held = !now && (list.matches(':hover') || list.contains(document.activeElement));
    if (held) {
      byId('shown').textContent += '; the list stands still while you are in it';
      return;
    }
    this.listed = matching.slice(-LISTED_MAX).reverse();
    const rows = this.listed.map((request) => [
      request.id, request.model, request.outcome === 'served' ? 'served' : `✕ ${request.outcome}`,
      ms(request.finished - request.arrival), request.deadline === undefined ? 'none' : ms(request.deadline - request.arrival),
      request.batch ?? '–', ((state.now - request.finished) / 1e9).toFixed(1),
    ]);
    const body = fill(list, rows, ['', 'name', 'text']);
    for (const row of body.rows) {
      row.tabIndex = 0;
      row.cells[2].className = this.listed[row.sectionRowIndex].outcome === 'served' ? 'text' : 'text bad';
    }
    this.mark();
  }

  mark() {
    for (const row of byId('request-list').tBodies[0].rows) {
      row.setAttribute('aria-selected', String(this.chosen !== null && this.listed[row.sectionRowIndex]?.id === this.chosen.id));
    }
  }

  explain() {
    const place = byId('request');
    place.replaceChildren();
    if (this.chosen === null) return;
    const add = (tag, text, parent = place) => {
      const element = document.createElement(tag);
      element.textContent = text;
      parent.append(element);
      return element;
    };
    const request = this.chosen;
    const action = request.action === undefined ? undefined : this.store.actions.get(request.action);
    add('h3', `Request ${request.id} for ${request.model}`);
    for (const line of story(request, action)) add('p', line);
    const table = add('table', '');
    table.createTBody();
    fill(table, parts(request, action).map(([what, from, until]) => [what, `${ms(from, 3)} – ${ms(until, 3)} ms`, `${ms(until - from, 3)} ms`]), ['text']);
    this.ask(`request=${request.id}`);
  }

  // What `foliot explain` says, from the server's log. Without one, the page has said what it knows.
  async ask(query, alone = false) {
    const asked = this.asked = Symbol(query);
    const answer = await this.get(`monitor/explanation?${query}`).catch(() => null);
    const text = answer ? await answer.text() : 'There was no answer from the server.';
    if (this.asked !== asked) return;
    const said = document.createElement(answer?.ok ? 'pre' : 'p');
    said.textContent = text;
    if (!answer?.ok) said.className = 'note';
    if (answer?.ok || alone) byId('request').replaceChildren();
    if (answer?.ok) said.tabIndex = 0;
    byId('request').append(said);
  }
}
