// The monitor page: asks the feed four times a second while it is seen, and draws what it says.
// Without a viewer there is nothing to do for the server.

import { drawPages, drawQueues } from './memory.js';
import { drawDevices, drawNow, drawPredictions } from './now.js';
import { Requests } from './requests.js';
import { Services } from './services.js';
import { Store } from './store.js';
import { Timelines } from './timelines.js';
import { traceOf } from './trace.js';

const INTERVAL_MS = 250;
const RETRY_MS = 1000;
const VERSION = 1;

const byId = (id) => document.getElementById(id);
const store = new Store();
const lanes = new Timelines(byId('lanes'), (text) => { byId('action').textContent = text; });
const requests = new Requests(store, withKey);
const services = new Services(byId('services-shown'), byId('service-tables'), withKey);

let next = '';
let paused = false;
let asked = true;     // whether the feed takes this key, or none

function say(text, trouble = false) {
  const place = byId('state');
  if (place.textContent !== text) place.textContent = text;
  place.className = trouble ? 'trouble' : '';
}

function draw() {
  if (!store.state) return;
  drawNow(store);
  drawPredictions(store);
  drawDevices(store.state);
  drawQueues(store);
  drawPages(store);
  lanes.draw(store);
  requests.draw();
}

function withKey(path) {
  const key = sessionStorage.getItem('key');
  return fetch(path, { headers: key ? { Authorization: `Bearer ${key}` } : {} });
}

async function ask() {
  const answer = await withKey(`monitor/feed?since=${next}`);
  if (answer.status === 401 || answer.status === 403) {
    asked = false;
    byId('key-form').hidden = false;
    byId('key').focus();
    throw new Error(answer.status === 401 ? 'the server wants a key' : 'the key has no scope metrics');
  }
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  const json = await answer.json();
  if (json.version !== VERSION) throw new Error(`the feed has version ${json.version}, this page ${VERSION}: load it again`);
  byId('key-form').hidden = true;
  next = json.next;
  store.add(json);
}

async function turn() {
  let wait = INTERVAL_MS;
  if (!paused && !document.hidden && asked) {
    try {
      await ask();
      if (!paused) say(`● live, up ${duration(store.state.now)}`);
      draw();
      services.read();
    } catch (error) {
      say(`✕ ${error instanceof TypeError ? 'no answer from the server' : error.message}`, true);
      wait = RETRY_MS;
    }
  }
  setTimeout(turn, wait);
}

function duration(ns) {
  const s = Math.floor(ns / 1e9);
  return s < 60 ? `${s} s` : s < 3600 ? `${Math.floor(s / 60)} min` : `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
}

// What happens meanwhile is asked for afterwards, as far as the server still has it.
function pause() {
  paused = !paused;
  byId('pause').setAttribute('aria-pressed', String(paused));
  byId('pause').textContent = paused ? 'Go on' : 'Pause';
  if (paused) say('▮▮ paused');
  if (!paused) lanes.shift = 0;
}

// What the page has, as a file that Perfetto and chrome://tracing open.
function save() {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([JSON.stringify(traceOf(store))], { type: 'application/json' }));
  link.download = 'foliot-trace.json';
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

byId('save').addEventListener('click', save);
byId('pause').addEventListener('click', pause);
document.addEventListener('keydown', (event) => {
  if (event.key === 'p' && !event.target.closest('input, select') && !event.ctrlKey && !event.metaKey && !event.altKey) pause();
});
byId('window').addEventListener('change', (event) => {
  lanes.span = Number(event.target.value) * 1e9;
  lanes.shift = 0;
  lanes.redraw();
});
byId('key-form').addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem('key', byId('key').value.trim());
  byId('key').value = '';
  asked = true;
});
window.addEventListener('resize', draw);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
turn();
