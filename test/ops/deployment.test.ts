import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { WORKER_JOBS } from '../../src/config/index.js';
import { PROJECT_ROOT } from '../harness/child-process.js';
import { whyMissing } from '../harness/why-missing.js';

const read = (file: string): string => readFileSync(path.join(PROJECT_ROOT, file), 'utf8');
const dockerfile = read('Dockerfile');
const compose = read('compose.yaml');
const chart = readdirSync(path.join(PROJECT_ROOT, 'ops/chart/templates')).map((file) => ({
  file,
  text: read(`ops/chart/templates/${file}`),
}));
const templates = chart.map(({ text }) => text).join('\n');

/** Roles that run separately, by entry point. `reconcile` is a command. */
const ROLES = readdirSync(path.join(PROJECT_ROOT, 'src'))
  .map((file) => /^main\.(\w+)\.ts$/.exec(file)?.[1])
  .filter((role) => role !== undefined && role !== 'reconcile') as string[];
const SETTINGS = new Set(
  [...read('.env.example').matchAll(/^([A-Z][A-Z0-9_]*)=/gm)].map(([, name]) => name!),
);
/** Settings of the role that serves the portal, which has its own entry point. */
const isOfPortal = (name: string): boolean => name.startsWith('PORTAL_') && !ROLES.includes('portal');

describe('the deployment', () => {
  it('gives the build of the image every file of the documentation', () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'esim-context-'));
    try {
      const isCopied = (file: string): boolean => !/\/(node_modules|dist)$/.test(file);
      for (const [, name = ''] of read('.dockerignore').matchAll(
        /^!(docs\/.+|portal|sdk|cli|CHANGELOG\.md)$/gm,
      ))
        cpSync(path.join(PROJECT_ROOT, name), path.join(folder, name), { recursive: true, filter: isCopied });
      const build = `const { buildSite } = await import('./scripts/site/build.mjs');
        buildSite(${JSON.stringify(folder)}, ${JSON.stringify(path.join(folder, 'built'))});`;
      execFileSync(process.execPath, ['--input-type=module', '--eval', build], { cwd: PROJECT_ROOT });
      const built = (at: string): string[] =>
        readdirSync(path.join(at, 'docs'), { recursive: true, encoding: 'utf8' }).filter(
          (name) => !/\.(gz|br)$/.test(name),
        );
      expect(built(path.join(folder, 'built')).toSorted()).toEqual(
        built(path.join(PROJECT_ROOT, 'dist/portal')).toSorted(),
      );
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('ends the image in a stage without a shell, with an unprivileged user and the files that prove.mjs checked', () => {
    const stages = dockerfile.split(/^FROM /m).slice(1);
    expect(stages).toHaveLength(3);
    const [build, compiled, last] = stages as [string, string, string];
    const base = /^gcr\.io\/distroless\/nodejs24-debian13:nonroot( AS compiled)?\n/;
    // The compile cache works only with the same Node.js version.
    expect(compiled).toMatch(base);
    expect(compiled).toContain('"/app/compile.mjs", "/tmp/compiled"');
    expect(last).toMatch(base);
    expect(last).not.toMatch(/^RUN /m);
    expect(last).toMatch(/^USER 65532:65532$/m);
    expect(last).toMatch(/^COPY --from=build --chown=root:root \/app \/app$/m);
    expect(last).toMatch(/^COPY --from=compiled --chown=65532:65532 \/tmp\/compiled \/app\/compiled$/m);
    expect(build).toContain('node ops/image/assemble.mjs /app');
    expect(read('ops/image/prove.mjs')).toContain('ops/image/assemble.mjs');
    expect(read('ops/image/assemble.mjs')).toContain("'ci', '--omit=optional', '--omit=dev'");
  });

  it('runs every role in compose.yaml and in the chart', () => {
    expect(ROLES.sort()).toEqual(expect.arrayContaining(['admin', 'api', 'worker']));
    for (const role of ROLES) {
      expect(compose, role).toContain(`command: [dist/src/main.${role}.js]`);
      expect(templates, role).toContain(`"role" "${role}"`);
    }
    expect(compose).toContain('command: [dist/src/migrate.js]');
    expect(templates).toContain('args: [dist/src/migrate.js]');
  });

  it('sets only variables that the service knows', () => {
    const names = [
      ...compose.matchAll(/^ {4,6}([A-Z][A-Z0-9_]+): /gm),
      ...dockerfile.matchAll(/\b([A-Z][A-Z0-9_]+)=(?=\S|\s)/g),
      ...templates.matchAll(/name: ([A-Z][A-Z0-9_]+), value/g),
    ].map(([, name]) => name!);
    expect(names.length).toBeGreaterThan(10);
    const foreign = /^(POSTGRES_|ENV_FILE$|NODE_EXTRA_CA_CERTS$|NODE_COMPILE_CACHE$)/;
    expect(names.filter((name) => !SETTINGS.has(name) && !foreign.test(name) && !isOfPortal(name))).toEqual(
      [],
    );
  });

  it('gives every container a read-only root and no capabilities, and migrates before the roles start', () => {
    for (const wanted of [
      'read_only: true',
      'cap_drop: [ALL]',
      'no-new-privileges:true',
      `user: '65532:65532'`,
    ])
      expect(compose).toContain(wanted);
    const services = compose.split(/^services:$/m)[1]!;
    for (const role of ROLES)
      expect(services, role).toMatch(new RegExp(`^ {2}${role}:\\n {4}<<: \\*service$`, 'm'));
    expect(compose).toContain('migrate: { condition: service_completed_successfully }');
    for (const wanted of ['readOnlyRootFilesystem: true', 'runAsUser: 65532', 'drop: [ALL]'])
      expect(templates).toContain(wanted);
    expect(templates).toContain('helm.sh/hook: pre-install,pre-upgrade');
    expect(templates).toContain('automountServiceAccountToken: false');
  });

  it('exposes the admin API to the portal team only, and scales workers by the age of work', () => {
    const values = read('ops/chart/values.yaml');
    const admin = /^admin:\n([\s\S]*?)^portal:/m.exec(values)![1]!;
    expect(admin).toContain('kubernetes.io/metadata.name: portal');
    expect(values).toContain('169.254.0.0/16');
    const queries = [...templates.matchAll(/query: (.+)/g)].map(([, query]) => query);
    expect(queries).toEqual(['{{ .query }}']);
    const ages = [...templates.matchAll(/"query" "(.+?)"/g)].map(([, query]) => query);
    expect(ages.sort()).toEqual(['max(order_oldest_due_seconds)', 'max(webhook_oldest_due_seconds)']);
  });

  it('runs every job of a worker in the chart, with webhooks apart from provisioning', () => {
    const jobs = [...templates.matchAll(/"jobs" "(.+?)"/g)].map(([, names]) => names!.split(','));
    expect(jobs.flat().sort()).toEqual([...WORKER_JOBS].sort());
    expect(jobs).toContainEqual(['webhooks']);
  });

  it('gives each role in the chart only the secrets that it reads', () => {
    expect(templates).not.toContain('envFrom');
    const keysOf = new Map(
      [...templates.matchAll(/^ {2}"(\w+)" (.+?)(?: -\}\})?$/gm)].map(([, role, keys]) => [role!, keys!]),
    );
    expect([...keysOf.keys()].sort()).toEqual([...ROLES, 'migrate', 'webhooks'].sort());
    const having = (key: string): string[] =>
      [...keysOf].filter(([, keys]) => keys.includes(key)).map(([role]) => role);
    expect(having('ADMIN_TOKENS').sort()).toEqual(['admin', 'portal']);
    expect(having('$wholesalers').sort()).toEqual(['admin', 'worker']);
    expect(having('CALLBACK_SECRET')).toEqual(['worker']);
    expect(keysOf.get('migrate')).not.toContain('$every');
  });

  const composeMissing = whyMissing('docker-compose', 'version');
  if (composeMissing !== null)
    console.warn(`docker-compose is not there (apt-get install docker-compose): ${composeMissing}`);

  it.skipIf(composeMissing !== null)(
    'has a compose file that docker-compose accepts, and refuses without secrets',
    () => {
      const config = (env: Record<string, string>): string =>
        execFileSync('docker-compose', ['-f', path.join(PROJECT_ROOT, 'compose.yaml'), 'config'], {
          env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', ...env },
          encoding: 'utf8',
          stdio: ['ignore', 'pipe', 'pipe'],
          cwd: path.join(PROJECT_ROOT, 'ops'),
        });
      expect(() => config({})).toThrow(/run ops\/compose\/up\.sh/);
      const whole = config({ POSTGRES_PASSWORD: 'a', ADMIN_TOKENS: 'b', SECRETS_KEYS: 'c' });
      for (const service of [...ROLES, 'migrate', 'postgres', 'valkey'])
        expect(whole).toContain(`  ${service}:\n`);
      // Python is slow on a busy machine.
    },
    240_000,
  );
});
