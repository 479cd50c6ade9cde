// Writes every generated file that is committed, in dependency order. Run `npm run generate` after a change.
// `-- --check` writes nothing: it lists the files that differ and exits with 1 if there are any.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createClient } from '@hey-api/openapi-ts';
import { buildIfStale } from './build.mjs';
import { withArchitecture } from './generate/architecture.mjs';
import { renderErrorsPage } from './generate/errors-page.mjs';
import {
  capacityTable,
  lifeTable,
  listenTable,
  renderLatencyChart,
  withMeasured,
} from './generate/measured.mjs';
import { OpenApi } from './generate/open-api.mjs';
import { renderPostmanCollection } from './generate/postman.mjs';
import { renderAdminReference, renderReference } from './generate/reference-pages.mjs';

const root = path.resolve(import.meta.dirname, '..');
const ANSWERS = 'src/apps/recorded-answers.json';
const isCheck = process.argv.includes('--check');
const read = (name) => readFileSync(path.join(root, name), 'utf8');
const readJson = (name) => JSON.parse(read(name));
const partnerApi = () => new OpenApi(readJson('docs/openapi/partner.json'));

/** Each step returns file contents by path. A step may read the files of earlier steps. */
const STEPS = {
  'OpenAPI documents': documents,
  // Before the recorded answers, whose test compiles SDK and portal.
  'types of the portal and the SDK': types,
  // A check skips this step, because it would need a service. `npm test` compares the recorded answers.
  ...(isCheck ? {} : { 'recorded answers': recordAnswers, 'OpenAPI documents with them': documents }),
  'reference and pages': pages,
  'what the bench measured': measured,
  'picture of the architecture': () => ({ 'CONTRIBUTING.md': withArchitecture(read('CONTRIBUTING.md')) }),
};

/** Runs in a separate process, because modules load the recorded answers only once. */
async function documents() {
  const status = await buildIfStale(['service']);
  if (status !== 0) process.exit(status);
  const program = `import 'reflect-metadata';
    const { createDocuments } = await import('./dist/src/apps/openapi.js');
    process.stdout.write(JSON.stringify(await createDocuments()));`;
  const printed = execFileSync(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return Object.fromEntries(
    Object.entries(JSON.parse(printed)).map(([port, document]) => [
      `docs/openapi/${port}.json`,
      `${JSON.stringify(document, null, 2)}\n`,
    ]),
  );
}

/** The test calls a running service and writes the file itself, so this step returns nothing. */
function recordAnswers() {
  const before = readCommitted(ANSWERS);
  const args = ['node_modules/vitest/vitest.mjs', 'run', 'test/docs/recorded-answers.test.ts', '--update'];
  execFileSync(process.execPath, args, { cwd: root, stdio: ['ignore', 2, 2] });
  if (read(ANSWERS) !== before) console.log(`${ANSWERS} has changed`);
  return {};
}

async function types() {
  return {
    'portal/src/api/types.gen.ts': await typesOf('docs/openapi/portal.json'),
    'sdk/src/generated/types.gen.ts': await typesOf('docs/openapi/partner.json'),
    'sdk/src/generated/operations.gen.ts': codesOfOperations(partnerApi()),
  };
}

async function typesOf(document) {
  const folder = mkdtempSync(path.join(tmpdir(), 'openapi-types-'));
  try {
    await createClient({
      input: path.join(root, document),
      output: { path: folder, tsConfigPath: null, postProcess: [] },
      plugins: ['@hey-api/typescript'],
      logs: { level: 'silent' },
    });
    return readFileSync(path.join(folder, 'types.gen.ts'), 'utf8');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Error codes come from the names of an operation's examples, because all errors share the schema `Problem`. */
function codesOfOperations(api) {
  const line = (operation) => {
    const codes = new Set(api.errorsOf(operation).map(({ code }) => `'${code}'`));
    return `  readonly ${operation.operationId}: ${[...codes].join(' | ')};`;
  };
  return `// Written by npm run generate.

/**
 * The documented error codes of each operation, by its \`operationId\`. \`isApiError(error)\` does not know
 * which operation failed, so pass the codes that you want to handle.
 */
export interface CodesOf {
${api.operations().map(line).join('\n')}
}
`;
}

function pages() {
  const api = partnerApi();
  return {
    'docs/errors.md': renderErrorsPage(api),
    ...renderReference(api),
    ...renderAdminReference(new OpenApi(readJson('docs/openapi/admin.json'))),
    'docs/postman.json': renderPostmanCollection(api),
    ...verifiers(read('docs/webhooks.md')),
  };
}

/** Heading in docs/webhooks.md, language of its code block, file name, and comment marker. */
const VERIFIERS = [
  ['TypeScript', 'typescript', 'verify-webhook-signature.ts', '//'],
  ['Python', 'python', 'verify_webhook_signature.py', '#'],
  ['Go', 'go', 'verify_webhook_signature.go', '//'],
  ['PHP', 'php', 'verify_webhook_signature.php', '//'],
  ['Java', 'java', 'WebhookSignature.java', '//'],
  ['C#', 'csharp', 'WebhookSignature.cs', '//'],
  ['Ruby', 'ruby', 'verify_webhook_signature.rb', '#'],
];

/** Extracts the functions of the webhook page as files to copy. The tests run the same code blocks. */
function verifiers(page) {
  return Object.fromEntries(
    VERIFIERS.map(([heading, language, name, mark]) => {
      const block = new RegExp(`^### ${heading}\n[^]*?^\`\`\`${language}\n([^]*?\n)\`\`\`$`, 'm').exec(page);
      if (block === null) throw new Error(`docs/webhooks.md has no ${language} block below "### ${heading}"`);
      const comment = `${mark} Written by \`npm run generate\` from docs/webhooks.md.\n`;
      // PHP's opening tag must come first.
      const text =
        language === 'php' ? block[1].replace('<?php\n', `<?php\n\n${comment}`) : comment + block[1];
      return [`docs/guides/verifiers/${name}`, text];
    }),
  );
}

function measured() {
  const [life, listen, catalog, webhooks] = ['life', 'listen', 'catalog', 'webhooks'].map((name) =>
    readJson(`docs/measured/${name}.json`),
  );
  const withLife = withMeasured(read('docs/performance.md'), 'life.json', lifeTable(life));
  const capacity = capacityTable(life, catalog, webhooks);
  return {
    'docs/images/latency-against-load.svg': renderLatencyChart(life),
    'docs/performance.md': withMeasured(withLife, 'listen.json', listenTable(listen)),
    'docs/capacity.md': withMeasured(read('docs/capacity.md'), 'capacity', capacity),
  };
}

/** Describes the first difference between two texts. */
function difference(committed, generated) {
  const [before, after] = [committed, generated].map((text) => text.split('\n'));
  const at = after.findIndex((line, index) => line !== before[index]);
  const line = at === -1 ? after.length : at;
  return `line ${line + 1}\n  committed: ${before[line] ?? '(end)'}\n  generated: ${after[line] ?? '(end)'}`;
}

function readCommitted(name) {
  try {
    return read(name);
  } catch {
    return '';
  }
}

let differing = 0;
for (const [step, run] of Object.entries(STEPS)) {
  const startedAt = performance.now();
  const old = Object.entries(await run()).filter(([name, text]) => readCommitted(name) !== text);
  for (const [name, text] of old) {
    if (isCheck) {
      console.error(`${name} differs at ${difference(readCommitted(name), text)}`);
      continue;
    }
    mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    writeFileSync(path.join(root, name), text);
  }
  differing += old.length;
  const names = old.map(([name]) => name).join(', ') || 'no change';
  console.log(`${step} (${Math.round((performance.now() - startedAt) / 1_000)} s): ${names}`);
}
if (isCheck && differing > 0) {
  console.error(`${differing} files are out of date. Run \`npm run generate\` and commit the result`);
  process.exitCode = 1;
}
