import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runRestoreEpoch } from '../../src/apps/restore-epoch.app.js';
import { startTestService, testEnvironment, type TestService } from '../harness/index.js';
import { mintCode } from '../harness/portal.js';

const logLines: string[] = [];
let service: TestService;
let folder: string;

beforeAll(async () => {
  service = await startTestService({ role: 'admin', logLines });
  folder = mkdtempSync(path.join(tmpdir(), 'esim-lost-'));
});
afterAll(async () => {
  await service.stop();
  rmSync(folder, { recursive: true });
});

async function restoreEpoch(...args: readonly string[]): Promise<{ code: number; text: string }> {
  const lines: string[] = [];
  const keep = (line: string): void => void lines.push(line);
  const code = await runRestoreEpoch(args, testEnvironment(service.database.url), { log: keep, error: keep });
  return { code, text: lines.join('\n') };
}

describe('npm run restore-epoch', () => {
  it('lists changes missing from the audit log, based on the log of the process, and ends portal sessions', async () => {
    const { id, sandboxKey } = await service.createPartner();
    const keys = await service.admin.get(`/internal/v1/partners/${id}/api-keys`);
    const keyId = keys.body.data[0].id as string;
    const since = new Date();
    const revoked = await service.admin.post(`/internal/v1/partners/${id}/api-keys/${keyId}/revoke`);
    expect(revoked.status, revoked.text).toBe(200);
    await mintCode(service.admin, id);
    // Simulates a restore: the row is reset, and no trace of the change remains.
    const { pool } = service.database;
    await pool.query('UPDATE api_keys SET revoked_at = NULL WHERE id = $1', [keyId]);
    await pool.query(`DELETE FROM audit_log WHERE action = 'api_key.revoked'`);
    const file = path.join(folder, 'admin.log');
    writeFileSync(file, [...logLines, 'no JSON', '{"event":"audit.recorded"'].join('\n'));

    const { code, text } = await restoreEpoch('--to', since.toISOString(), '--audit-log', file, '--open');
    expect(code, text).toBe(0);
    const lost = text.split('\n').filter((line) => line.startsWith('LOST'));
    expect(lost).toHaveLength(1);
    expect(lost[0]).toContain(`api_key.revoked ${keyId}: partner ${id}, by portal`);
    expect(text).toContain('portal sessions ended: 1');
    // Readers of the catalog's changes may be past the restored position, and must copy the catalog again.
    const restarted = `SELECT bool_and(kept_after = position AND position > $1 AND version > $1) AS all FROM catalog_versions`;
    expect((await pool.query(restarted, [since.getTime()])).rows).toEqual([{ all: true }]);
    expect(text + logLines.join('\n')).not.toContain(sandboxKey);
  });

  it('resumes with its original time, unless another one is requested', async () => {
    const [first, second] = ['2026-11-20T09:30:00Z', '2026-11-20T10:20:00Z'] as const;
    expect(await restoreEpoch('--to', first)).toMatchObject({ code: 0 });
    const other = await restoreEpoch('--to', second);
    expect(other).toMatchObject({ code: 2, text: expect.stringContaining('--replace') });
    const replaced = await restoreEpoch('--to', second, '--replace', '--open');
    // It also looks for the changes that the first run was looking for.
    expect(replaced).toMatchObject({
      code: 0,
      text: expect.stringContaining('restored to 2026-11-20T09:30:00.000Z'),
    });
    const { rows } = await service.database.pool.query(
      'SELECT FROM restore_epochs WHERE completed_at IS NULL',
    );
    expect(rows).toEqual([]);
  });

  it.each([
    [[], '--to must be a past time'],
    [['--to', '2999-01-01T00:00:00Z'], '--to must be a past time'],
    [['--from', 'now'], "Unknown option '--from'"],
    [['--to', '2026-11-20T00:00:00Z', '--audit-log', '/nowhere/admin.log'], '--audit-log: ENOENT'],
  ])('refuses %j before anything changes', async (args, message) => {
    const { rows: before } = await service.database.pool.query('SELECT count(*) FROM restore_epochs');
    const { code, text } = await restoreEpoch(...args);
    expect([code, text]).toEqual([2, expect.stringContaining(message)]);
    expect((await service.database.pool.query('SELECT count(*) FROM restore_epochs')).rows).toEqual(before);
  });
});
