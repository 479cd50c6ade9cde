import { aligned } from './measured-block.mjs';

/** The table of what an idle `esim listen` costs, and on which day of which machine. */
export function listenTable({ date, machine: { cpu, cores }, options: { minutes }, sections: [{ rows }] }) {
  const lines = rows.map(({ figure, unit, median }) => [
    unit === '' ? figure : `${figure}, ${unit}`,
    median.toLocaleString('en', { maximumFractionDigits: 1 }),
  ]);
  return `${minutes} minutes on ${date.slice(0, 10)} (${cores} cores, ${cpu}; other builds ran beside):\n\n${aligned([['what', 'figure'], ...lines])}`;
}
