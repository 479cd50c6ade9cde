import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProgram } from '../cli/cli-process.js';
import { PROJECT_ROOT } from '../harness/child-process.js';
import { whyMissing } from '../harness/why-missing.js';

interface Operation {
  readonly operationId: string;
  readonly responses: Record<string, { content?: Record<string, { example?: unknown }> }>;
  readonly requestBody?: { content: Record<string, { example?: unknown }> };
}

interface Call {
  readonly call: string;
  readonly body: unknown;
  readonly hasKey: boolean;
}

type Language = 'bash' | 'typescript' | 'python';
type Samples = Readonly<Record<Language, string>>;

const TEST_MS = 120_000;
const EXTENSIONS = { bash: 'sh', typescript: 'ts', python: 'py' } as const;
/** `requests` is not part of Python. This module has the part of it that the samples use. */
const REQUESTS = `import json, types, urllib.parse, urllib.request
def _call(method):
    def call(url, headers, timeout, params=None, json=None):
        data = None if json is None else _json.dumps(json).encode()
        if params: url += "?" + urllib.parse.urlencode(params)
        request = urllib.request.Request(url, data, headers, method=method.upper())
        text = urllib.request.urlopen(request, timeout=timeout).read()
        return types.SimpleNamespace(raise_for_status=lambda: None, json=lambda: _json.loads(text))
    return call
_json = json
get, post, put, patch, delete = [_call(name) for name in ("get", "post", "put", "patch", "delete")]
`;

const { paths } = JSON.parse(readFileSync('docs/openapi/partner.json', 'utf8')) as {
  paths: Record<string, Record<string, Operation>>;
};
const operations = Object.entries(paths).flatMap(([route, item]) =>
  Object.entries(item).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), route })),
);

/** The samples of each operation, in the order of the reference's pages. */
function samplesOfPages(): Map<string, Samples> {
  const samples = new Map<string, Samples>();
  for (const name of readdirSync('docs/reference').filter((each) => each.endsWith('.md'))) {
    const sections = readFileSync(path.join('docs/reference', name), 'utf8').split(/^<a id="(\w+)"><\/a>$/m);
    for (let i = 1; i < sections.length; i += 2) {
      const code = (language: Language): string =>
        new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'm').exec(sections[i + 1]!)?.[1] ?? '';
      const found = { bash: code('bash'), typescript: code('typescript'), python: code('python') };
      if (found.bash !== '') samples.set(sections[i]!, found);
    }
  }
  return samples;
}

const samples = samplesOfPages();
/** The calls that reached the server. */
let calls: Call[] = [];
let folder: string;

const server = createServer((request, response) => void respond(request, response));

/** Records the call, and returns the documented response of its operation. */
async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url!, 'http://service');
  const text = String(await buffer(request));
  url.searchParams.sort();
  calls.push({
    call: `${request.method} ${url.pathname}${url.search}`,
    body: text === '' ? null : JSON.parse(text),
    hasKey: request.headers['idempotency-key'] !== undefined,
  });
  const operation = operations.find(
    ({ method, route }) => method === request.method && matches(route, url.pathname),
  );
  const [status, documented] = Object.entries(operation?.responses ?? {}).find(([each]) =>
    each.startsWith('2'),
  ) ?? ['500', null];
  const isAuthorized = request.headers.authorization === 'Bearer svc_sk_test_sample';
  response.writeHead(isAuthorized ? Number(status) : 401, { 'content-type': 'application/json' });
  response.end(JSON.stringify(documented?.content?.['application/json']?.example ?? {}));
}

/** `{id}` matches one segment. A route without parameters is more specific, and precedes the others. */
function matches(route: string, pathname: string): boolean {
  return new RegExp(`^${route.replaceAll(/\{\w+\}/g, '[^/{}]+')}$`).test(pathname);
}

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'esim-samples-'));
  symlinkSync(path.join(PROJECT_ROOT, 'node_modules'), path.join(folder, 'node_modules'));
  writeFileSync(path.join(folder, 'package.json'), '{ "type": "module" }');
  writeFileSync(path.join(folder, 'requests.py'), REQUESTS);
  for (const [id, sample] of samples)
    for (const language of ['bash', 'typescript', 'python'] as const)
      writeFileSync(path.join(folder, `${id}.${EXTENSIONS[language]}`), sample[language]);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a program that runs all samples one after another, and returns the calls that they made. */
async function callsOf(file: string, ...args: readonly string[]): Promise<Call[]> {
  calls = [];
  const env = {
    ESIM_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ESIM_API_KEY: 'svc_sk_test_sample',
    NODE_NO_WARNINGS: '1',
  };
  const { code, stderr } = await runProgram(file, args, { env, cwd: folder });
  expect([code, stderr]).toEqual([0, '']);
  return calls;
}

const ids = [...samples.keys()];

describe('the samples of the reference', { timeout: TEST_MS }, () => {
  let fromCurl: Call[];

  it('call each operation with curl as the OpenAPI document has it', async () => {
    expect(ids.toSorted()).toEqual(operations.map(({ operationId }) => operationId).toSorted());
    fromCurl = await callsOf('bash', '--norc', '-euc', ids.map((id) => `. ./${id}.sh`).join('\n'));
    expect(fromCurl).toHaveLength(ids.length);
    for (const [nth, id] of ids.entries()) {
      const { method, route, requestBody } = operations.find(({ operationId }) => operationId === id)!;
      const [called, pathname] = fromCurl[nth]!.call.split(/[ ?]/);
      expect([id, called, matches(route, pathname!)]).toEqual([id, method, true]);
      expect(fromCurl[nth]!.hasKey).toBe(method === 'POST');
      expect(fromCurl[nth]!.body).toEqual(requestBody?.content['application/json']?.example ?? null);
    }
  });

  it('make the same calls with TypeScript, and compile', async () => {
    const program = `for (const id of ${JSON.stringify(ids)}) await import(\`./\${id}.ts\`);`;
    writeFileSync(path.join(folder, 'all.mjs'), program);
    expect(withoutFilters(await callsOf(process.execPath, 'all.mjs'))).toEqual(withoutFilters(fromCurl));
    const options = ['--noEmit', '--strict', '--skipLibCheck', '--types', 'node', '--ignoreConfig'];
    const { code, stdout } = await runProgram(
      process.execPath,
      [
        path.join(PROJECT_ROOT, 'node_modules/typescript/bin/tsc'),
        ...options,
        ...['--target', 'es2024', '--module', 'nodenext'],
        ...ids.map((id) => `${id}.ts`),
      ],
      { cwd: folder },
    );
    expect([code, stdout]).toEqual([0, '']);
  });

  it.skipIf(whyMissing('python3', '--version') !== null)('make the same calls with Python', async () => {
    const program = `import runpy\nfor id in ${JSON.stringify(ids)}: runpy.run_path(id + ".py")`;
    expect(await callsOf('python3', '-c', program)).toEqual(fromCurl);
  });
});

/** Methods of the SDK for the lists of one eSIM page through everything, so they take no `limit`. */
function withoutFilters(all: readonly Call[]): Call[] {
  return all.map((each) => ({
    ...each,
    call: each.call.replace(/\/(plans|topup-packages|install-links)\?.*/, '/$1'),
  }));
}
