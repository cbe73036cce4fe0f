// Elements, tables and numbers as text.  Everything that a run brings goes in as text, never as HTML.
'use strict';

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === 'class') made.className = value;
    else if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined) made.append(child);
  }
  return made;
}

const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);

// Four significant digits, grouped by thousands.
function numberText(value) {
  if (!isNumber(value)) return '–';
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString('en-US');
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e9)) return value.toExponential(2);
  return Number(value.toPrecision(4)).toLocaleString('en-US', {maximumFractionDigits: 6});
}

function percentText(value) {
  return isNumber(value) ? (100 * value).toFixed(2) + ' %' : '–';
}

// For the ticks of an axis.
const percentTick = (value) => Number((100 * value).toPrecision(4)) + ' %';

function bytesText(value) {
  if (!isNumber(value)) return '–';
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let unit = 0;
  while (Math.abs(value) >= 1000 && unit + 1 < units.length) {
    value /= 1000;
    ++unit;
  }
  return (unit === 0 ? numberText(value) : Number(value.toPrecision(3)).toString()) + ' ' + units[unit];
}

function secondsText(value) {
  if (!isNumber(value)) return '–';
  if (value === 0) return '0 s';
  if (value < 1e-3) return Number((1e6 * value).toPrecision(3)) + ' µs';
  if (value < 1) return Number((1e3 * value).toPrecision(3)) + ' ms';
  if (value < 120) return Number(value.toPrecision(3)) + ' s';
  const pad = (part) => String(part).padStart(2, '0');
  const all = Math.round(value);
  const minutes = Math.floor(all / 60);
  if (minutes < 60) return minutes + ':' + pad(all % 60) + ' min';
  return Math.floor(minutes / 60) + ':' + pad(minutes % 60) + ':' + pad(all % 60) + ' h';
}

// columns: [{title, text: bool, of: (row) => string or element}]; columns without any value are left out.
function tableOf(columns, rows, {marked = () => false, tall = rows.length > 14} = {}) {
  const cells = rows.map((row) => columns.map((column) => column.of(row)));
  const shown = columns.map((column, i) => column.always || cells.some((row) => row[i] !== '–'));
  const kept = (list) => list.filter((_, i) => shown[i]);
  const kind = (column) => (column.text ? {class: 'text'} : {});
  const head = kept(columns).map((column) => element('th', {...kind(column), scope: 'col'}, column.title));
  const body = cells.map((row, r) =>
    element('tr', marked(rows[r]) ? {class: 'mark'} : {},
            kept(row.map((cell, i) => element('td', kind(columns[i]), cell)))));
  return element('div', {class: tall ? 'wide tall' : 'wide', tabindex: '0'},
                 element('table', {}, element('thead', {}, element('tr', {}, head)),
                         element('tbody', {}, body)));
}

function fold(title, ...children) {
  return element('details', {}, element('summary', {}, title), children);
}

function cardsOf(facts) {
  const shown = facts.filter(([, text]) => text !== '–' && text !== '');
  return element('div', {class: 'cards'}, shown.map(([title, text]) =>
    element('div', {class: 'card'}, element('b', {}, text), element('span', {}, title))));
}

function stateOf(run) {
  const known = ['completed', 'running', 'failed', 'stopped', 'unfinished'];
  const state = element('span', {class: 'state ' + (known.includes(run.state) ? run.state : '')}, run.state);
  // A run that learned nothing is not to look like one that went well.
  if (!((run.summary || {}).test || {}).guessing) return state;
  return element('span', {}, state, ' ', element('span', {class: 'state failed'}, 'accuracy of guessing'));
}

function section(id, title, ...content) {
  return element('section', {id}, element('h2', {}, title), content);
}

const soft = (...text) => element('p', {class: 'soft small'}, ...text);
