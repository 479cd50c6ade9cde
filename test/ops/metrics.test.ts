import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDataSource } from '../../src/infra/database/index.js';
import { PurchaseMetrics } from '../../src/purchases/purchase-metrics.js';
import { PROJECT_ROOT } from '../harness/child-process.js';
import {
  createTestDatabase,
  eventually,
  HttpClient,
  startReceiver,
  type TestReceiver,
} from '../harness/index.js';
import { placeOrder } from '../harness/order-steps.js';
import { whyMissing } from '../harness/why-missing.js';
import { explainQueriesOf } from '../infra/database/explained-queries.js';
import { fillTable } from '../infra/database/filled-tables.js';
import { RolesApart, ROLES, type RoleApart, type Sample, type Scrape } from './roles-apart.js';
import { metricsIn, readAlertRules, readDashboards, RULE_TESTS_FILES, RULES_FILE } from './rule-files.js';

/** The metrics that an operator needs, by role. */
const EVERY_ROLE = [
  'service_build_info',
  'process_cpu_seconds_total',
  'nodejs_eventloop_lag_p99_seconds',
  'database_pool_wait_seconds',
  'database_pool_connections',
  'database_statement_failures_total',
  'log_lines_dropped_total',
  'http_connections_cut_total',
];
const HTTP = ['http_requests_total', 'http_request_duration_seconds', 'batch_items'];
const SHOWN: Readonly<Record<RoleApart, readonly string[]>> = {
  api: [...EVERY_ROLE, ...HTTP, 'rate_limit_fallback', 'rate_limit_fallbacks_total'],
  admin: [...EVERY_ROLE, ...HTTP],
  portal: [...EVERY_ROLE, ...HTTP],
  install: [...EVERY_ROLE, ...HTTP],
  worker: [
    ...EVERY_ROLE,
    'order_oldest_pending_seconds',
    'order_oldest_due_seconds',
    'order_oldest_processing_seconds',
    'topup_oldest_due_seconds',
    'topup_oldest_processing_seconds',
    'orders_needing_review',
    'topups_needing_review',
    'webhook_oldest_due_seconds',
    'webhook_endpoints',
    'webhook_deliveries',
    'webhook_deliveries_counted_seconds',
    'webhook_attempts_total',
    'webhook_attempt_duration_seconds',
    'webhook_endpoint_blocks_total',
    'webhook_endpoint_disables_total',
    'provider_calls_total',
    'provider_call_duration_seconds',
    'provider_pace_wait_seconds',
    'provider_circuit_state',
    'provider_failing',
    'provider_balance',
    'provider_catalog_synced_timestamp_seconds',
    'reconciliation_differences',
    'reconciliation_check_differences',
    'reconciliation_age_seconds',
    'database_partition_days_ready',
    'database_partition_days_overdue',
    'database_partitions',
    'sweep_runs_total',
    'sweep_last_success_timestamp_seconds',
    'retention_purged_total',
    'batch_items',
  ],
};

/** All allowed labels. Before you add one, check how many values it can have. */
const LABELS = new Set([
  'batch',
  'check',
  'currency',
  'error_class',
  'kind',
  'le',
  'method',
  'node',
  'outcome',
  'pool',
  'port',
  'provider',
  'purpose',
  'reason',
  'route',
  'state',
  'status',
  'sweep',
  'table',
  'version',
  'what',
  'worker_job',
  // Labels of Node.js metrics.
  'major',
  'minor',
  'patch',
  'quantile',
  'space',
  'type',
]);

const rules = readAlertRules();
const dashboards = readDashboards();
const runbook = readFileSync(path.join(PROJECT_ROOT, 'docs/operations.md'), 'utf8');

/** Matches identifiers of a partner, a key, an object, an endpoint or a caller. */
const NAMES_SOMEBODY = /[a-z]{2,4}_[0-9A-HJKMNP-TV-Z]{26}|https?:|127\.0\.0\.1|example|svc_|whsec_/;

/** Metric names in the scrapes of all roles. */
let shown: ReadonlySet<string>;
let roles: RolesApart;
let receiver: TestReceiver;

beforeAll(async () => {
  receiver = await startReceiver();
  // Nothing listens there, so every call of this provider fails to connect.
  roles = await RolesApart.start({ ZENDIT_API_KEY: 'none', ZENDIT_BASE_URL: 'http://127.0.0.1:9/v1' });
  const scrapes = await Promise.all(
    ROLES.map((role) =>
      eventually(`${role} shows its metrics`, async () => {
        const scrape = await roles.scrape(role);
        return scrape.status === 200 && scrape;
      }),
    ),
  );
  shown = new Set(scrapes.flatMap(({ names }) => [...names]));
});
afterAll(async () => {
  await roles.stop();
  await receiver.close();
});

const of = (scrape: Scrape, name: string): readonly Sample[] =>
  scrape.samples.filter((sample) => sample.name === name);

async function onePartner(): Promise<{ api: HttpClient; admin: HttpClient }> {
  const admin = roles.service('admin');
  const partner = await admin.createPartner();
  await admin.admin.post(`/internal/v1/partners/${partner.id}/webhook-endpoints`, {
    url: receiver.url,
    mode: 'sandbox',
  });
  return { api: roles.service('api').partnerApi(partner.sandboxKey), admin: admin.admin };
}

describe('the metrics of the roles', () => {
  it.each(ROLES)('%s has a metric for each question in the runbook', async (role) => {
    const { status, names } = await roles.scrape(role);
    expect(status).toBe(200);
    expect(SHOWN[role].filter((name) => !names.has(name))).toEqual([]);
  });

  it('counts a call by route and status, an order’s webhook by outcome, and a provider failure by class', async () => {
    const { api } = await onePartner();
    const before = receiver.received.length;
    await placeOrder(api, { package_id: 'pkg_fr_1gb_7d', quantity: 1 });
    expect((await api.get('/v1/orders/ord_none')).status).toBe(404);
    await eventually('the webhook has come', () => receiver.received.length > before);

    const apiScrape = await roles.scrape('api');
    const calls = of(apiScrape, 'http_requests_total').map(({ labels }) => labels);
    expect(calls).toContainEqual({ port: 'partner', method: 'POST', route: '/v1/orders', status: '202' });
    expect(calls).toContainEqual({ port: 'partner', method: 'GET', route: '/v1/orders/:id', status: '404' });
    expect(of(apiScrape, 'http_request_duration_seconds_count').length).toBeGreaterThan(0);
    expect(of(apiScrape, 'batch_items_count').map(({ labels }) => labels['batch'])).toContain('key_checks');

    const worker = await eventually('the worker has counted', async () => {
      const scrape = await roles.scrape('worker');
      const delivered = of(scrape, 'webhook_attempts_total').find(
        ({ labels }) => labels['outcome'] === 'delivered',
      );
      const outcomes = of(scrape, 'provider_calls_total').map(({ labels }) => labels['outcome']);
      return delivered && outcomes.includes('connection') ? scrape : null;
    });
    expect(of(worker, 'database_partition_days_ready').map(({ value }) => value)).toEqual(
      expect.arrayContaining([7]),
    );
    expect(of(worker, 'service_build_info')[0]?.labels['version']).toMatch(/^\d+\.\d+\.\d+/);
  });

  it('has bounded labels: none names a partner, an endpoint or an object, and callers cannot add values', async () => {
    const { api } = await onePartner();
    const paths = async (from: number): Promise<void> => {
      for (let nth = from; nth < from + 40; nth++) {
        await api.get(`/v1/no-such-path-${nth}`);
        await api.get(`/v1/orders/ord_${nth}`);
      }
      await api.call('PROPFIND', '/v1/orders');
    };
    await paths(0);
    const ofCalls = ({ samples }: Scrape): number =>
      samples.filter(({ name }) => name.startsWith('http_')).length;
    const before = ofCalls(await roles.scrape('api'));
    await paths(100);
    const scrapes = await Promise.all(ROLES.map((role) => roles.scrape(role)));
    expect(ofCalls(scrapes[0]!)).toBe(before);
    const labels = scrapes.flatMap(({ samples }) => samples.map((sample) => sample.labels));
    expect(
      [...new Set(labels.flatMap((each) => Object.keys(each)))].filter((key) => !LABELS.has(key)),
    ).toEqual([]);
    const values = labels.flatMap((each) => Object.values(each));
    expect(values.filter((value) => NAMES_SOMEBODY.test(value))).toEqual([]);
    for (const { samples } of scrapes) expect(samples.length).toBeLessThan(3_000);
  });

  it('omits only the values that cannot be read', async () => {
    const client = await roles.database.pool.connect();
    try {
      await client.query('BEGIN');
      await client.query('LOCK TABLE orders IN ACCESS EXCLUSIVE MODE');
      const others = ['topup_oldest_due_seconds', 'webhook_oldest_due_seconds', 'webhook_endpoints'];
      // Values are cached for ten seconds, and reads that wait for the lock may use up the connections that other reads
      // need.
      await eventually('the readings of orders alone are gone', async () => {
        const scrape = await roles.scrape('worker');
        // A scrape that takes too long on a busy machine is a 503.
        if (scrape.status !== 200) return false;
        const isThere = (name: string): boolean => of(scrape, name).length > 0;
        return !isThere('order_oldest_due_seconds') && others.every(isThere);
      });
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
  });
});

it('reads the ages of orders and top-ups by index, however many have ended or are open', async () => {
  const database = await createTestDatabase();
  const dataSource = await createDataSource({
    url: database.url,
    poolMax: 8,
    poolWaitMs: 20_000,
    entities: [],
    applicationName: 'test',
  }).initialize();
  try {
    // Four of 20,000 are processing, one of them with an expired lease. No worker is running.
    const columns = {
      status: `CASE WHEN i % 5000 = 0 THEN 'processing' ELSE 'issued' END`,
      next_attempt_at: `CASE WHEN i % 5000 = 0 THEN now() - interval '1 hour' END`,
      lease_until: `CASE i WHEN 5000 THEN now() - interval '90 seconds' ELSE now() + interval '1 day' END`,
      created_at: `now() - i * interval '1 second'`,
      mode: `'sandbox'`,
    };
    for (const table of ['orders', 'topups']) await fillTable(database.pool, table, 20_000, columns);
    await database.pool.query('ANALYZE');
    const registry = new Registry();
    new PurchaseMetrics(registry, dataSource.manager);
    let text = '';
    const queries = await explainQueriesOf(dataSource, async () => {
      text = await registry.metrics();
    });
    const shown = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
    for (const kind of ['order', 'topup']) {
      expect(shown(`${kind}_oldest_due_seconds`), kind).toBeGreaterThanOrEqual(90);
      expect(shown(`${kind}_oldest_due_seconds`), kind).toBeLessThan(600);
      expect(shown(`${kind}_oldest_processing_seconds`), kind).toBeGreaterThanOrEqual(20_000);
    }
    expect(shown('order_oldest_pending_seconds')).toBe(0);
    const ages = queries.filter((query) => query.text.includes('AS seconds'));
    expect(ages).toHaveLength(5);
    for (const { text: statement, rows } of ages) expect(rows, statement).toBeLessThan(100);
  } finally {
    await dataSource.destroy();
    await database.drop();
  }
});

describe('a dashboard', () => {
  it('exists for each role, with panels that explain what they show', () => {
    expect(dashboards.map(({ file }) => file).sort()).toEqual(ROLES.map((role) => `${role}.json`).sort());
    for (const { file, panels } of dashboards)
      expect(panels.filter(({ title, description }) => !title || !description).map(() => file)).toEqual([]);
  });

  it('uses only metrics that exist in a scrape of the running roles', () => {
    const expressions = dashboards.flatMap(({ file, panels }) =>
      panels.flatMap(({ title, targets }) =>
        targets.map(({ expr }) => ({ place: `${file}: ${title}`, expr })),
      ),
    );
    expect(expressions.length).toBeGreaterThan(50);
    const unknown = expressions.flatMap(({ place, expr }) => {
      const names = metricsIn(expr);
      return names.length === 0 ? [`${place}: no metric`] : names.filter((name) => !shown.has(name));
    });
    expect(unknown).toEqual([]);
  });
});

describe('an alert', () => {
  it('uses only metrics that exist in a scrape of the running roles', () => {
    expect(rules.length).toBe(readFileSync(RULES_FILE, 'utf8').match(/- alert:/g)!.length);
    for (const { name, expression } of rules) {
      const names = metricsIn(expression);
      expect(names.length, name).toBeGreaterThan(0);
      expect(
        names.filter((each) => !shown.has(each)),
        name,
      ).toEqual([]);
    }
  });

  it('has a runbook entry with meaning, checks, fix and warnings', () => {
    const entries = new Map(
      runbook
        .split(/^### /m)
        .slice(1)
        .map((entry) => [/^\w+/.exec(entry)![0], entry]),
    );
    expect([...entries.keys()].sort()).toEqual(rules.map(({ name }) => name).sort());
    for (const { name, runbook: link, severity } of rules) {
      expect(link).toBe(`docs/operations.md#${name.toLowerCase()}`);
      expect(['page', 'ticket']).toContain(severity);
      for (const part of ['**Means.** ', '**Check.** ', '**Fix.**', '**Do not'])
        expect(entries.get(name), `${name}: ${part}`).toContain(part);
    }
  });

  it('has a runbook that names only existing metrics and panels', () => {
    const titles = new Set(dashboards.flatMap(({ panels }) => panels.map(({ title }) => title)));
    const named = [...runbook.matchAll(/"([A-Z][^"]+)"/g)].map(([, title]) => title!.replaceAll('\n', ' '));
    expect(named.filter((title) => !titles.has(title))).toEqual([]);
  });

  const missing = whyMissing('promtool', '--version');
  if (missing !== null) console.warn(`promtool is not there (apt-get install prometheus): ${missing}`);

  it.skipIf(missing !== null)(
    'fires on its symptom and stays quiet without it, in promtool',
    () => {
      const run = (...args: string[]): string => execFileSync('promtool', args, { encoding: 'utf8' });
      expect(run('check', 'rules', RULES_FILE)).toContain(`${rules.length} rules found`);
      expect(run('test', 'rules', ...RULE_TESTS_FILES)).toContain('SUCCESS');
      const tests = RULE_TESTS_FILES.map((file) => readFileSync(file, 'utf8')).join('');
      for (const { name } of rules) {
        expect(tests, name).toContain(`- name: ${name} fires`);
        expect(tests, name).toContain(`- name: ${name} stays quiet`);
      }
    },
    // It needs fifteen seconds of CPU, and took over four minutes with two full test runs on two cores.
    900_000,
  );
});
