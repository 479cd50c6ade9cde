import type { DatabaseServer } from './database-server.js';

/** PostgreSQL must load the extension at startup. */
export const STATEMENT_SETTINGS = {
  shared_preload_libraries: 'pg_stat_statements',
  'pg_stat_statements.max': 1_000,
  'pg_stat_statements.track_planning': 'on',
};

/** One role's use of one statement since the last reset. */
export interface CountedStatement {
  readonly role: string;
  readonly query: string;
  readonly calls: number;
  /** Time of all its calls inside PostgreSQL. */
  readonly totalMs: number;
}

/** Counts the statements that clients sent to one database, by role, including BEGIN and COMMIT. */
export class StatementCounts {
  private constructor(
    private readonly server: DatabaseServer,
    private readonly database: string,
  ) {}

  static async open(server: DatabaseServer, database: string): Promise<StatementCounts> {
    await server.query('CREATE EXTENSION IF NOT EXISTS pg_stat_statements');
    return new StatementCounts(server, database);
  }

  async reset(): Promise<void> {
    await this.server.query('SELECT pg_stat_statements_reset()');
  }

  /** Most expensive first. The bench's own statements run as another role. */
  async read(roles = '%'): Promise<readonly CountedStatement[]> {
    return this.server.query<CountedStatement>(
      `SELECT r.rolname AS role, s.query, sum(s.calls)::int AS calls,
              sum(s.total_exec_time + s.total_plan_time) AS "totalMs"
       FROM pg_stat_statements s
       JOIN pg_roles r ON r.oid = s.userid
       JOIN pg_database d ON d.oid = s.dbid
       WHERE d.datname = $1 AND r.rolname LIKE $2 AND s.toplevel
       GROUP BY 1, 2 ORDER BY 4 DESC`,
      [this.database, roles],
    );
  }
}

export function callsOf(statements: readonly CountedStatement[], role?: string): number {
  return statements.reduce((sum, one) => sum + (role === undefined || one.role === role ? one.calls : 0), 0);
}

/**
 * One line per statement, for the most expensive ones.
 * @param count number of events or orders that caused them
 */
export function describeStatements(
  statements: readonly CountedStatement[],
  count: number,
  of: string,
): string[] {
  return statements.slice(0, 14).map(({ role, query, calls, totalMs }) => {
    const perEach = (calls / count).toFixed(3);
    const us = Math.round((totalMs / count) * 1_000);
    const mean = (totalMs / calls).toFixed(2);
    const text = query.replaceAll(/\s+/g, ' ').trim().slice(0, 90);
    return `  ${role.replace('bench_', '').padEnd(7)}${perEach} per ${of}, ${us} us per ${of}, ${mean} ms each: ${text}`;
  });
}
