import { readFileSync } from 'node:fs';
import type { OpenAPIObject } from '@nestjs/swagger';
import { describe, expect, it } from 'vitest';
import { createDocuments, describeDrift } from '../../src/apps/openapi.js';
import { renderRoutes } from '../../src/apps/routes.js';

const committed = (port: string): OpenAPIObject =>
  JSON.parse(readFileSync(`docs/openapi/${port}.json`, 'utf8')) as OpenAPIObject;

describe('npm run openapi -- --check', () => {
  it('finds the committed documents to be those of the code', async () => {
    const { partner, admin } = await createDocuments();
    expect(describeDrift(committed('partner'), partner)).toEqual([]);
    expect(describeDrift(committed('admin'), admin)).toEqual([]);
  });

  it('names the operation that differs, is new or is gone', () => {
    const before = committed('partner');
    const after = structuredClone(before);
    after.paths['/v1/orders']!.post!.summary = 'Something else';
    after.paths['/v1/news'] = { get: { responses: {} } };
    delete after.paths['/v1/me'];
    expect(describeDrift(before, after)).toEqual([
      'gone: GET /v1/me',
      'changed: POST /v1/orders',
      'new: GET /v1/news',
    ]);
  });

  it('sees a changed component, and another order of things', () => {
    const before = committed('admin');
    const after = structuredClone(before);
    after.components!.schemas!['RequestId'] = { type: 'integer' };
    expect(describeDrift(before, after)).toEqual(['changed: components.schemas.RequestId']);
    const { openapi, ...rest } = before;
    expect(describeDrift(before, { ...rest, openapi })).toEqual(['changed: the order of things']);
    expect(describeDrift({}, before).length).toBeGreaterThan(20);
  });
});

describe('npm run routes -- --check', () => {
  it('finds the committed page to be that of the code, with every POST idempotent', async () => {
    const page = readFileSync('docs/routes.md', 'utf8');
    expect(page).toBe(await renderRoutes());
    const posts = page.split('\n').filter((line) => /^\| POST \| `\/(v1|internal)\//.test(line));
    expect(posts.length).toBeGreaterThan(20);
    expect(posts.filter((line) => !line.includes('| yes |'))).toEqual([]);
  });
});
