import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Removes the id from the list indexes of open deliveries, and drops the index by status. Without the id, rows with
 * equal times are sorted at query time. Once PostgreSQL has seen the queue empty, it may look up an id in any index
 * that contains the id, and reads all of that index.
 */
export class IndexOpenDeliveries1763700000062 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP INDEX webhook_deliveries_list, webhook_deliveries_by_status, webhook_deliveries_by_type,
        webhook_deliveries_by_code, webhook_deliveries_by_outcome;

      CREATE INDEX webhook_deliveries_ended_list ON webhook_deliveries_ended (endpoint_id, created_at DESC, id DESC);
      CREATE INDEX webhook_deliveries_ended_by_status ON webhook_deliveries_ended
        (endpoint_id, status, created_at DESC, id DESC);
      CREATE INDEX webhook_deliveries_ended_by_type ON webhook_deliveries_ended
        (endpoint_id, event_type, created_at DESC, id DESC);
      CREATE INDEX webhook_deliveries_ended_by_code ON webhook_deliveries_ended
        (endpoint_id, last_status_code, created_at DESC, id DESC) WHERE last_status_code IS NOT NULL;
      CREATE INDEX webhook_deliveries_ended_by_outcome ON webhook_deliveries_ended
        (endpoint_id, last_outcome, created_at DESC, id DESC) WHERE last_outcome <> 'delivered';

      CREATE INDEX webhook_deliveries_open_list ON webhook_deliveries_open (endpoint_id, created_at DESC);
      CREATE INDEX webhook_deliveries_open_by_type ON webhook_deliveries_open (endpoint_id, event_type, created_at DESC);
      CREATE INDEX webhook_deliveries_open_by_code ON webhook_deliveries_open (endpoint_id, last_status_code, created_at DESC)
        WHERE last_status_code IS NOT NULL;
      CREATE INDEX webhook_deliveries_open_by_outcome ON webhook_deliveries_open (endpoint_id, last_outcome, created_at DESC)
        WHERE last_outcome <> 'delivered';
    `);
  }

  async down(): Promise<void> {
    return Promise.reject(new Error('this migration has no way back: nothing was released before it'));
  }
}
