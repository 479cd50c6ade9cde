import { parseArgs } from 'node:util';
import { type DynamicModule, Module } from '@nestjs/common';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../common/durations.js';
import {
  countUnanswered,
  ReconciliationModule,
  type ReconciliationReport,
  renderReport,
  ReportBooks,
} from '../reconciliation/index.js';
import { runInCommandApp } from './command-app.js';
import { PlatformModule } from './platform.module.js';
import type { ProcessResources } from './process-resources.js';
import { describeStartError } from './role-process.js';

const EXIT = { agreed: 0, differences: 1, incomplete: 2 } as const;

@Module({ imports: [ReconciliationModule] })
class ReconcileModule {
  static of(process: ProcessResources): DynamicModule {
    return { module: ReconcileModule, imports: [PlatformModule.of(process)] };
  }
}

/** `npm run reconcile`: prints the report and returns the exit code. Never throws. */
export async function runReconcile(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  output: Pick<Console, 'log' | 'error'> = console,
): Promise<number> {
  try {
    const options = parseReconcileOptions(args, new Date());
    if (options === null) {
      output.log(RECONCILE_HELP);
      return EXIT.agreed;
    }
    const report = await reconcile(options, env, new ProgressOutput(output));
    output.log(options.json ? JSON.stringify(report, null, 2) : renderReport(report));
    return exitCodeOf(report);
  } catch (error) {
    if (error instanceof UsageError) output.error(`${error.message}\n\n${RECONCILE_HELP}`);
    else output.error(`could not run: ${describeStartError(error)}`);
    return EXIT.incomplete;
  }
}

function reconcile(
  { providerWindowMs }: ReconcileOptions,
  env: NodeJS.ProcessEnv,
  progress: ProgressOutput,
): Promise<ReconciliationReport> {
  const command = {
    name: 'reconcile',
    moduleOf: (process: ProcessResources) => ReconcileModule.of(process),
  } as const;
  return runInCommandApp(command, env, (app) =>
    app.get(ReportBooks, { strict: false }).report({
      providerWindowMs,
      stopping: new AbortController().signal,
      onStep: (part, rowsRead) => progress.report(part, rowsRead),
    }),
  );
}

const PROGRESS_EVERY_MS = 30_000;

/** Prints progress of long work to stderr; stdout has only the report. */
class ProgressOutput {
  private lastAt = performance.now();

  constructor(private readonly output: Pick<Console, 'error'>) {}

  report(part: string, rowsRead: number): void {
    if (performance.now() - this.lastAt < PROGRESS_EVERY_MS) return;
    this.lastAt = performance.now();
    this.output.error(`in progress: ${part}, ${rowsRead} rows read`);
  }
}

function exitCodeOf(report: ReconciliationReport): number {
  if (report.differences.length > 0) return EXIT.differences;
  return countUnanswered(report) > 0 ? EXIT.incomplete : EXIT.agreed;
}

export interface ReconcileOptions {
  readonly json: boolean;
  /** Null: the providers are not queried. */
  readonly providerWindowMs: number | null;
}

/** The arguments are invalid; `message` says why. */
export class UsageError extends Error {}

const UNITS_MS: Readonly<Record<string, number>> = { m: MINUTE_MS, h: HOUR_MS, d: DAY_MS };
const DEFAULT_WINDOW = '2d';

export const RECONCILE_HELP = `npm run reconcile -- [--since <time>] [--no-upstream] [--json]

Compares wallets, ledger, orders, eSIMs, top-ups, events and the wholesalers with each other. Prints one line per
difference and a summary. Only reads, so the service can keep running. Needs DATABASE_URL and the usual settings
(.env.example), including the credentials of the wholesalers.

  --since <time>  Compare orders and top-ups that changed since then with the wholesalers: 90m, 36h, 7d, or a time
                  such as 2026-11-20T00:00:00Z (default: ${DEFAULT_WINDOW})
  --no-upstream   Do not query the wholesalers
  --json          Print one JSON object instead of lines
  --help          Show this help

Exit code: 0 no differences, 1 differences, 2 it could not run or a wholesaler did not answer every query.`;

/** Null when the user requests help. @throws UsageError */
export function parseReconcileOptions(args: readonly string[], now: Date): ReconcileOptions | null {
  const values = parse(args);
  if (values.help) return null;
  const windowMs = toWindowMs(values.since ?? DEFAULT_WINDOW, now);
  return { json: values.json, providerWindowMs: values['no-upstream'] ? null : windowMs };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        since: { type: 'string' },
        'no-upstream': { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function toWindowMs(since: string, now: Date): number {
  const [, count, unit] = /^(\d{1,6})([mhd])$/.exec(since) ?? [];
  if (count !== undefined && unit !== undefined) return Number(count) * UNITS_MS[unit]!;
  const windowMs = now.getTime() - Date.parse(since);
  if (!/^\d{4}-\d{2}-\d{2}/.test(since) || !(windowMs > 0))
    throw new UsageError('--since must be a past time, or a duration such as 90m, 36h or 7d');
  return windowMs;
}
