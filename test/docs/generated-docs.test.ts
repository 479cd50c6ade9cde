import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { ERROR_CODES } from '../../src/common/errors/index.js';

interface Operation {
  readonly operationId: string;
}
const document = JSON.parse(readFileSync('docs/openapi/partner.json', 'utf8')) as {
  paths: Record<string, Record<string, Operation>>;
};
const operations = Object.entries(document.paths).flatMap(([route, item]) =>
  Object.entries(item).map(([method, { operationId }]) => ({
    method: method.toUpperCase(),
    route,
    operationId,
  })),
);

describe('a generated page', () => {
  it('describes a cause and a fix for every error code', () => {
    const page = readFileSync('docs/errors.md', 'utf8');
    for (const code of ERROR_CODES) {
      expect(page).toMatch(
        new RegExp(`^## ${code}\n\n.*\n\n- \\*\\*Cause:\\*\\* .{10,}\n- \\*\\*Cure:\\*\\* .{10,}$`, 'm'),
      );
    }
  });

  it('lists every operation in the overview of the reference, and on a page', () => {
    const pages = readdirSync('docs/reference').map((name) => readFileSync(`docs/reference/${name}`, 'utf8'));
    const overview = readFileSync('docs/reference/README.md', 'utf8');
    for (const { operationId, method, route } of operations) {
      expect(overview).toContain(`<a id="${operationId}"></a>`);
      const section = new RegExp(`^<a id="${operationId}"></a>\n\n## .+\n\n\`(.+)\`$`, 'm');
      expect(pages.map((page) => section.exec(page)?.[1]).filter(Boolean)).toEqual([`${method} ${route}`]);
    }
  });

  it('lists every operation in the Postman collection, each POST with a new key', () => {
    interface Request {
      method: string;
      header: { key: string; value: string }[];
      url: { raw: string };
    }
    const collection = JSON.parse(readFileSync('docs/postman.json', 'utf8')) as {
      item: { item: { request: Request }[] }[];
    };
    const requests = collection.item.flatMap(({ item }) => item.map(({ request }) => request));
    const inPostman = operations.map(
      ({ method, route }) => `${method} {{base_url}}${route.replaceAll(/\{(\w+)\}/g, ':$1')}`,
    );
    expect(requests.map(({ method, url }) => `${method} ${url.raw}`).toSorted()).toEqual(
      inPostman.toSorted(),
    );
    for (const { method, header } of requests) {
      expect(header.some(({ key, value }) => key === 'Idempotency-Key' && value === '{{$guid}}')).toBe(
        method === 'POST',
      );
    }
  });
});

describe('a link between pages', () => {
  const pages = ['docs', 'docs/guides', 'docs/reference'].flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => name.endsWith('.md'))
      .map((name) => path.join(folder, name)),
  );

  it.each(pages)('leads from %s to an existing file', (page) => {
    const links = [...readFileSync(page, 'utf8').matchAll(/\]\(([^)#\s]+)[^)\s]*\)/g)].map(
      ([, link = '']) => link,
    );
    for (const link of links.filter((candidate) => !candidate.includes('://'))) {
      expect(existsSync(path.join(path.dirname(page), link)), `${page}: ${link}`).toBe(true);
    }
  });
});
