import { createReadStream } from 'node:fs';
import { parseArgs } from 'node:util';
import { type DynamicModule, Module } from '@nestjs/common';
import { AuditModule, LostChanges, type ReadChanges } from '../audit/index.js';
import { OtherRestoreOpen, RepairRestore, RestoreModule, WorkersConnected } from '../restore/index.js';
import { runInCommandApp } from './command-app.js';
import { PlatformModule } from './platform.module.js';
import type { ProcessResources } from './process-resources.js';
import { renderRepair, renderStatus } from './restore-report.js';
import { describeStartError } from './role-process.js';

const EXIT = { repaired: 0, incomplete: 1, notRun: 2 } as const;

@Module({ imports: [RestoreModule, AuditModule] })
class RestoreEpochModule {
  static of(process: ProcessResources): DynamicModule {
    return { module: RestoreEpochModule, imports: [PlatformModule.of(process)] };
  }
}

type Output = Pick<Console, 'log' | 'error'>;

/** `npm run restore-epoch`: prints what was done and what remains, and returns the exit code. Never throws. */
export async function runRestoreEpoch(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  output: Output = console,
): Promise<number> {
  try {
    const options = parseRestoreOptions(args, new Date());
    if (options === null) {
      output.log(RESTORE_HELP);
      return EXIT.repaired;
    }
    return await withRestore(env, (repair, lost) =>
      options.restoredTo === null
        ? showStatus(repair, output)
        : repairTo(repair, lost, { ...options, restoredTo: options.restoredTo }, output),
    );
  } catch (error) {
    if (error instanceof UsageError) output.error(`${error.message}\n\n${RESTORE_HELP}`);
    else if (error instanceof WorkersConnected || error instanceof OtherRestoreOpen)
      output.error(error.message);
    else output.error(`could not run: ${describeStartError(error)}`);
    return EXIT.notRun;
  }
}

function withRestore(
  env: NodeJS.ProcessEnv,
  work: (repair: RepairRestore, lost: LostChanges) => Promise<number>,
): Promise<number> {
  const command = {
    name: 'restore-epoch',
    moduleOf: (process: ProcessResources) => RestoreEpochModule.of(process),
  } as const;
  return runInCommandApp(command, env, (app) =>
    work(app.get(RepairRestore, { strict: false }), app.get(LostChanges, { strict: false })),
  );
}

async function repairTo(
  repair: RepairRestore,
  lost: LostChanges,
  { restoredTo, auditLog, replaces, opens }: RestoreOptions & { readonly restoredTo: Date },
  output: Output,
): Promise<number> {
  const changes = auditLog === null ? null : await readChanges(lost, auditLog, restoredTo);
  const report = await repair.repair({
    ...{ restoredTo, replaces, opens },
    stopping: new AbortController().signal,
    onProgress: (text) => output.error(`at work: ${text}`),
  });
  output.log(renderRepair(report, changes));
  return report.isRepaired ? EXIT.repaired : EXIT.incomplete;
}

async function showStatus(repair: RepairRestore, output: Output): Promise<number> {
  const status = await repair.status();
  output.log(status === null ? 'No restore has been repaired.' : renderStatus(status));
  return status !== null && status.epoch.completedAt === null ? EXIT.incomplete : EXIT.repaired;
}

/** @throws UsageError for a file that cannot be read */
async function readChanges(lost: LostChanges, file: string, since: Date): Promise<ReadChanges> {
  const lines = file === '-' ? process.stdin : createReadStream(file, 'utf8');
  try {
    return await lost.read(lines, since);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    throw new UsageError(`--audit-log: ${(error as Error).message}`);
  }
}

interface RestoreOptions {
  /** Null: only shows the state of the last repair. */
  readonly restoredTo: Date | null;
  /** A file of log lines, `-` for standard input; null: changes are not listed. */
  readonly auditLog: string | null;
  readonly replaces: boolean;
  readonly opens: boolean;
}

/** The arguments are invalid; `message` says why. */
class UsageError extends Error {}

export const RESTORE_HELP = `npm run restore-epoch -- --to <time> [--audit-log <file>] [--open] [--replace]
npm run restore-epoch -- --status

Makes a restored database safe to sell from again. Stop every worker before the restore, and run this before you start
the first one. If the backup is older than the last release, run the migrations first. The API and the portal serve
reads and return 503 for writes until you run this with --open. The admin port accepts writes, because you must revoke
keys again. This finds the orders and top-ups of the lost period at the wholesalers. A partner that repeats its call with
the same Idempotency-Key within 48 hours gets the original purchase. You can interrupt this and run it again.

Needs DATABASE_URL and the usual settings (.env.example), with the credentials of the wholesalers.

  --to <time>         The time to which the database was restored, such as 2026-11-20T09:30:00Z
  --audit-log <file>  Log lines of admin, portal and workers since then ("-": standard input). Lists the changes of the lost
                      period, such as revoked keys that are valid again
  --open              Accept writes at the end. Run without it first, repeat the listed changes, then run with it
  --replace           Use another --to than the repair in progress, because it was wrong or you restored again
  --status            Show what the last repair found, and which purchases are still unclaimed
  --help              Show this help

Exit code: 0 repaired, 1 a wholesaler did not respond and writes are still blocked (run it again), 2 it could not run.`;

/** Null when the user requests help. @throws UsageError */
function parseRestoreOptions(args: readonly string[], now: Date): RestoreOptions | null {
  const values = parse(args);
  if (values.help) return null;
  const auditLog = values['audit-log'] ?? null;
  const { replace: replaces, open: opens } = values;
  if (values.status) return { restoredTo: null, auditLog, replaces, opens };
  const restoredTo = new Date(values.to ?? '');
  if (!/^\d{4}-\d{2}-\d{2}T.*(Z|[+-]\d{2}:\d{2})$/.test(values.to ?? '') || !(restoredTo <= now))
    throw new UsageError('--to must be a past time with a time zone, such as 2026-11-20T09:30:00Z');
  return { restoredTo, auditLog, replaces, opens };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        to: { type: 'string' },
        'audit-log': { type: 'string' },
        open: { type: 'boolean', default: false },
        replace: { type: 'boolean', default: false },
        status: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
