import { CliError, EXIT } from './exit-codes.js';
import type { Order, Package, PartnerApi, ServiceEvent, Topup } from './partner-api.js';

/** Input of a scene. */
export interface Play {
  readonly api: PartnerApi;
  /** The eSIM to use; null orders a new one. */
  readonly esimId: string | null;
  /** Percentage of the data to use, for `esim.usage.threshold`. */
  readonly percent: number;
  readonly waitForOrder: (id: string) => Promise<Order>;
  readonly waitForTopup: (id: string) => Promise<Topup>;
  readonly tell: (step: string) => void;
}

/** Runs the steps that lead to an event. @returns the id of the object that the event will be about */
type Scene = (play: Play) => Promise<string>;

/** Why `esim trigger` cannot produce an event. */
export const NOT_TRIGGERED = {
  'esim.usage.level': 'Set usage_levels of an endpoint, and use data of a Sandbox eSIM.',
  'esim.expiring': 'It is sent 72 and 24 hours before the end of an eSIM.',
  'esim.suspended': 'Suspend a Sandbox eSIM with `esim esims suspend <esim>`.',
  'esim.resumed': 'Resume a Sandbox eSIM with `esim esims resume <esim>`.',
  'esim.revoked': 'Revoke a Sandbox eSIM with `esim esims revoke <esim>`.',
  'refund.settled': 'The portal team settles refund requests.',
  'wallet.low': 'The Sandbox has no wallet.',
  'catalog.changed': 'The catalog of the Sandbox does not change.',
} satisfies Partial<Record<ServiceEvent['type'], string>>;

/** Produces each event through the calls that a partner and a device would make. */
export const SCENES: Readonly<Record<Exclude<ServiceEvent['type'], keyof typeof NOT_TRIGGERED>, Scene>> = {
  'order.issued': async (play) => (await orderedEsim(play)).orderId,
  'order.failed': async (play) => {
    const order = await place(play, 'pkg_test_out_of_stock');
    return order.id;
  },
  'esim.activated': (play) => activeEsim(play),
  'esim.profile.changed': (play) => activeEsim(play),
  'esim.usage.threshold': async (play) => {
    const esimId = await activeEsim(play);
    await play.api.consume(esimId, play.percent);
    play.tell(`used ${play.percent}% of ${esimId}`);
    return esimId;
  },
  'esim.expired': async (play) => {
    const esimId = await activeEsim(play);
    await play.api.expire(esimId);
    play.tell(`expired ${esimId}`);
    return esimId;
  },
  'order.canceled': async (play) => {
    const { orderId } = await orderedEsim(play);
    await play.api.cancelOrder(orderId);
    const canceled = await play.waitForOrder(orderId);
    play.tell(`${canceled.id} is ${canceled.status}`);
    return canceled.id;
  },
  'order.topup.completed': async (play) => {
    const esimId = play.esimId ?? (await orderedEsim(play)).esimId;
    const [fitting] = (await play.api.topupPackages(esimId)).data;
    if (!fitting)
      throw new CliError(EXIT.failed, `no top-up package fits ${esimId}`, 'Omit --esim to order a new eSIM.');
    return topUp(play, esimId, fitting.id);
  },
  'order.topup.failed': async (play) => {
    const esimId = play.esimId ?? (await orderedEsim(play)).esimId;
    return topUp(play, esimId, 'pkg_test_topup_fail');
  },
};

async function place(play: Play, packageId: string): Promise<Order> {
  const placed = await play.api.placeOrder({ package_id: packageId });
  play.tell(`ordered ${packageId}: ${placed.id}`);
  const ended = await play.waitForOrder(placed.id);
  play.tell(`${ended.id} is ${ended.status}`);
  return ended;
}

async function orderedEsim(play: Play): Promise<{ orderId: string; esimId: string }> {
  const order = await place(play, (await cheapPackage(play.api)).id);
  const [esim] = order.esims;
  if (!esim)
    throw new CliError(
      EXIT.failed,
      `${order.id} is ${order.status} and has no eSIM`,
      `\`esim orders get ${order.id}\` shows why.`,
    );
  return { orderId: order.id, esimId: esim.esim_id };
}

/** Finds a package with limited data that supports top-ups. */
async function cheapPackage(api: PartnerApi): Promise<Package> {
  const { data } = await api.packages({ kind: 'base', type: 'country', limit: 100 });
  const fits = data.filter(
    ({ id, available, unlimited, topup_supported }) =>
      available && !unlimited && topup_supported && !id.startsWith('pkg_test_'),
  );
  const cheapest = fits.toSorted((a, b) => a.price.amount - b.price.amount)[0];
  if (!cheapest)
    throw new CliError(
      EXIT.failed,
      'the catalog has no package that fits this event',
      'Order an eSIM yourself, and pass it with --esim.',
    );
  return cheapest;
}

async function activeEsim(play: Play): Promise<string> {
  const esimId = play.esimId ?? (await orderedEsim(play)).esimId;
  await play.api.activate(esimId);
  play.tell(`activated ${esimId}`);
  return esimId;
}

async function topUp(play: Play, esimId: string, packageId: string): Promise<string> {
  const placed = await play.api.placeTopup({ esim_id: esimId, package_id: packageId });
  play.tell(`topped up ${esimId} with ${packageId}: ${placed.id}`);
  const ended = await play.waitForTopup(placed.id);
  play.tell(`${ended.id} is ${ended.status}`);
  return ended.id;
}
