// The picture of latency against load: an SVG without fonts, scripts or colours of a scheme, so that GitHub, a viewer and
// paper show the same.

const WIDTH = 760;
const HEIGHT = 400;
const PLOT = { left: 64, right: 590, top: 48, bottom: 340 };
const FONT = 'font-family="system-ui, sans-serif"';
const COLOURS = ['#0b5fad', '#b3470f'];
const TICKS_MS = [5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000];

/**
 * What `npm run bench -- life` measured, layout by layout.
 * @throws Error for a result that has no such rows
 */
export function readLife({ date, machine, sections }) {
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

/** Milliseconds from POST to webhook over orders a second; the vertical axis is logarithmic. */
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
    ...layouts.flatMap((layout, nth) => curves(layout, COLOURS[nth], x, y)),
    '</svg>\n',
  ].join('\n');
}

function curves({ name, perSecond, loads }, colour, x, y) {
  const at = ({ percent }) => x((perSecond * percent) / 100);
  const last = loads.at(-1);
  return ['p95', 'p50'].flatMap((quantile) => {
    const path = loads.map((load) => `${at(load).toFixed(1)},${y(load[quantile]).toFixed(1)}`).join(' ');
    const dashes = quantile === 'p50' ? ' stroke-dasharray="5 4"' : '';
    return [
      `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"${dashes}/>`,
      ...loads.map(
        (load) =>
          `<circle cx="${at(load).toFixed(1)}" cy="${y(load[quantile]).toFixed(1)}" r="3" fill="${colour}"/>`,
      ),
      label(at(last) + 8, y(last[quantile]) + 4, `${name}, ${quantile}`, { colour }),
    ];
  });
}

const describe = ({ name, perSecond, loads }) =>
  `${name}, ${Math.round(perSecond)} orders a second sustained: ` +
  `${loads.map(({ percent, p50, p95 }) => `at ${percent} % p50 ${Math.round(p50)} ms, p95 ${Math.round(p95)} ms`).join('; ')}.`;

const line = (x1, y1, x2, y2, colour) =>
  `<line x1="${x1}" y1="${y1.toFixed(1)}" x2="${x2}" y2="${y2.toFixed(1)}" stroke="${colour}"/>`;

function label(x, y, text, { anchor = 'start', size = 12, weight = 400, colour = '#2b3138' } = {}) {
  return (
    `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${FONT} font-size="${size}" font-weight="${weight}" ` +
    `fill="${colour}" text-anchor="${anchor}">${text}</text>`
  );
}

/** So that its quarters are whole numbers. */
const niceCeiling = (value) => Math.ceil(value / 40) * 40;
