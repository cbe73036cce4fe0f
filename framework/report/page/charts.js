// Charts by Chart.js, in the colours of the page, drawn again when those change.
'use strict';

const kPalettes = {
  light: ['#1f6feb', '#d1630f', '#1a7f4b', '#8a3ffc', '#c4314b', '#007d79', '#9a6700', '#6e5494', '#3d5a80', '#b5179e'],
  dark: ['#6ea8fe', '#f0a35e', '#5cc98d', '#b794f6', '#ff8a9b', '#4fd1c5', '#e0c060', '#c3a6e8', '#9db7d5', '#f08bd8'],
};
const darkQuery = matchMedia('(prefers-color-scheme: dark)');
const drawn = [];  // {canvas, build, whole, and once it is drawn: chart}

const palette = () => (darkQuery.matches ? kPalettes.dark : kPalettes.light);
const colorOf = (index) => palette()[index % palette().length];
const styleOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// '#rrggbb' and 0..1 -> a colour that lets so much through.
const faded = (color, share) => color + Math.round(255 * share).toString(16).padStart(2, '0');

function axis(title, format) {
  return {
    title: {display: true, text: title, color: styleOf('--soft')},
    grid: {color: styleOf('--grid'), borderColor: styleOf('--line')},
    ticks: {color: styleOf('--soft'), maxRotation: 0, autoSkipPadding: 14, includeBounds: false, callback: format},
  };
}

// What all charts have in common.  `tip`: the text of a point.
function optionsOf({x, y, tip, title}) {
  return {
    animation: false, responsive: true, maintainAspectRatio: false, normalized: true,
    interaction: {mode: 'nearest', axis: 'x', intersect: false},
    scales: {x, y},
    plugins: {
      legend: {display: false},
      tooltip: {
        backgroundColor: styleOf('--text'), titleColor: styleOf('--card'), bodyColor: styleOf('--card'),
        callbacks: {label: tip, ...(title ? {title} : {})},
      },
    },
  };
}

// Lines of one group have one entry, that of the first.
function legendOf(chart) {
  const groups = new Map();
  chart.data.datasets.forEach((dataset, i) => {
    const group = dataset.group || dataset.label;
    groups.set(group, [...(groups.get(group) || []), i]);
  });
  const entries = [...groups].map(([group, members]) => {
    const dataset = chart.data.datasets[members[0]];
    const swatch = element('i');
    swatch.style.background = dataset.swatch || dataset.borderColor || dataset.backgroundColor;
    const toggle = element('button', {type: 'button', 'aria-pressed': 'true', onclick: () => {
      const visible = !chart.isDatasetVisible(members[0]);
      members.forEach((i) => chart.setDatasetVisibility(i, visible));
      toggle.setAttribute('aria-pressed', String(visible));
      chart.update();
    }}, swatch, group);
    return element('li', {}, toggle);
  });
  return element('ul', {class: 'legend'}, entries);
}

// build() -> Chart.js's configuration; called again for other colours.  Drawn by drawCharts, once it is in the page.
function chartOf(label, build, {height} = {}) {
  const canvas = element('canvas', {role: 'img', 'aria-label': label});
  const box = element('div', {class: 'chart'}, canvas);
  if (height) box.style.height = height + 'px';
  const whole = element('div', {}, box);
  drawn.push({canvas, build, whole});
  return whole;
}

function drawCharts() {
  for (const one of drawn) {
    one.chart = new Chart(one.canvas, one.build());
    if (one.chart.data.datasets.length > 1) one.whole.append(legendOf(one.chart));
  }
}

function redraw() {
  for (const {chart, build, whole} of drawn) {
    const {data, options} = build();
    chart.data = data;
    chart.options = options;
    chart.update();
    const legend = whole.querySelector('.legend');
    if (legend) legend.replaceWith(legendOf(chart));
  }
}
darkQuery.addEventListener('change', redraw);
addEventListener('beforeprint', () => drawn.forEach(({chart}) => chart.resize()));

// lines: [{label, group, color, points: [{x, y}], dashed, points_shown, width, order}]
function lineConfig(lines, {x, y, format = numberText, tick = format, zero = false}) {
  const datasets = lines.map((line) => ({
    label: line.label, group: line.group, data: line.points, borderColor: line.color, backgroundColor: line.color,
    borderWidth: line.width || 1.8, borderDash: line.dashed ? [6, 4] : [], tension: 0, spanGaps: true,
    pointRadius: line.points_shown || line.points.length === 1 ? 3 : 0, pointHitRadius: 8, order: line.order || 0, clip: 5,
  }));
  const values = new Set(lines.flatMap((line) => line.points.map((point) => point.y)));
  const from_zero = zero || values.size === 1;  // around a single value Chart.js invents an axis
  const end = Math.max(...lines.flatMap((line) => line.points.map((point) => point.x)));
  const options = optionsOf({
    x: {type: 'linear', min: 0, max: end, ...axis(x, numberText)},
    y: {type: 'linear', ...(from_zero ? {suggestedMin: 0} : {}), ...axis(y, tick)},
    tip: (item) => `${item.dataset.label}: ${format(item.parsed.y)}`,
    title: (items) => (items.length ? `${x}: ${numberText(items[0].parsed.x)}` : ''),
  });
  options.scales.x.title.display = true;
  options.scales.y.title.display = y !== '';
  return {type: 'line', data: {datasets}, options};
}

const lineChart = (label, lines, options) => chartOf(label, () => lineConfig(lines(), options));

// bars() -> [{label, color, values}], one value a name.
function barChart(label, names, bars, {x, y, format = numberText, tick = format, stacked = false}) {
  return chartOf(label, () => {
    const datasets = bars().map((bar) => ({
      label: bar.label, data: bar.values, backgroundColor: bar.color, swatch: bar.color, maxBarThickness: 46,
    }));
    const options = optionsOf({
      x: {type: 'category', stacked, ...axis(x), grid: {display: false}},
      y: {stacked, beginAtZero: true, ...axis(y, tick)},
      tip: (item) => `${item.dataset.label}: ${format(item.parsed.y)}`,
    });
    delete options.scales.x.ticks.callback;
    options.scales.y.title.display = y !== '';
    return {type: 'bar', data: {labels: names, datasets}, options};
  });
}

// rows: names from top to bottom; kinds() -> [{label, color, spans: [{x: [begin, end], y: row, note}]}]
function spanChart(label, rows, kinds, {x, end}) {
  const build = () => {
    const datasets = kinds().map((kind) => ({
      label: kind.label, data: kind.spans, backgroundColor: kind.color, swatch: kind.color,
      borderColor: styleOf('--card'), borderWidth: kind.edged ? 1 : 0, borderSkipped: false,
      grouped: false, barPercentage: 0.9, categoryPercentage: 0.94, minBarLength: 1,
    }));
    const options = optionsOf({
      x: {type: 'linear', min: 0, max: end, ...axis(x, numberText)},
      y: {type: 'category', labels: rows, ...axis(''), grid: {display: false}},
      tip: (item) => {
        const [from, to] = item.raw.x;
        return `${item.raw.note || item.dataset.label}: ${secondsText(1e-3 * (to - from))}, from ${numberText(from)} ms`;
      },
      title: (items) => (items.length ? items[0].raw.y : ''),
    });
    options.indexAxis = 'y';
    options.interaction = {mode: 'nearest', axis: 'xy', intersect: true};
    options.scales.y.title.display = false;
    options.scales.y.ticks.autoSkip = false;
    delete options.scales.y.ticks.callback;
    return {type: 'bar', data: {datasets}, options};
  };
  return chartOf(label, build, {height: 70 + 24 * rows.length});
}
