import { randomBytes } from 'node:crypto';
import type { Cleanups } from '../cleanups.js';
import type { BenchOptions } from '../options.js';
import type { DatabaseServer } from '../service/database-server.js';
import { type BenchPartner, createPartners } from '../service/partners.js';
import { ServiceProcess } from '../service/service-process.js';

const DATABASE = 'bench_live';
const PACKAGE = 'pkg_fr_1gb_7d';
const PROVIDER = 'esim_access';
/** Minor units; no measurement uses it up. */
const BALANCE = 1_000_000_000_000;

/** The service's default; the raw loop has as many connections and as many callers as the API. */
export const POOL_MAX = 16;
export const ORDER_BODY = JSON.stringify({ package_id: PACKAGE, quantity: 1 });

/** Partners with a live key and money each, a live package, and one API process. No worker: nothing is bought. */
export class LiveShop {
  private constructor(
    readonly server: DatabaseServer,
    readonly databaseUrl: string,
    readonly env: Readonly<Record<string, string>>,
    readonly partners: readonly BenchPartner[],
    readonly api: ServiceProcess,
  ) {}

  static async open(
    server: DatabaseServer,
    partnerCount: number,
    options: BenchOptions,
    cleanups: Cleanups,
  ): Promise<LiveShop> {
    const databaseUrl = await server.createDatabase(DATABASE);
    const partners = await createPartners(server, DATABASE, partnerCount, 'live');
    await stock(server);
    const env = settings();
    const profile = options.profile ? 'api-live' : undefined;
    const api = cleanups.stopping(await ServiceProcess.start({ role: 'api', databaseUrl, env, profile }));
    return new LiveShop(server, databaseUrl, env, partners, api);
  }

  get database(): string {
    return DATABASE;
  }

  /**
   * That what was measured is the real thing: every order holds its price, and every wallet the sum of its holds.
   * @returns orders accepted, whoever placed them
   * @throws Error when the books do not agree
   */
  async checkBooks(): Promise<number> {
    const [row] = await this.server.query<{ orders: number; unpaid: number; wrong: number }>(
      `SELECT (SELECT count(*)::int FROM orders) AS orders,
              (SELECT count(*)::int FROM orders o LEFT JOIN wallet_holds h ON h.order_id = o.id
               WHERE h.status IS DISTINCT FROM 'active' OR h.amount <> o.unit_price_amount * o.quantity) AS unpaid,
              (SELECT count(*)::int FROM wallets w
               WHERE held <> (SELECT coalesce(sum(amount), 0) FROM wallet_holds h
                              WHERE h.wallet_id = w.id AND h.status = 'active')) AS wrong`,
      [],
      this.database,
    );
    if (!row || row.orders === 0 || row.unpaid > 0 || row.wrong > 0)
      throw new Error(`the books of the live orders do not agree: ${JSON.stringify(row)}`);
    return row.orders;
  }
}

/** The Sandbox's package in Live, and a full wallet for everybody: as rows, for no provider is asked. */
async function stock(server: DatabaseServer): Promise<void> {
  await server.query(
    `INSERT INTO packages SELECT (jsonb_populate_record(p, '{"mode": "live", "cost_micros": 600000}')).*
     FROM packages p WHERE id = $1 AND mode = 'sandbox'`,
    [PACKAGE],
    DATABASE,
  );
  await server.query(
    `INSERT INTO package_sources (package_id, provider, upstream_id, kind, cost_micros, cost_currency)
     VALUES ($1, $2, 'PFR1D7', 'base', 600000, 'USD')`,
    [PACKAGE, PROVIDER],
    DATABASE,
  );
  await server.query(
    `INSERT INTO wallets (partner_id, currency, posted)
     SELECT t.id, p.currency, $2::bigint FROM partners t, packages p WHERE p.id = $1 AND p.mode = 'live'`,
    [PACKAGE, BALANCE],
    DATABASE,
  );
  await server.query('ANALYZE', [], DATABASE);
}

/** The provider is connected, as live orders demand, at an address where nobody listens: only a worker calls it. */
function settings(): Readonly<Record<string, string>> {
  return {
    NODE_ENV: 'production',
    DATABASE_POOL_MAX: String(POOL_MAX),
    ESIM_ACCESS_BASE_URL: 'https://127.0.0.1:9',
    ESIM_ACCESS_CODE: randomBytes(16).toString('hex'),
    ESIM_ACCESS_SECRET: randomBytes(16).toString('hex'),
  };
}
