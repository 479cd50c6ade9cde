import { newId } from '../../src/common/ids.js';
import type { Mode } from '../../src/common/mode.js';
import { EventRecorder, type NewEvent } from '../../src/events/index.js';
import { Transactions, type Tx } from '../../src/infra/database/index.js';
import type {
  WebhookDeliveryResponse,
  WebhookDeliveryWithAttemptsResponse,
  WebhookEndpointResponse,
} from '../../src/webhooks/index.js';
import {
  eventually,
  PATIENCE_MS,
  startReceiver,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';

export interface RegisteredEndpoint {
  readonly id: string;
  readonly secret: string;
  /** `/internal/v1/partners/{pid}/webhook-endpoints/{id}` */
  readonly path: string;
}

export async function registerEndpoint(
  service: TestService,
  partnerId: string,
  fields: {
    url: string;
    mode?: Mode;
    event_types?: string[];
    usage_levels?: number[];
    signature_schemes?: readonly string[];
  },
): Promise<RegisteredEndpoint> {
  const collection = `/internal/v1/partners/${partnerId}/webhook-endpoints`;
  const answer = await service.admin.post(collection, { mode: 'sandbox', ...fields });
  if (answer.status !== 201) throw new Error(`endpoint not registered: ${answer.status} ${answer.text}`);
  const { id, secret } = answer.body.data as { id: string; secret: string };
  return { id, secret, path: `${collection}/${id}` };
}

/** The admin API's data of a delivery, including its attempts. */
export async function getDelivery(
  service: TestService,
  id: string,
): Promise<WebhookDeliveryWithAttemptsResponse> {
  const answer = await service.admin.get(`/internal/v1/deliveries/${id}`);
  return answer.body.data as WebhookDeliveryWithAttemptsResponse;
}

export async function listDeliveries(
  service: TestService,
  endpoint: RegisteredEndpoint,
  query = '',
): Promise<WebhookDeliveryResponse[]> {
  const answer = await service.admin.get(`${endpoint.path}/deliveries?limit=100${query}`);
  if (answer.status !== 200) throw new Error(answer.text);
  return answer.body.data as WebhookDeliveryResponse[];
}

/** Waits until the only delivery of the endpoint satisfies `test`, and returns it with its attempts. */
export async function deliveryThat(
  service: TestService,
  endpoint: RegisteredEndpoint,
  what: string,
  test: (delivery: WebhookDeliveryWithAttemptsResponse) => boolean,
  withinMs = PATIENCE_MS,
): Promise<WebhookDeliveryWithAttemptsResponse> {
  return eventually(
    `a delivery that ${what}`,
    async () => {
      for (const { id } of await listDeliveries(service, endpoint)) {
        const delivery = await getDelivery(service, id);
        if (test(delivery)) return delivery;
      }
      return null;
    },
    withinMs,
  );
}

export interface EventFields {
  readonly partnerId: string;
  readonly mode?: Mode;
  readonly type?: 'esim.activated' | 'esim.expired';
  readonly iccid?: string;
}

function toNewEvent({ partnerId, mode = 'sandbox', type = 'esim.activated', iccid }: EventFields): NewEvent {
  const data = { esim_id: newId('esim'), order_id: newId('ord'), iccid: iccid ?? '8910000000000000001' };
  const common = { partnerId, mode, happenedAt: new Date() };
  return type === 'esim.activated'
    ? { ...common, type, data }
    : { ...common, type, data: { ...data, reason: 'validity_ended', version: 3 } };
}

/** Records events in one transaction, like any feature. `also` runs in it after them. */
export async function recordEvents(
  service: TestService,
  events: readonly EventFields[],
  also?: (tx: Tx) => Promise<void>,
): Promise<void> {
  const app = service.process.admin!.nest;
  const recorder = app.get(EventRecorder, { strict: false });
  await app.get(Transactions, { strict: false }).run(async (tx) => {
    await recorder.record(tx, events.map(toNewEvent));
    await also?.(tx);
  });
}

export async function recordEvent(service: TestService, fields: EventFields): Promise<void> {
  await recordEvents(service, [fields]);
}

/** Settings that shorten the documented schedule to six attempts within about a second. */
export const FAST = {
  WEBHOOK_TIMEOUT_MS: '20000',
  WEBHOOK_RETRY_DELAYS_MS: '60,60,60,60,60',
  WEBHOOK_BLOCK_MS: '700',
} as const;

export async function endpointState(
  service: TestService,
  endpoint: RegisteredEndpoint,
): Promise<WebhookEndpointResponse> {
  return (await service.admin.get(endpoint.path)).body.data as WebhookEndpointResponse;
}

const receivers: TestReceiver[] = [];

/** Responds with these statuses in order, and then with the last one. */
export async function receiverThatAnswers(...statuses: number[]): Promise<TestReceiver> {
  const receiver = await startReceiver();
  receivers.push(receiver);
  receiver.answer = (nth, _webhook, response) => {
    response.writeHead(statuses[Math.min(nth, statuses.length - 1)] ?? 200).end(`answer ${nth}`);
  };
  return receiver;
}

/** Closes the receivers of the test. For `afterEach`. */
export async function closeReceivers(): Promise<void> {
  await Promise.all(receivers.splice(0).map((receiver) => receiver.close()));
}
