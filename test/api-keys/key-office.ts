import { expect } from 'vitest';
import { type ApiAnswer, eventually, startTestService, type TestService } from '../harness/index.js';

export type ShownKey = Record<string, string> & { allowed_cidrs: string[] | null };

export const keysOf = (partnerId: string): string => `/internal/v1/partners/${partnerId}/api-keys`;

/** An `expires_at` that no test reaches, even on a slow machine. */
export const inAnHour = (): string => new Date(Date.now() + 3_600_000).toISOString();

export function expectProblem(answer: ApiAnswer, status: number, code: string): void {
  expect([answer.status, answer.body.code]).toEqual([status, code]);
}

/** The service and the portal team's operations on keys. */
export class KeyOffice {
  private constructor(readonly service: TestService) {}

  static async open(): Promise<KeyOffice> {
    return new KeyOffice(await startTestService());
  }

  close(): Promise<void> {
    return this.service.stop();
  }

  async newPartner(): Promise<string> {
    const answer = await this.service.admin.post('/internal/v1/partners', { name: 'Key owner' });
    return (answer.body.data as { id: string }).id;
  }

  /** Creates a key for `owner` or for a new partner. */
  async create(body: Record<string, unknown> = {}, owner?: string): Promise<ShownKey> {
    const answer = await this.service.admin.post(keysOf(owner ?? (await this.newPartner())), {
      mode: 'sandbox',
      ...body,
    });
    expect([answer.status, answer.body.code]).toEqual([201, undefined]);
    return answer.body.data as ShownKey;
  }

  revoke(key: Record<string, unknown>): Promise<ApiAnswer> {
    return this.service.admin.post(`${keysOf(String(key['partner_id']))}/${String(key['id'])}/revoke`);
  }

  rotate(key: Record<string, unknown>, body?: unknown): Promise<ApiAnswer> {
    return this.service.admin.post(`${keysOf(String(key['partner_id']))}/${String(key['id'])}/rotate`, body);
  }

  async listed(owner: string): Promise<Record<string, unknown>[]> {
    const answer = await this.service.admin.get(`${keysOf(owner)}?limit=100`);
    expect(answer.status).toBe(200);
    return answer.body.data as Record<string, unknown>[];
  }

  /** Expires a key that is valid for less than an hour, and waits until the service refuses it. */
  async letExpire(key: ShownKey): Promise<void> {
    await this.service.database.pool.query(
      `UPDATE api_keys SET expires_at = expires_at - interval '1 hour' WHERE id = $1`,
      [key['id']],
    );
    await eventually('the key expires', async () => (await this.statusWith(key['key']!)) === 401);
  }

  async statusWith(key: string): Promise<number> {
    return (await this.service.partnerApi(key).get('/v1/me')).status;
  }
}
