// Renders the tables and the picture of docs/performance.md and docs/capacity.md from bench results (docs/measured).

/**
 * Replaces the text between the marks of `docs/measured/<name>`.
 * @throws Error when the page lacks the marks
 */
export function withMeasured(page, name, text) {
  const mark = `<!-- from docs/measured/${name} -->`;
  const from = page.indexOf(mark);
  const to = page.indexOf('<!-- end -->', from);
  if (from < 0 || to < from) throw new Error(`a page lacks the mark ${mark} or its end`);
  return page.slice(0, from + mark.length) + `\n\n${text}\n\n` + page.slice(to);
}

/** Renders a table with padded columns, as Prettier formats it. */
function aligned(lines) {
  const widths = lines[0].map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  const render = (line) => `| ${line.map((text, column) => text.padEnd(widths[column])).join(' | ')} |`;
  return [
    render(lines[0]),
    `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`,
    ...lines.slice(1).map(render),
  ].join('\n');
}

/** The table of an order's life. */
export function lifeTable(result) {
  const { layouts } = readLife(result);
  const cell = ({ rowOf }, figure, digits) => {
    const row = rowOf(figure);
    if (row === undefined) return '';
    const text = (value) => value.toFixed(digits);
    return row.rounds > 1 ? `${text(row.median)} (${text(row.min)} to ${text(row.max)})` : text(row.median);
  };
  const line = (what, figure, digits = 0) => [what, ...layouts.map((layout) => cell(layout, figure, digits))];
  const costs = [...new Set(layouts.flatMap(({ figures }) => figures))].filter((figure) =>
    figure.startsWith('CPU an order, '),
  );
  return aligned([
    ['what', ...layouts.map(({ name }) => name)],
    line('orders a second from POST to webhook, sustained', 'orders from POST to webhook, sustained'),
    line(
      'the same, relative to a raw loop that runs only the SQL that accepts an order',
      'the same / raw loop of the acceptance alone',
      2,
    ),
    ...costs.map((figure) => line(`${figure}, ms`, figure, 1)),
    line('100 orders at once: until the last webhook, ms', '100 orders at once: until the last webhook'),
    ...layouts[0].loads.flatMap(({ percent }) =>
      ['p50', 'p95'].map((quantile) =>
        line(`at ${percent} % of that: ${quantile}, ms`, `at ${percent} % of that: ${quantile}`),
      ),
    ),
  ]);
}

/** The table of the cost of an idle `esim listen`, with the date and the machine. */
export function listenTable({ date, machine: { cpu, cores }, options: { minutes }, sections: [{ rows }] }) {
  const lines = rows.map(({ figure, unit, median }) => [
    unit === '' ? figure : `${figure}, ${unit}`,
    median.toLocaleString('en', { maximumFractionDigits: 1 }),
  ]);
  return `${minutes} minutes on ${date.slice(0, 10)} (${cores} cores, ${cpu}; other builds were running):\n\n${aligned([['what', 'figure'], ...lines])}`;
}

const MILLION = 1_000_000;
const SECONDS_A_DAY = 86_400;
const MS_AN_HOUR = 3_600_000;

/**
 * The cost of a million of each operation, from the measured CPU time of one.
 * @throws Error when a result lacks the rows
 */
export function capacityTable(life, catalog, webhooks) {
  const apart = readLife(life).layouts.find(({ name }) => name === 'roles apart');
  const things = [
    {
      what: 'orders, from POST to webhook (Sandbox)',
      api: medianOf(apart?.rowOf('CPU an order, api')),
      worker: medianOf(apart?.rowOf('CPU an order, worker')),
      postgres: medianOf(apart?.rowOf('CPU an order, PostgreSQL')),
    },
    {
      what: 'further deliveries of a backlog',
      worker: medianOf(find(webhooks, 'worker: CPU of its process per delivery')) / 1_000,
      postgres: medianOf(find(webhooks, 'worker: CPU of PostgreSQL per delivery')) / 1_000,
    },
    {
      what: 'calls, `GET /v1/catalog` of 25 packages, 1,000 keys',
      api: medianOf(find(catalog, '1,000 keys: CPU of its process per call')) / 1_000,
      postgres: medianOf(find(catalog, '1,000 keys: CPU of PostgreSQL per call')) / 1_000,
    },
  ];
  return aligned([
    [
      'a million',
      'API, ms each',
      'worker',
      'PostgreSQL',
      'core hours',
      'cores, spread over a day',
      'peak of five times that',
    ],
    ...things.map(({ what, api = 0, worker = 0, postgres }) => {
      const ms = api + worker + postgres;
      const cores = (MILLION * ms) / 1_000 / SECONDS_A_DAY;
      return [
        what,
        ...[api, worker, postgres].map((part) => (part === 0 ? '' : part.toFixed(2))),
        ((MILLION * ms) / MS_AN_HOUR).toFixed(2),
        cores.toFixed(3),
        (5 * cores).toFixed(2),
      ];
    }),
  ]);
}

function find({ sections }, figure) {
  return sections.flatMap(({ rows }) => rows).find((row) => row.figure === figure);
}

function medianOf(row) {
  if (row === undefined) throw new Error('a result lacks a row that docs/capacity.md needs');
  return row.median;
}

const WIDTH = 760;
const HEIGHT = 400;
const PLOT = { left: 64, right: 590, top: 48, bottom: 340 };
const FONT = 'font-family="system-ui, sans-serif"';
const COLORS = ['#0b5fad', '#b3470f'];
const TICKS_MS = [5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000];

/**
 * Parses the result of `npm run bench -- life`, by layout.
 * @throws Error when the result lacks the rows
 */
function readLife({ date, machine, sections }) {
  const layouts = sections.map(({ title, rows }) => {
    const name = /^Life of an order, ([^:]+):/.exec(title)?.[1];
    const rowOf = (figure) => rows.find((row) => row.figure === figure);
    const medianOf = (figure) => rowOf(figure)?.median;
    const loads = rows
      .map(({ figure }) => /^at ([\d.]+) % of that: p50$/.exec(figure)?.[1])
      .filter((load) => load !== undefined)
      .map((load) => ({
        percent: Number(load),
        p50: medianOf(`at ${load} % of that: p50`),
        p95: medianOf(`at ${load} % of that: p95`),
      }));
    if (name === undefined || loads.length === 0) throw new Error(`not a result of the life bench: ${title}`);
    const figures = rows.map(({ figure }) => figure);
    return { name, perSecond: medianOf('orders from POST to webhook, sustained'), loads, figures, rowOf };
  });
  return { date: date.slice(0, 10), cores: machine.cores, cpu: machine.cpu, layouts };
}

/**
 * Plots milliseconds from POST to webhook against orders per second, with a logarithmic vertical axis. The SVG has no
 * external fonts, no scripts and no theme colors, so it looks the same on GitHub, in a viewer and on paper.
 */
export function renderLatencyChart(result) {
  const { layouts, date, cores } = readLife(result);
  const points = layouts.flatMap(({ loads }) => loads.flatMap(({ p50, p95 }) => [p50, p95]));
  const bottomMs = TICKS_MS.findLast((tick) => tick <= Math.min(...points)) ?? TICKS_MS[0];
  const topMs = TICKS_MS.find((tick) => tick >= Math.max(...points)) ?? TICKS_MS.at(-1);
  const mostPerSecond = niceCeiling(Math.max(...layouts.map(({ perSecond }) => perSecond)));
  const x = (perSecond) => PLOT.left + (perSecond / mostPerSecond) * (PLOT.right - PLOT.left);
  const y = (ms) =>
    PLOT.bottom - (Math.log(ms / bottomMs) / Math.log(topMs / bottomMs)) * (PLOT.bottom - PLOT.top);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-labelledby="t d">`,
    '<title id="t">From POST to webhook, against orders a second</title>',
    `<desc id="d">${layouts.map(describe).join(' ')}</desc>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>`,
    label(PLOT.left, 24, `From POST to the receiver’s 200, in milliseconds (${cores} cores, ${date})`, {
      size: 15,
      weight: 600,
    }),
    ...TICKS_MS.filter((tick) => tick >= bottomMs && tick <= topMs).flatMap((tick) => [
      line(PLOT.left, y(tick), PLOT.right, y(tick), '#d5d9de'),
      label(PLOT.left - 8, y(tick) + 4, String(tick), { anchor: 'end' }),
    ]),
    ...[0, 0.25, 0.5, 0.75, 1].map((part) =>
      label(x(part * mostPerSecond), PLOT.bottom + 20, String(Math.round(part * mostPerSecond)), {
        anchor: 'middle',
      }),
    ),
    label((PLOT.left + PLOT.right) / 2, PLOT.bottom + 44, 'orders a second', { anchor: 'middle' }),
    ...layouts.flatMap((layout, nth) => curves(layout, COLORS[nth], x, y)),
    '</svg>\n',
  ].join('\n');
}

function curves({ name, perSecond, loads }, color, x, y) {
  const at = ({ percent }) => x((perSecond * percent) / 100);
  const last = loads.at(-1);
  return ['p95', 'p50'].flatMap((quantile) => {
    const path = loads.map((load) => `${at(load).toFixed(1)},${y(load[quantile]).toFixed(1)}`).join(' ');
    const dashes = quantile === 'p50' ? ' stroke-dasharray="5 4"' : '';
    return [
      `<polyline points="${path}" fill="none" stroke="${color}" stroke-width="2"${dashes}/>`,
      ...loads.map(
        (load) =>
          `<circle cx="${at(load).toFixed(1)}" cy="${y(load[quantile]).toFixed(1)}" r="3" fill="${color}"/>`,
      ),
      label(at(last) + 8, y(last[quantile]) + 4, `${name}, ${quantile}`, { color }),
    ];
  });
}

const describe = ({ name, perSecond, loads }) =>
  `${name}, ${Math.round(perSecond)} orders a second sustained: ` +
  `${loads.map(({ percent, p50, p95 }) => `at ${percent} % p50 ${Math.round(p50)} ms, p95 ${Math.round(p95)} ms`).join('; ')}.`;

const line = (x1, y1, x2, y2, color) =>
  `<line x1="${x1}" y1="${y1.toFixed(1)}" x2="${x2}" y2="${y2.toFixed(1)}" stroke="${color}"/>`;

function label(x, y, text, { anchor = 'start', size = 12, weight = 400, color = '#2b3138' } = {}) {
  return (
    `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${FONT} font-size="${size}" font-weight="${weight}" ` +
    `fill="${color}" text-anchor="${anchor}">${text}</text>`
  );
}

/** Rounds up so that the quarters are whole numbers. */
const niceCeiling = (value) => Math.ceil(value / 40) * 40;
