import type { DatabaseServer } from '../service/database-server.js';

/** To be loaded before the server starts. */
export const STATEMENT_SETTINGS = {
  shared_preload_libraries: 'pg_stat_statements',
  'pg_stat_statements.max': 1_000,
  'pg_stat_statements.track_planning': 'on',
};

/** One statement of one role since the last reset; times are of all its calls, inside PostgreSQL. */
export interface CountedStatement {
  readonly role: string;
  readonly query: string;
  readonly calls: number;
  readonly totalMs: number;
}

/** What one database was asked, by role: every statement that a client sent, BEGIN and COMMIT included. */
export class StatementCounts {
  private constructor(
    private readonly server: DatabaseServer,
    private readonly database: string,
    private readonly roles: string,
  ) {}

  /** @param roles a pattern of LIKE; by default those that the bench has made */
  static async open(server: DatabaseServer, database: string, roles = 'bench\\_%'): Promise<StatementCounts> {
    await server.query('CREATE EXTENSION IF NOT EXISTS pg_stat_statements');
    return new StatementCounts(server, database, roles);
  }

  async reset(): Promise<void> {
    await this.server.query('SELECT pg_stat_statements_reset()');
  }

  /** The dearest first. */
  async read(): Promise<readonly CountedStatement[]> {
    return this.server.query<CountedStatement>(
      `SELECT r.rolname AS role, s.query, sum(s.calls)::int AS calls,
              sum(s.total_exec_time + s.total_plan_time) AS "totalMs"
       FROM pg_stat_statements s
       JOIN pg_roles r ON r.oid = s.userid
       JOIN pg_database d ON d.oid = s.dbid
       WHERE d.datname = $1 AND r.rolname LIKE $2 AND s.toplevel
       GROUP BY 1, 2 ORDER BY 4 DESC`,
      [this.database, this.roles],
    );
  }
}

export function callsOf(statements: readonly CountedStatement[], role?: string): number {
  return statements.reduce((sum, one) => sum + (role === undefined || one.role === role ? one.calls : 0), 0);
}

/** The dearest statements, for the notes of a section. */
export function describeStatements(
  statements: readonly CountedStatement[],
  { count, of = 'event', most = 14 }: { count: number; of?: 'event' | 'order'; most?: number },
): string[] {
  return statements.slice(0, most).map(({ role, query, calls, totalMs }) => {
    const perEach = (calls / count).toFixed(3);
    const us = Math.round((totalMs / count) * 1_000);
    const mean = (totalMs / calls).toFixed(2);
    const text = query.replaceAll(/\s+/g, ' ').trim().slice(0, 90);
    return `  ${role.replace('bench_', '').padEnd(7)}${perEach} an ${of}, ${us} us an ${of}, ${mean} ms each: ${text}`;
  });
}
