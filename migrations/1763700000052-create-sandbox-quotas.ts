import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Each partner's use of today's Sandbox quota: one row per partner. A crash may lose it (D26). */
export class CreateSandboxQuotas1763700000052 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE UNLOGGED TABLE sandbox_quotas (
        partner_id text COLLATE "C" PRIMARY KEY,
        day date NOT NULL,
        used int NOT NULL
      ) WITH (fillfactor = 50)`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE sandbox_quotas');
  }
}
