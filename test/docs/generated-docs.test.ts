import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { ERROR_CODES } from '../../src/common/errors/index.js';

interface Operation {
  readonly operationId: string;
}

function operationsOf(api: 'partner' | 'admin'): (Operation & { method: string; route: string })[] {
  const { paths } = JSON.parse(readFileSync(`docs/openapi/${api}.json`, 'utf8')) as {
    paths: Record<string, Record<string, Operation>>;
  };
  return Object.entries(paths).flatMap(([route, item]) =>
    Object.entries(item).map(([method, { operationId }]) => ({
      method: method.toUpperCase(),
      route,
      operationId,
    })),
  );
}

/** The Markdown files directly in a folder. */
function pagesIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.md'))
    .map((name) => path.join(folder, name));
}

describe('a generated page', () => {
  it('describes a cause and a fix for every error code', () => {
    const page = readFileSync('docs/errors.md', 'utf8');
    for (const code of ERROR_CODES) {
      expect(page).toMatch(
        new RegExp(`^## ${code}\n\n.*\n\n- \\*\\*Cause:\\*\\* .{10,}\n- \\*\\*Cure:\\*\\* .{10,}$`, 'm'),
      );
    }
  });

  it.each([
    ['partner', 'docs/reference'],
    ['admin', 'docs/reference/admin'],
  ] as const)('lists every operation of the %s API in the overview %s, and on a page', (api, folder) => {
    const pages = pagesIn(folder).map((name) => readFileSync(name, 'utf8'));
    const overview = readFileSync(`${folder}/README.md`, 'utf8');
    for (const { operationId, method, route } of operationsOf(api)) {
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
    const inPostman = operationsOf('partner').map(
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
  const pages = ['docs', 'docs/guides', 'docs/reference', 'docs/reference/admin'].flatMap(pagesIn);

  it.each(pages)('leads from %s to an existing file', (page) => {
    const links = [...readFileSync(page, 'utf8').matchAll(/\]\(([^)#\s]+)[^)\s]*\)/g)].map(
      ([, link = '']) => link,
    );
    for (const link of links.filter((candidate) => !candidate.includes('://'))) {
      expect(existsSync(path.join(path.dirname(page), link)), `${page}: ${link}`).toBe(true);
    }
  });
});
