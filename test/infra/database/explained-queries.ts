import type { DataSource, Logger } from 'typeorm';

/** A statement sent by a repository. */
interface SentQuery {
  readonly text: string;
  readonly parameters: readonly unknown[];
}

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly Plans?: readonly PlanNode[];
}

/** The rows that a statement read. */
export interface ReadRows {
  /** Tables read by a sequential scan. */
  readonly scanned: readonly string[];
  /** Rows and index entries read, including those that a condition filtered out. */
  readonly rows: number;
}

/** Collects the reads and deletes of a data source during `work`, and explains each as it was sent. */
export async function explainQueriesOf(
  dataSource: DataSource,
  work: () => Promise<unknown>,
): Promise<readonly (SentQuery & ReadRows)[]> {
  const sent: SentQuery[] = [];
  const before = dataSource.logger;
  dataSource.logger = new Recorder(sent);
  try {
    await work();
  } finally {
    dataSource.logger = before;
  }
  const explained = [];
  for (const query of sent) explained.push({ ...query, ...(await explain(dataSource, query)) });
  return explained;
}

class Recorder implements Logger {
  constructor(private readonly sent: SentQuery[]) {}

  logQuery(text: string, parameters: unknown[] = []): void {
    if (/^\s*(SELECT|WITH|DELETE)\b/i.test(text)) this.sent.push({ text, parameters });
  }
  logQueryError(): void {}
  logQuerySlow(): void {}
  logSchemaBuild(): void {}
  logMigration(): void {}
  log(): void {}
}

async function explain(dataSource: DataSource, { text, parameters }: SentQuery): Promise<ReadRows> {
  const runner = dataSource.createQueryRunner();
  // EXPLAIN ANALYZE must not delete again, so it runs in a transaction.
  await runner.startTransaction();
  const rows = (await runner
    .query(`EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ${text}`, [...parameters])
    .finally(() => runner.rollbackTransaction())
    .finally(() => runner.release())) as { 'QUERY PLAN': [{ Plan: PlanNode }] }[];
  const nodes = flatten(rows[0]!['QUERY PLAN'][0].Plan);
  const scans = nodes.filter((node) => node['Node Type'].endsWith('Scan') && node['Actual Loops'] > 0);
  return {
    scanned: scans.flatMap((node) => (node['Node Type'] === 'Seq Scan' ? (node['Relation Name'] ?? []) : [])),
    rows: Math.ceil(scans.reduce((sum, node) => sum + rowsReadBy(node), 0)),
  };
}

function rowsReadBy(node: PlanNode): number {
  const read =
    node['Actual Rows'] +
    (node['Rows Removed by Filter'] ?? 0) +
    (node['Rows Removed by Index Recheck'] ?? 0);
  return read * node['Actual Loops'];
}

function flatten(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(flatten)];
}
