import type { MigrationInterface, QueryRunner } from 'typeorm';

/** One table of backlog jobs instead of three: releases, resends (D32) and replays (D33). */
export class JoinBacklogJobs1763700000061 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP TABLE webhook_backlog_requests, webhook_replay_items, webhook_replays;

      CREATE TABLE webhook_backlog_jobs (
        id text COLLATE "C" PRIMARY KEY,
        kind text COLLATE "C" NOT NULL CHECK (kind IN ('release', 'resend', 'replay')),
        endpoint_id text COLLATE "C" NOT NULL REFERENCES webhook_endpoints (id),
        partner_id text COLLATE "C" NOT NULL,
        status text COLLATE "C" NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'completed', 'canceled')),
        -- the filter: deliveries that were created in [since, until); null: events of every type
        since timestamptz NOT NULL,
        until timestamptz NOT NULL,
        event_types text[] COLLATE "C",
        statuses text[] COLLATE "C" NOT NULL,
        -- the endpoint's, when the job started: what it covers was discarded by then
        discard_before timestamptz,
        -- the step under way, and the last delivery that it has read: { "at": …, "id": … }
        step text COLLATE "C" NOT NULL CHECK (step IN ('release', 'search', 'resend', 'count', 'repeat', 'await')),
        cursor jsonb,
        -- the endpoint's last 2xx before the job, as far as 'search' has read
        last_success_at timestamptz,
        total int NOT NULL DEFAULT 0,
        created int NOT NULL DEFAULT 0,
        -- the pace of 'repeat' is used up to here; it belongs to the job, however many workers there are
        paced_to timestamptz,
        -- the last turn: the job whose turn was longest ago is next
        turn_at timestamptz,
        created_at timestamptz NOT NULL DEFAULT now(),
        ended_at timestamptz,
        CHECK ((status = 'running') = (ended_at IS NULL))
      );
      CREATE INDEX webhook_backlog_jobs_running ON webhook_backlog_jobs (id) WHERE status = 'running';
      CREATE INDEX webhook_backlog_jobs_of_endpoint ON webhook_backlog_jobs (endpoint_id, status);
      -- what a partner has replayed within the last hour (D50)
      CREATE INDEX webhook_backlog_jobs_recent ON webhook_backlog_jobs (partner_id, created_at) WHERE kind = 'replay';
      CREATE INDEX webhook_backlog_jobs_ended ON webhook_backlog_jobs (ended_at) WHERE ended_at IS NOT NULL;
    `);
  }

  async down(): Promise<void> {
    return Promise.reject(new Error('this migration has no way back: nothing was released before it'));
  }
}
