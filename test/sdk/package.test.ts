import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PROJECT_ROOT } from '../harness/child-process.js';
import { compile, type Packed, packSdk, projectWithSdk } from './packed-sdk.js';

/** Of all that a browser or a worker would load, compressed. */
const MOST_BYTES = 10_240;

let folder: string;
let packed: Packed;

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'esim-sdk-'));
  packed = packSdk(folder);
}, 300_000);
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe('the package', () => {
  it('has what runs and what explains it, and nothing else', () => {
    expect(packed.files).toEqual(
      expect.arrayContaining(['README.md', 'package.json', 'dist/index.js', 'dist/index.d.ts']),
    );
    expect(packed.files.filter((file) => /^src|\.built$|\.map$/.test(file))).toEqual([]);
  });

  it('knows the codes of every operation of the document, and takes no code on trust', () => {
    const home = projectWithSdk(packed.archive, 'codes');
    const { paths } = JSON.parse(
      readFileSync(path.join(PROJECT_ROOT, 'docs/openapi/partner.json'), 'utf8'),
    ) as { paths: Record<string, Record<string, { operationId?: string }>> };
    const operations = Object.values(paths).flatMap((methods) =>
      Object.values(methods).flatMap(({ operationId }) => operationId ?? []),
    );
    expect(operations.length).toBeGreaterThan(20);
    const program = [
      `import { type CodesOf, isApiError } from '@partner-esim/sdk';`,
      `type Same<A, B> = [A, B] extends [B, A] ? true : never;`,
      `export const all: Same<keyof CodesOf, ${operations.map((id) => `'${id}'`).join(' | ')}> = true;`,
      // Neither never nor any code: what everything can answer is in it, what only a purchase can is not.
      ...operations.map(
        (id) => `export const ${id}Codes: CodesOf['${id}'][] = ['unauthorized', 'rate_limited'];`,
      ),
      `// @ts-expect-error no purchase`,
      `export const foreign: CodesOf['getMe'] = 'insufficient_balance';`,
      `export const money: CodesOf['placeOrder'] = 'insufficient_balance';`,
      `export function sort(error: unknown): string {`,
      `  // @ts-expect-error codes are compared, not believed`,
      `  if (isApiError<CodesOf['placeOrder']>(error)) return 'believed';`,
      `  if (isApiError(error, 'price_changed')) return error.code satisfies 'price_changed';`,
      `  return isApiError(error) ? error.code : '';`,
      `}`,
    ];
    writeFileSync(path.join(home, 'codes.ts'), program.join('\n'));
    expect(compile(home, ['codes.ts'])).toBe('');
  }, 300_000);

  it(`weighs at most ${MOST_BYTES} bytes, bundled and compressed`, async () => {
    const entry = path.join(PROJECT_ROOT, 'sdk/dist/index.js');
    const output = await build({
      configFile: false,
      logLevel: 'silent',
      build: { write: false, minify: true, lib: { entry, formats: ['es'] } },
    });
    const [bundle] = [output].flat() as { output: { code?: string }[] }[];
    const code = bundle!.output.map((chunk) => chunk.code ?? '').join('');
    const bytes = gzipSync(code, { level: 9 }).length;
    console.log(`the SDK: ${bytes} bytes`);
    expect(code).not.toMatch(/node:|require\(/);
    expect(bytes).toBeLessThanOrEqual(MOST_BYTES);
  });
});
