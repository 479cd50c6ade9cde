import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ConfigError, loadConfig } from '../../src/config/index.js';
import { testEnvironment } from '../harness/settings.js';

const DATABASE_URL = 'postgres://user@localhost/db';

describe('loadConfig', () => {
  it('uses the documented values as defaults', () => {
    const { ADMIN_TOKENS, SECRETS_KEYS } = testEnvironment(DATABASE_URL);
    const config = loadConfig({ DATABASE_URL, ADMIN_TOKENS, SECRETS_KEYS });
    expect(config.rateLimit).toEqual({ perMinute: 60, burst: 120 });
    expect(config.webhooks).toMatchObject({
      timeoutMs: 60_000,
      retryDelaysMs: [30_000, 60_000, 180_000, 300_000, 900_000],
      blockMs: 60_000,
      blocksBeforeDisable: 5,
      allowPrivateTargets: false,
    });
    expect([config.partnerApi.port, config.adminApi.port, config.ops.port]).toEqual([3000, 3001, 3002]);
    expect(config.adminApi.host).toBe('127.0.0.1');
  });

  it('lists all invalid variables at once without repeating their values', () => {
    const env = testEnvironment('mysql://x', {
      PORT: '99999',
      TRUST_PROXY: 'yes',
      WEBHOOK_RETRY_DELAYS_MS: '1,x',
      ADMIN_TOKENS: 'portal:too-short',
      SECRETS_KEYS: 'k:bm90LTMyLWJ5dGVz',
      WEBHOOK_ALLOW_PRIVATE_TARGETS: 'maybe',
      LOG_LEVEL: 'loud',
    });
    const error = thrownBy(() => loadConfig(env));
    expect(error).toBeInstanceOf(ConfigError);
    const names = (error as ConfigError).problems.map((line) => line.split(/[ :]/, 1)[0]);
    expect(names.sort()).toEqual([
      'ADMIN_TOKENS',
      'DATABASE_URL',
      'LOG_LEVEL',
      'PORT',
      'SECRETS_KEYS',
      'TRUST_PROXY',
      'WEBHOOK_ALLOW_PRIVATE_TARGETS',
      'WEBHOOK_RETRY_DELAYS_MS',
    ]);
    expect((error as Error).message).not.toContain('too-short');
    expect((error as Error).message).not.toContain('bm90LTMyLWJ5dGVz');
  });

  it('runs every job of a worker when WORKER_JOBS is unset, and refuses unknown names', () => {
    const jobs = (text: string) =>
      loadConfig(testEnvironment(DATABASE_URL, { WORKER_JOBS: text })).workerJobs;
    expect(jobs('')).toEqual(['provisioning', 'webhooks', 'polls', 'maintenance']);
    expect(jobs('polls, webhooks,polls')).toEqual(['webhooks', 'polls']);
    for (const wrong of ['webhook', 'webhooks,', ',', ' ', 'all', 'Webhooks', 'webhooks;polls'])
      expect(() => jobs(wrong), wrong).toThrow(/WORKER_JOBS must be one or more of provisioning, webhooks/);
  });

  it('requires admin tokens only in the roles that check them', () => {
    const { ADMIN_TOKENS: _tokens, ...env } = testEnvironment(DATABASE_URL);
    for (const role of ['api', 'worker']) expect(loadConfig(env, role).adminTokens).toEqual([]);
    for (const role of ['admin', 'portal', 'all', null])
      expect(() => loadConfig(env, role), String(role)).toThrow(/ADMIN_TOKENS is required/);
  });

  it('accepts a digest as an admin token, and refuses other texts', () => {
    const token = 'x'.repeat(32);
    const digest = createHash('sha256').update(token).digest('hex');
    const tokens = (text: string) =>
      loadConfig(testEnvironment(DATABASE_URL, { ADMIN_TOKENS: text })).adminTokens;
    expect(tokens(`office:sha256=${digest}`)).toEqual(tokens(`office:${token}`));
    for (const wrong of [digest.slice(1), `${digest}0`, digest.toUpperCase()])
      expect(() => tokens(`office:sha256=${wrong}`)).toThrow(/ADMIN_TOKENS: the digest of "office"/);
  });

  it('refuses private webhook targets in production', () => {
    const env = testEnvironment(DATABASE_URL, {
      NODE_ENV: 'production',
      WEBHOOK_ALLOW_PRIVATE_TARGETS: 'true',
    });
    expect(() => loadConfig(env)).toThrow(/WEBHOOK_ALLOW_PRIVATE_TARGETS/);
  });

  it.each(['admin', 'portal', 'all'])('refuses in production to start %s without an https portal', (role) => {
    const production = { NODE_ENV: 'production', WEBHOOK_ALLOW_PRIVATE_TARGETS: 'false' };
    const withUrl = (PORTAL_URL: string) => testEnvironment(DATABASE_URL, { ...production, PORTAL_URL });
    for (const url of ['', 'http://portal.example']) {
      const error = thrownBy(() => loadConfig(withUrl(url), role)) as ConfigError;
      expect(error.problems.map((line) => line.split(' ', 1)[0])).toEqual(['PORTAL_URL']);
    }
    expect(loadConfig(withUrl('https://portal.example/'), role).portal).toMatchObject({
      url: 'https://portal.example',
      secure: true,
    });
    expect(loadConfig(withUrl(''), 'worker').portal.secure).toBe(false);
  });

  it('requires in production an https origin of the install page, but only to serve it', () => {
    const production = { NODE_ENV: 'production', WEBHOOK_ALLOW_PRIVATE_TARGETS: 'false' };
    const withUrl = (INSTALL_URL: string) => testEnvironment(DATABASE_URL, { ...production, INSTALL_URL });
    for (const url of ['', 'http://install.example', 'https://install.example/esim']) {
      const error = thrownBy(() => loadConfig(withUrl(url), 'install')) as ConfigError;
      expect(error.problems.map((line) => line.split(' ', 1)[0])).toEqual(['INSTALL_URL']);
    }
    const { install } = loadConfig(withUrl('https://install.example/'), 'install');
    expect(install.url).toBe('https://install.example');
    expect(loadConfig(withUrl(''), 'api').install.url).toBeNull();
    expect(loadConfig(testEnvironment(DATABASE_URL, { INSTALL_PORT: '4005' })).install.url).toBe(
      'http://localhost:4005',
    );
  });

  it('refuses in production to treat a call as lost while it may still arrive', () => {
    const timing = { PROVIDER_TIMEOUT_MS: '20000', PROVIDER_READ_LAG_MS: '5000' };
    const production = { NODE_ENV: 'production', WEBHOOK_ALLOW_PRIVATE_TARGETS: 'false' };
    expect(() => loadConfig(testEnvironment(DATABASE_URL, { ...timing, ...production }))).toThrow(
      /PROVIDER_READ_LAG_MS/,
    );
    expect(loadConfig(testEnvironment(DATABASE_URL, timing)).provisioning.providerReadLagMs).toBe(5_000);
  });

  it('parses LIVE_PACKAGE_PROVIDERS: the first match wins, `none` excludes a package, and unset means no rules', () => {
    const read = (text: string) =>
      loadConfig(testEnvironment(DATABASE_URL, { LIVE_PACKAGE_PROVIDERS: text })).provisioning
        .livePackageRules;
    expect(read('FR=zendit, pkg_a_FR_1_7 = none,*=esim_access')).toEqual([
      { selector: { type: 'country', country: 'FR' }, provider: 'zendit' },
      { selector: { type: 'package', id: 'pkg_a_FR_1_7' }, provider: null },
      { selector: { type: 'all' }, provider: 'esim_access' },
    ]);
    expect(read('')).toEqual([]);
    expect(loadConfig(testEnvironment(DATABASE_URL)).provisioning.livePackageRules).toEqual([]);
  });

  it.each([
    ['an unknown provider', 'FR=zendit,DE=esimaccess', 'rule 2 must name one of'],
    ['no provider', 'FR', 'rule 1 must name one of'],
    ['a lowercase country', 'fr=zendit', 'rule 1 must begin with'],
    ['an invalid package id', 'pkg_=zendit', 'rule 1 must begin with'],
    ['no selector', '=zendit', 'rule 1 must begin with'],
    ['a trailing comma', 'FR=zendit,', 'rule 2 must begin with'],
    ['two equals signs', 'FR=zendit=none', 'rule 1 must be selector=provider'],
    ['a repeated selector', 'FR=zendit,*=none, FR=esim_access', 'rule 3 repeats a selector'],
    ['an unreachable rule', '*=zendit,FR=none', 'rule 2 has no effect'],
    ['several faults', 'x=zendit,FR=y', 'rule 1 must begin with a package id'],
    ['several faults', 'x=zendit,FR=y', 'rule 2 must name one of'],
  ])('refuses rules for live packages with %s', (_, text, problem) => {
    const error = thrownBy(() =>
      loadConfig(testEnvironment(DATABASE_URL, { LIVE_PACKAGE_PROVIDERS: text, PORT: 'x' })),
    );
    expect(error).toBeInstanceOf(ConfigError);
    const { problems } = error as ConfigError;
    expect(problems, 'one line for each wrong variable').toHaveLength(2);
    expect(problems.find((line) => line.startsWith('LIVE_PACKAGE_PROVIDERS: '))).toContain(problem);
  });

  it("disables tracing unless an endpoint is set, and then follows OpenTelemetry's variables", () => {
    const read = (env: Record<string, string>) => loadConfig(testEnvironment(DATABASE_URL, env)).tracing;
    expect(read({ OTEL_TRACES_SAMPLER: 'xray', OTEL_SERVICE_NAME: 'x' })).toBeNull();
    const endpoint = 'http://collector:4318';
    expect(read({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint })).toEqual({
      url: 'http://collector:4318/v1/traces',
      headers: {},
      serviceName: 'partner-esim-service',
      sampler: 'parentbased_always_on',
      ratio: 1,
    });
    const all = {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector.example/otlp/',
      OTEL_EXPORTER_OTLP_HEADERS: 'X-Tenant=a%20b, api=c=d',
      OTEL_SERVICE_NAME: 'esims',
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.05',
    };
    expect(read(all)).toEqual({
      url: 'https://collector.example/otlp/v1/traces',
      headers: { 'x-tenant': 'a b', api: 'c=d' },
      serviceName: 'esims',
      sampler: 'parentbased_traceidratio',
      ratio: 0.05,
    });
  });

  it.each([
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'no-value-at-all'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'api=%zz-not-encoded'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'api=%0d%0ainjected'],
    ['OTEL_TRACES_SAMPLER', 'xray'],
    ['OTEL_TRACES_SAMPLER_ARG', '1.5'],
    ['OTEL_TRACES_SAMPLER_ARG', '.'],
  ])('refuses %s=%s, and does not repeat it', (name, value) => {
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318', [name]: value };
    const error = thrownBy(() => loadConfig(testEnvironment(DATABASE_URL, env)));
    expect(error).toBeInstanceOf(ConfigError);
    const { problems } = error as ConfigError;
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(new RegExp(`^${name} `));
    expect(problems[0]!.slice(name.length).includes(value) && value.length > 1).toBe(false);
  });

  it('matches .env.example: the same variables, no more and no fewer', () => {
    const example = readFileSync('.env.example', 'utf8');
    const documented = [...example.matchAll(/^([A-Z_]+)=/gm)].map((match) => match[1]);
    const source = [
      ...readdirSync('src/config').map((file) => `src/config/${file}`),
      'src/embedded/development-settings.ts',
    ]
      .map((file) => readFileSync(file, 'utf8'))
      .join('\n');
    const read = [...source.matchAll(/(?:\(|\[|, )'([A-Z][A-Z_]{3,})'/g)]
      .map((match) => match[1])
      // Nest's injection token for the settings.
      .filter((name) => name !== 'APP_CONFIG');
    expect([...new Set(documented)].sort()).toEqual([...new Set(read)].sort());
  });
});

function thrownBy(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}
