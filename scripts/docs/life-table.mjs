import { readLife } from './latency-chart.mjs';

const MARKS = ['<!-- from docs/measured/life.json -->', '<!-- end -->'];

/**
 * The page with its table of the life of an order written anew.
 * @throws Error when the page has lost its marks
 */
export function withLifeTable(page, result) {
  const [from, to] = MARKS.map((mark) => page.indexOf(mark));
  if (from < 0 || to < from) throw new Error(`docs/performance.md has not the marks ${MARKS.join(' and ')}`);
  return page.slice(0, from + MARKS[0].length) + `\n\n${table(result)}\n\n` + page.slice(to);
}

function table(result) {
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
    line('of a raw loop of the acceptance alone', 'the same / raw loop of the acceptance alone', 2),
    ...costs.map((figure) => line(`${figure}, ms`, figure, 1)),
    line('100 orders at once: until the last webhook, ms', '100 orders at once: until the last webhook'),
    ...layouts[0].loads.flatMap(({ percent }) =>
      ['p50', 'p95'].map((quantile) =>
        line(`at ${percent} % of that: ${quantile}, ms`, `at ${percent} % of that: ${quantile}`),
      ),
    ),
  ]);
}

/** As the formatter would: columns padded. */
function aligned(lines) {
  const widths = lines[0].map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  const render = (line) => `| ${line.map((text, column) => text.padEnd(widths[column])).join(' | ')} |`;
  return [
    render(lines[0]),
    `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`,
    ...lines.slice(1).map(render),
  ].join('\n');
}
