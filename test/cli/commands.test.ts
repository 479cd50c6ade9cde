import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DOCUMENT_EVENT_TYPES } from '../../src/events/index.js';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestService,
} from '../harness/index.js';
import { issueEsims } from '../harness/order-steps.js';
import { topUp } from '../topups/topup-steps.js';
import { CliUser, jsonLines, PROGRAM, runProgram } from './cli-process.js';

let service: TestService;
let partner: TestPartner;
let liveKey: string;
let user: CliUser;

beforeAll(async () => {
  service = await startTestService();
  partner = await service.createPartner('Test Travel');
  liveKey = await service.createKey(partner.id, 'live');
  user = new CliUser({ ESIM_API_KEY: partner.sandboxKey, ESIM_BASE_URL: service.process.api?.url ?? '' });
});
afterAll(async () => {
  user.remove();
  await service.stop();
});

describe('exit codes', () => {
  it.each([
    ['an unknown command', ['frobnicate'], 2],
    ['an unknown option', ['catalog', '--color'], 2],
    ['a missing option', ['orders', 'place'], 2],
    ['an extra argument', ['orders', 'get', 'ord_1', 'ord_2'], 2],
    ['an unknown order', ['orders', 'get', 'ord_01M7SJ8EH4V8DA1TCQEKT9GHZ7'], 4],
    ['two packages', ['orders', 'place', 'pkg_fr_1gb_7d', '-p', 'pkg_gr_1gb_7d'], 2],
    ['an order that fails', ['orders', 'place', '-p', 'pkg_test_out_of_stock', '--wait'], 1],
    ['an unreachable service', ['catalog', '--base-url', 'http://127.0.0.1:1'], 5],
  ] as const)('distinguish %s', async (_what, args, code) => {
    const finished = await user.run(args);
    expect(finished.code).toBe(code);
    if (code !== 1) expect(finished.stderr).toMatch(/^error: /);
  });

  it('distinguish a missing, malformed or unknown key', async () => {
    const nobody = new CliUser({ ESIM_BASE_URL: service.process.api?.url ?? '' });
    expect(await nobody.run(['catalog'])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('esim login'),
    });
    for (const key of ['hello', `svc_sk_test_${'x'.repeat(32)}`]) {
      const finished = await nobody.run(['catalog'], { env: { ESIM_API_KEY: key } });
      expect(finished.code).toBe(3);
      expect(finished.stdout + finished.stderr).not.toContain(key);
    }
    nobody.remove();
  });

  it('accompany a JSON object when --json is given', async () => {
    const { stdout } = await user.run(['orders', 'get', 'ord_01M7SJ8EH4V8DA1TCQEKT9GHZ7', '--json']);
    expect(jsonLines(stdout)).toEqual([
      {
        error: expect.any(String),
        exit_code: 4,
        code: 'not_found',
        status: 404,
        request_id: expect.stringMatching(/^req_/),
      },
    ]);
  });
});

describe('a Live key', () => {
  it.each([
    ['orders place', ['orders', 'place', '--package', 'pkg_fr_1gb_7d']],
    ['topups place', ['topups', 'place', '-e', 'esim_1', '-p', 'pkg_fr_topup_1gb_7d']],
    ['refunds create', ['refunds', 'create', 'esim_1']],
    ['trigger', ['trigger', 'order.issued']],
    ['mcp --allow-writes', ['mcp', '--allow-writes']],
  ])('refuses a write by %s without --live', async (_name, args) => {
    const finished = await user.run(args, { env: { ESIM_API_KEY: liveKey } });
    expect(finished.code).toBe(6);
    expect(finished.stderr).toContain('Live');
    const { rows } = await service.database.pool.query(
      `SELECT count(*)::int AS calls FROM (SELECT mode FROM orders UNION ALL SELECT mode FROM topups) AS bought
       WHERE mode = 'live'`,
    );
    expect(rows).toEqual([{ calls: 0 }]);
  });

  it('reads without --live, and writes with it', async () => {
    const env = { ESIM_API_KEY: liveKey };
    expect(await user.run(['orders', 'list'], { env })).toMatchObject({ code: 0 });
    // The service refuses this Sandbox package, which proves that the call was made.
    const placed = await user.run(['orders', 'place', '-p', 'pkg_fr_1gb_7d', '--live'], { env });
    expect(placed).toMatchObject({ code: 4, stderr: expect.stringContaining('not_found') });
  });
});

describe('esim login', () => {
  it('stores a working key with mode 0600 and never prints it, and logout deletes it', async () => {
    const newcomer = new CliUser();
    const url = service.process.api?.url ?? '';
    const wrong = await newcomer.run(['login', '--base-url', url], {
      stdin: `svc_sk_test_${'x'.repeat(32)}\n`,
    });
    expect(wrong.code).toBe(3);
    const login = await newcomer.run(['login', '--base-url', `${url}/v1/`], {
      stdin: `${partner.sandboxKey}\n`,
    });
    expect(login).toMatchObject({ code: 0, stdout: expect.stringContaining('Test Travel (sandbox)') });
    expect(login.stdout + login.stderr).not.toContain(partner.sandboxKey);
    const file = path.join(newcomer.home, '.config/partner-esim/credentials.json');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, 'utf8')).toContain(partner.sandboxKey);
    expect(await newcomer.run(['catalog', '--limit', '1'])).toMatchObject({ code: 0 });
    expect(await newcomer.run(['catalog', '--live'])).toMatchObject({ code: 3 });
    expect(await newcomer.run(['logout'])).toMatchObject({ code: 0 });
    expect(await newcomer.run(['catalog'])).toMatchObject({ code: 3 });
    newcomer.remove();
  });
});

describe('esim catalog', () => {
  /** The packages of one run, in printed order. */
  async function packages(...args: string[]): Promise<Package[]> {
    const finished = await user.run(['catalog', ...args, '--json']);
    expect(finished, finished.stderr).toMatchObject({ code: 0 });
    return jsonLines(finished.stdout) as unknown as Package[];
  }
  interface Package {
    readonly id: string;
    readonly type: string;
    readonly coverage: readonly string[];
    readonly price: { readonly amount: number };
    readonly data_bytes: number | null;
    readonly unlimited: boolean;
    readonly shelf?: { readonly rank: number };
  }

  it('sorts by country name, and each country by price', async () => {
    const all = await packages('--limit', '2000');
    const countries = all.filter(({ type }) => type === 'country');
    expect(all.slice(0, countries.length)).toEqual(countries);
    const [first] = countries;
    expect(first!.coverage).toEqual(['AL']);
    const names = countries.map(({ coverage }) =>
      new Intl.DisplayNames(['en'], { type: 'region' }).of(coverage[0]!)!,
    );
    expect(names).toEqual(names.toSorted((a, b) => a.localeCompare(b, 'en')));
    const ofFrance = countries
      .filter(({ coverage }) => coverage[0] === 'FR')
      .map(({ price }) => price.amount);
    expect(ofFrance.length).toBeGreaterThan(2);
    expect(ofFrance).toEqual(ofFrance.toSorted((a, b) => a - b));
    const shown = await user.run(['catalog']);
    expect(shown.stdout.trimEnd().split('\n')).toHaveLength(25);
    expect(shown.stderr).toContain(`25 of ${all.length} packages. Use --limit ${all.length} to show all.`);
  });

  it('accepts the country as an argument, and sorts by price or data in either direction', async () => {
    const prices = (found: Package[]): number[] => found.map(({ price }) => price.amount);
    const cheapest = await packages('FR', '--sort', 'price', '--limit', '500');
    expect(prices(cheapest)).toEqual(prices(cheapest).toSorted((a, b) => a - b));
    expect(cheapest.every(({ coverage }) => coverage.includes('FR'))).toBe(true);
    expect(prices(await packages('FR', '--sort=-price', '--limit', '500'))).toEqual(
      prices(cheapest).toReversed(),
    );
    const [most] = await packages('FR', '--sort=-data', '--limit', '1');
    expect(most!.unlimited || (most!.data_bytes ?? 0) >= 20e9).toBe(true);
    expect(await user.run(['catalog', '--sort', 'color'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Use one of: country, price, -price, data, -data.'),
    });
  });

  it('shows a shelf with ranks, and the number of packages left out', async () => {
    const shown = await user.run(['catalog', 'JP', '--type', 'country', '--shelf', '--limit', '3']);
    expect(shown).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('3 of 15 packages. Left out: 25'),
    });
    const ranked = await packages('JP', '--type', 'country', '--shelf');
    expect(ranked.map(({ shelf }) => shelf!.rank)).toEqual(ranked.map((_, nth) => nth + 1));
    expect(await user.run(['catalog', '--shelf'])).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('?shelf'),
    });
  });

  it('lists changes after a cursor, and destinations', async () => {
    const first = await user.run(['catalog', 'changes', '--limit', '2']);
    expect(first.stdout.trimEnd().split('\n')).toHaveLength(2);
    const [, after] = /--after (\S+)/.exec(first.stderr)!;
    const next = await user.run(['catalog', 'changes', '--after', after!, '--limit', '1', '--json']);
    expect(jsonLines(next.stdout)).toMatchObject([{ kind: 'added', changed: [] }]);
    const places = jsonLines((await user.run(['destinations', '--json'])).stdout);
    expect(places.at(-1)).toMatchObject({ code: 'global', name: 'Global' });
    expect((await user.run(['destinations'])).stdout).toMatch(/^JP {2,}Japan {2,}\d+ packages {2}from \d/m);
  });

  it('continues after a cursor in the order of the API', async () => {
    const { body } = await partner.sandbox.get('/v1/catalog?kind=base&limit=2');
    const { data, next_cursor: cursor } = body as { data: { id: string }[]; next_cursor: string };
    const [next] = await packages(`--cursor=${cursor}`, '--limit', '1');
    expect(data.map(({ id }) => id)).not.toContain(next!.id);
    expect(await user.run(['catalog', `--cursor=${cursor}`, '--sort', 'price'])).toMatchObject({ code: 2 });
  });

  it('lists only country packages with --type country, and refuses an unknown type', async () => {
    const args = ['catalog', '--country', 'FR', '--type', 'country', '--json'];
    const types = jsonLines((await user.run(args)).stdout).map(({ type }) => type);
    expect(new Set(types)).toEqual(new Set(['country']));
    const wrong = await user.run(['catalog', '--type', 'planet']);
    expect(wrong).toMatchObject({ code: 4, stderr: expect.stringContaining('validation_failed') });
  });
});

describe('esim orders', () => {
  it('places an order, waits, and shows it', async () => {
    const args = ['-p', 'pkg_fr_1gb_7d', '-q', '2', '--reference', 'cli-1', '--wait', '--json'];
    const placed = await user.run(['orders', 'place', ...args]);
    expect(placed.code).toBe(0);
    const [order] = jsonLines(placed.stdout);
    expect(order).toMatchObject({ status: 'issued', quantity_issued: 2, reference: 'cli-1' });
    const listed = await user.run(['orders', 'list', '--reference', 'cli-1']);
    expect(listed.stdout).toContain(order!['id']);
    expect((await user.run(['orders', 'get', order!['id'] as string])).stdout).toContain('issued');
  });

  it('prints how to install an issued eSIM, and shows the install data on request', async () => {
    const placed = await user.run(['orders', 'place', '-p', 'pkg_fr_1gb_7d', '--wait']);
    const [, esimId = ''] = /install: esim esims get (esim_\w+)$/m.exec(placed.stdout) ?? [];
    expect(placed.stdout + placed.stderr).not.toMatch(/LPA:|carddata/);
    const { data: esim } = (await partner.sandbox.get(`/v1/esims/${esimId}`)).body;
    const shown = await user.run(['esims', 'get', esimId]);
    expect(shown).toMatchObject({ code: 0, stderr: '' });
    const { id, status, iccid, smdp_address, activation_code, install } = esim;
    const facts = [id, status, iccid, smdp_address, activation_code, install.ios_url, install.android_url];
    for (const fact of facts) expect(shown.stdout).toContain(fact);
    expect(jsonLines((await user.run(['esims', 'get', esimId, '--json'])).stdout)).toEqual([esim]);
    const listed = await user.run(['esims', 'list', '--order', esim.order_id]);
    expect(listed.stdout).toMatch(new RegExp(`^${esimId}  issued  iccid ${iccid}`));
    expect(listed.stdout).not.toMatch(/LPA:|carddata/);
    const [inList] = jsonLines((await user.run(['esims', 'list', '--iccid', iccid, '--json'])).stdout);
    expect(inList).toMatchObject({ id: esimId, iccid });
    expect(inList).not.toHaveProperty('activation_code');
  });

  it('labels, suspends and replaces eSIMs', async () => {
    const [inUse = '', unused = ''] = await issueEsims(partner.sandbox, 'pkg_fr_1gb_7d', 2);
    const labeled = await user.run(['esims', 'label', inUse, 'Trip to Lyon']);
    expect(labeled).toMatchObject({ code: 0, stderr: '' });
    expect((await user.run(['esims', 'list', '--label', 'Trip to Lyon'])).stdout).toContain(inUse);
    const suspended = await user.run(['esims', 'suspend', inUse, '--reason', 'stolen', '--json']);
    expect(jsonLines(suspended.stdout)).toMatchObject([{ id: inUse, pending_action: 'suspend' }]);
    expect((await user.run(['esims', 'get', unused])).stdout).toMatch(/^ {2}actions +suspend, .*replace$/m);
    const replaced = await user.run(['esims', 'replace', unused, '--json']);
    expect(jsonLines(replaced.stdout)).toMatchObject([{ status: 'pending', replaces: unused }]);
    expect((await user.run(['esims', 'replace', unused])).stderr).toContain('esim esims get <esim>');
  });

  it('cancels an unused order', async () => {
    const placed = await user.run(['orders', 'place', '-p', 'pkg_fr_1gb_7d', '--wait', '--json']);
    const [{ id }] = jsonLines(placed.stdout) as [{ id: string }];
    const canceled = await user.run(['orders', 'cancel', id, '--json']);
    expect(canceled).toMatchObject({ code: 0, stderr: '' });
    expect(jsonLines(canceled.stdout)).toMatchObject([{ id, status: 'canceling' }]);
    const again = await user.run(['orders', 'cancel', id]);
    expect(again.stderr).toContain('esim refunds create <esim>');
  });

  it('shows the plans on an eSIM, and says when the wholesaler shows them as one', async () => {
    const [esimId = ''] = await issueEsims(partner.sandbox, 'pkg_fr_1gb_7d');
    const pooled = await user.run(['esims', 'plans', esimId]);
    expect(pooled.stdout).toMatch(/^ord_\w+ {2}queued {2}pkg_fr_1gb_7d/);
    expect(pooled.stderr).toContain('shows these plans as one');
    await partner.sandbox.post(`/v1/sandbox/esims/${esimId}/activate`);
    await topUp(partner.sandbox, esimId, 'pkg_test_topup_queued');
    const listed = await user.run(['esims', 'plans', esimId]);
    expect(listed).toMatchObject({ code: 0, stderr: '' });
    expect(listed.stdout).toMatch(/^ord_\w+ {2}active {2}pkg_fr_1gb_7d {2,}1 GB of 1 GB left {2}until 2/m);
    expect(listed.stdout).toMatch(/^top_\w+ {2}queued {2}pkg_test_topup_queued {2,}1 GB of 1 GB left/m);
    const { data } = (await partner.sandbox.get(`/v1/esims/${esimId}/plans`)).body;
    expect(jsonLines((await user.run(['esims', 'plans', esimId, '--json'])).stdout)).toEqual(data);
  });

  it('creates, lists and revokes an install link', async () => {
    const [esimId = ''] = await issueEsims(partner.sandbox, 'pkg_fr_1gb_7d');
    const command = ['esims', 'install-link', esimId];
    const created = await user.run([...command, '--days', '3', '--locale', 'de', '--access-code', '--json']);
    expect(created, created.stderr).toMatchObject({ code: 0 });
    const [link] = jsonLines(created.stdout);
    expect(link).toMatchObject({ locale: 'de', access_code: expect.stringMatching(/^\d{8}$/) });
    expect(link!['url']).toMatch(/\/i\/[\w-]{43}$/);
    const id = link!['id'] as string;
    expect((await user.run([...command, '--list'])).stdout).toMatch(new RegExp(`^${id} {2}opened 0 times`));
    expect((await user.run([...command, '--revoke', id])).code).toBe(0);
    expect((await user.run([...command, '--revoke', id])).code).not.toBe(0);
  });

  it('sets, shows and ends the automatic top-up of an eSIM', async () => {
    const [esimId = ''] = await issueEsims(partner.sandbox, 'pkg_fr_1gb_7d');
    const command = ['esims', 'auto-topup', esimId];
    const set = await user.run([...command, '--package', 'pkg_fr_topup_1gb_7d', '--max-times', '3']);
    expect(set).toMatchObject({ code: 0, stderr: '' });
    expect(set.stdout).toContain('pkg_fr_topup_1gb_7d at 80 %');
    const { data } = (await partner.sandbox.get(`/v1/esims/${esimId}/auto-topup`)).body;
    expect(data).toMatchObject({ at_percent: 80, max_times: 3 });
    expect(jsonLines((await user.run([...command, '--json'])).stdout)).toEqual([data]);
    const unfit = await user.run([...command, '--package', 'pkg_jp_topup_1gb_7d']);
    expect(unfit.stderr).toContain(`esim topups packages ${esimId}`);
    expect((await user.run([...command, '--off'])).code).toBe(0);
    const none = await user.run(command);
    expect(none.code).toBe(4);
    expect(none.stderr).toContain('`esim esims auto-topup <esim> --package <package>` sets one.');
    expect(none.stderr).not.toContain('cannot see');
  });

  it('accepts the package, and for a top-up the eSIM and the package, as positional arguments', async () => {
    const placed = await user.run(['orders', 'place', 'pkg_fr_1gb_7d', '--wait', '--json']);
    expect(placed, placed.stderr).toMatchObject({ code: 0 });
    const [{ esim_id: esimId }] = jsonLines(placed.stdout)[0]!['esims'] as [{ esim_id: string }];
    for (const args of [
      [esimId, 'pkg_fr_topup_1gb_7d'],
      ['--esim', esimId, 'pkg_fr_topup_1gb_7d'],
      [esimId, '-p', 'pkg_fr_topup_1gb_7d'],
    ]) {
      const bought = await user.run(['topups', 'place', ...args, '--json']);
      expect(bought, bought.stderr).toMatchObject({ code: 0 });
      expect(jsonLines(bought.stdout)).toMatchObject([
        { esim_id: esimId, package_id: 'pkg_fr_topup_1gb_7d' },
      ]);
    }
    const tooMany = await user.run(['orders', 'list', 'issued']);
    expect(tooMany.code).toBe(2);
    expect(tooMany.stderr).toBe(
      'error: "issued" is unexpected: orders list takes 0 arguments\nUsage: esim orders list [options]. `esim help orders list` shows the options.\n',
    );
  });

  it('buys only once with the same idempotency key', async () => {
    const args = ['orders', 'place', '-p', 'pkg_fr_1gb_7d', '--idempotency-key', 'cli-key-1', '--json'];
    const ids = [await user.run(args), await user.run(args)].map(({ stdout }) => jsonLines(stdout)[0]!['id']);
    expect(ids[0]).toBe(ids[1]);
  });

  it('prints colors at a terminal, and none with NO_COLOR or in a pipe', async () => {
    expect((await user.run(['doctor'])).stdout).not.toContain('\u001B[');
    const atTerminal = async (env: Record<string, string>): Promise<string> =>
      (
        await runProgram('script', ['-qec', `'${process.execPath}' '${PROGRAM}' doctor`, '/dev/null'], {
          env: { ...user.env, TERM: 'xterm', ...env },
        })
      ).stdout;
    expect(await atTerminal({})).toContain('\u001B[32mok');
    const plain = await atTerminal({ NO_COLOR: '1' });
    expect(plain).toContain('ok');
    expect(plain).not.toContain('\u001B[32m');
  });
});

describe('esim trigger', () => {
  it.each([...DOCUMENT_EVENT_TYPES, 'order.canceled', 'esim.profile.changed'])(
    'triggers %s',
    async (type) => {
      // A new partner each, because the calls of seven triggers exceed the rate limit of one key.
      const player = await service.createPartner();
      const finished = await user.run(['trigger', type, '--json'], {
        env: { ESIM_API_KEY: player.sandboxKey },
      });
      expect(finished).toMatchObject({ code: 0 });
      const [{ subject }] = jsonLines(finished.stdout) as [{ subject: string }];
      const { data } = (await player.sandbox.get(`/v1/events?type=${type}`)).body;
      expect(data.some((event: { data: object }) => Object.values(event.data).includes(subject))).toBe(true);
    },
  );

  it('says why an event of the Live mode cannot be triggered', async () => {
    const { code, stderr } = await user.run(['trigger', 'wallet.low']);
    expect(code).toBe(2);
    expect(stderr).toContain('error: wallet.low cannot be triggered\nThe Sandbox has no wallet.');
  });
});

describe('esim events', () => {
  it('lists the newest events first on request, across the pages of the feed', async () => {
    const busy = await service.createPartner();
    const env = { ESIM_API_KEY: busy.sandboxKey };
    for (let count = 0; count < 4; count += 1)
      await busy.sandbox.post('/v1/orders', { package_id: 'pkg_test_out_of_stock', quantity: 1 });
    const idsOf = async (...args: string[]): Promise<unknown[]> =>
      jsonLines((await user.run(['events', 'list', ...args, '--json'], { env })).stdout).map(({ id }) => id);
    await eventually('all have failed', async () => (await idsOf()).length === 4);
    const oldestFirst = await idsOf();
    expect(await idsOf('--newest', '--limit', '3')).toEqual(oldestFirst.slice(1).toReversed());
    expect(await idsOf('-n', '--after', String(oldestFirst[1]))).toEqual(oldestFirst.slice(2).toReversed());
    expect(await idsOf('--newest', '--type', 'order.issued')).toEqual([]);
  });

  it('lists events, and resends a stored one to the local server', async () => {
    const receiver = await startReceiver();
    await user.run(['trigger', 'order.failed']);
    const [event] = jsonLines(
      (await user.run(['events', 'list', '--type', 'order.failed', '--json'])).stdout,
    );
    const resent = await user.run(['events', 'resend', event!['id'] as string, '-f', receiver.url]);
    expect(resent).toMatchObject({ code: 0, stdout: expect.stringContaining('200') });
    expect(JSON.parse(receiver.received[0]!.body)).toEqual(event);
    await receiver.close();
    const failed = await user.run(['events', 'resend', event!['id'] as string, '127.0.0.1:1']);
    expect(failed).toMatchObject({ code: 1, stdout: expect.stringContaining('ECONNREFUSED') });
  });
});

describe('esim requests tail', () => {
  it('prints each new call of the key once, and not its own', async () => {
    const caller = await service.createPartner();
    await caller.sandbox.get('/v1/esims?limit=7');
    const child = user.launch(['requests', 'tail', '--json', '--status', '4xx'], {
      ESIM_API_KEY: caller.sandboxKey,
    });
    const seen = (): string[] => jsonLines(child.stdout).map(({ request_id: id }) => String(id));
    const made: (string | null)[] = [];
    await eventually('calls are followed', async () => {
      await caller.sandbox.get('/v1/balance');
      made.push((await caller.sandbox.get('/v1/orders/ord_none')).headers.get('x-request-id'));
      return seen().length > 0;
    });
    await eventually('the last call is there', () => seen().includes(made.at(-1) ?? ''));
    expect(new Set(seen()).size).toBe(seen().length);
    expect(made).toEqual(expect.arrayContaining(seen()));
    child.signal('SIGINT');
    expect(await child.exited()).toBe(0);
    const text = await user.run(['requests', 'tail', '--status', 'four']);
    expect(text).toMatchObject({ code: 2, stderr: expect.stringContaining('--status') });
  });
});

describe('esim open', () => {
  it('prints the address of the portal page', async () => {
    const env = { ESIM_PORTAL_URL: 'https://portal.example.com' };
    const { stdout } = await user.run(['open', 'webhooks', '--print'], { env });
    expect(stdout).toBe('https://portal.example.com/developers/webhooks\n');
  });
});
