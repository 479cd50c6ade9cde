import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HttpClient, startTestService, type TestService } from '../harness/index.js';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});

afterAll(async () => {
  await service.stop();
});

describe('the OpenAPI documents', () => {
  it.each(['partner', 'admin'])('of the %s API are served on the admin port', async (name) => {
    const answer = await new HttpClient(service.admin.baseUrl, null).get(`/openapi/${name}.json`);
    expect([answer.status, answer.body.openapi]).toEqual([200, '3.1.0']);
  });

  it('are not on the partner port, which has no anonymous route', async () => {
    const answer = await service.partnerApi(null).get('/openapi/partner.json');
    expect([answer.status, answer.body.code]).toEqual([401, 'unauthorized']);
  });
});
