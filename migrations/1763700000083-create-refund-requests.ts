import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A partner's requests to refund an eSIM. They are deleted with their eSIM. */
export class CreateRefundRequests1763700000083 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE refund_requests (
        id text COLLATE "C" PRIMARY KEY,
        partner_id text COLLATE "C" NOT NULL REFERENCES partners (id),
        mode text COLLATE "C" NOT NULL CHECK (mode IN ('sandbox', 'live')),
        esim_id text COLLATE "C" NOT NULL REFERENCES esims (id) ON DELETE CASCADE,
        order_id text COLLATE "C" NOT NULL,
        reason text COLLATE "C" NOT NULL CHECK (reason IN ('not_working', 'wrong_device', 'duplicate', 'other')),
        details text COLLATE "C",
        status text COLLATE "C" NOT NULL DEFAULT 'pending'
          CHECK (status IN ('pending', 'approved', 'rejected', 'canceled')),
        amount bigint CHECK (amount > 0),
        currency text COLLATE "C" NOT NULL,
        note text COLLATE "C",
        decided_at timestamptz,
        created_at timestamptz NOT NULL DEFAULT now(),
        CHECK ((status = 'approved') = (amount IS NOT NULL)),
        CHECK ((status IN ('approved', 'rejected')) = (decided_at IS NOT NULL))
      );
      CREATE UNIQUE INDEX refund_requests_open ON refund_requests (esim_id) WHERE status = 'pending';
      CREATE INDEX refund_requests_list ON refund_requests (partner_id, mode, created_at DESC, id DESC);
      CREATE INDEX refund_requests_by_status
        ON refund_requests (partner_id, mode, status, created_at DESC, id DESC);
      CREATE INDEX refund_requests_by_esim ON refund_requests (esim_id, created_at DESC, id DESC);
      CREATE INDEX refund_requests_by_order ON refund_requests (order_id) WHERE status = 'approved';
      CREATE INDEX refund_requests_of_all ON refund_requests (created_at DESC, id DESC);
      CREATE INDEX refund_requests_of_all_by_status ON refund_requests (status, created_at DESC, id DESC);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE refund_requests');
  }
}
