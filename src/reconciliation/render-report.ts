import type { Difference } from './difference.js';
import type { ReconciliationReport } from './report.js';

const MICROS = 1_000_000;

/** The report for a person: one line per difference, then a summary of the checks. */
export function renderReport(report: ReconciliationReport): string {
  return [...report.differences.map(renderDifference), ...renderSummary(report)].join('\n');
}

/** `ERROR check: order ord_... : expected ..., found .... The rule. To do: ...` */
export function renderDifference(difference: Difference): string {
  const { check, severity, what, expected, found, advice } = difference;
  const subject = Object.entries(difference.subject).map(([name, id]) => `${name} ${id}`);
  return `${severity.toUpperCase()} ${check}: ${subject.join(', ')}: expected ${expected}; found ${found}. ${what} To do: ${advice}`;
}

function renderSummary(report: ReconciliationReport): readonly string[] {
  const { checked, checks, cut, differences, durationMs } = report;
  const counts = Object.entries(checked).map(([name, count]) => `${count} ${name}`);
  const errors = differences.filter(({ severity }) => severity === 'error').length;
  return [
    ...cut.map((check) => `${check}: more differences than listed here`),
    `checked ${counts.join(', ')}`,
    ...renderProviders(report),
    `${checks} checks, ${differences.length} differences (${errors} errors, ${differences.length - errors} warnings), ` +
      `${countUnanswered(report)} queries unanswered, ${(durationMs / 1_000).toFixed(1)} s`,
  ];
}

function renderProviders({ since, upstreams }: ReconciliationReport): readonly string[] {
  if (since === null) return ['upstream: not queried'];
  if (upstreams.length === 0) return ['upstream: none connected'];
  return upstreams.flatMap(({ provider, orders, topups, balance, unanswered, unansweredCount }) => [
    ...unanswered.map((what) => `UNANSWERED ${provider} ${what}`),
    ...(unansweredCount > unanswered.length ? [`UNANSWERED ${provider}: more than listed here`] : []),
    `upstream ${provider}: ${orders} orders and ${topups} topups since ${since.toISOString()}, balance ` +
      (balance ? `${(balance.micros / MICROS).toFixed(2)} ${balance.currency}` : 'unknown'),
  ]);
}

/** Number of unanswered provider queries: the comparison is incomplete. */
export function countUnanswered({ upstreams }: ReconciliationReport): number {
  return upstreams.reduce((sum, { unansweredCount }) => sum + unansweredCount, 0);
}
