import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The worker's latest reconciliation runs, with their findings (D27). */
export class CreateReconciliation1763700000012 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE reconciliation_runs (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        status text COLLATE "C" NOT NULL CHECK (status IN ('running', 'completed', 'failed')),
        started_at timestamptz NOT NULL DEFAULT now(),
        -- a worker that dies leaves it to another after this
        lease_until timestamptz,
        ended_at timestamptz,
        -- how many of what were looked at
        checked jsonb NOT NULL DEFAULT '{}',
        differences int NOT NULL DEFAULT 0,
        -- questions to upstreams without an answer
        unanswered int NOT NULL DEFAULT 0,
        CHECK ((status = 'running') = (lease_until IS NOT NULL))
      );
      CREATE INDEX reconciliation_runs_list ON reconciliation_runs (started_at DESC);

      CREATE TABLE reconciliation_differences (
        run_id bigint NOT NULL REFERENCES reconciliation_runs (id) ON DELETE CASCADE,
        seq int NOT NULL,
        check_name text COLLATE "C" NOT NULL,
        severity text COLLATE "C" NOT NULL CHECK (severity IN ('error', 'warning')),
        -- ids of what it is about, by the name of the thing
        subject jsonb NOT NULL,
        expected text COLLATE "C" NOT NULL,
        found text COLLATE "C" NOT NULL,
        PRIMARY KEY (run_id, seq)
      );
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE reconciliation_differences, reconciliation_runs');
  }
}
