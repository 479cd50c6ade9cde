import { readLife } from './latency-chart.mjs';
import { aligned } from './measured-block.mjs';

/** The table of the life of an order. */
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
