import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/index.js';
import { ORDER_STATUSES, statusesBefore } from '../../src/orders/order.js';
import { DELIVERY_STATUSES } from '../../src/webhooks/delivery.js';
import { afterExhausted, type EndpointState, maxAttempts } from '../../src/webhooks/delivery-rules.js';
import { ENDPOINT_STATUSES } from '../../src/webhooks/webhook-endpoint.entity.js';
import { testEnvironment } from '../harness/settings.js';
import { Page } from './page.js';

const page = new Page('docs/how-it-works.md');
/** What nobody has set: the numbers of the document (D36). */
const RULES = loadConfig(testEnvironment('postgres://127.0.0.1/none')).webhooks;
const NUMBERS = ['no', 'one', 'two', 'three', 'four', 'five', 'six'];

interface Arrow {
  readonly from: string;
  readonly to: string;
  readonly label: string;
}

/** The arrows between states, without those that begin or end it all. */
function arrows(heading: string): readonly Arrow[] {
  const lines = [...page.code(heading, 'mermaid').matchAll(/^ +(\S+) --> ([^\s:]+)(?:: (.*))?$/gm)];
  return lines
    .map(([, from, to, label]) => ({ from: from!, to: to!, label: label ?? '' }))
    .filter(({ from, to }) => from !== '[*]' && to !== '[*]');
}

const states = (drawn: readonly Arrow[]): readonly string[] =>
  [...new Set(drawn.flatMap(({ from, to }) => [from, to]))].sort();

describe('the drawings of how it works', () => {
  it('have every way of an order from one status to the next, and no other', () => {
    const drawn = arrows('## The life of an order').map(({ from, to }) => `${from} to ${to}`);
    const possible = ORDER_STATUSES.flatMap((to) => statusesBefore(to).map((from) => `${from} to ${to}`));
    expect([...drawn].sort()).toEqual(possible.sort());
  });

  it('have every status of a delivery, with the numbers of the document', () => {
    const drawn = arrows('## The life of a delivery');
    expect(states(drawn)).toEqual([...DELIVERY_STATUSES].sort());
    const labels = drawn.map(({ label }) => label);
    const delays = RULES.retryDelaysMs.map((ms) => `${ms / 1_000} s`).join(', ');
    expect(labels).toContain(`retried after ${delays}`);
    expect(labels).toContain(`2xx within ${RULES.timeoutMs / 1_000} s`);
    expect(labels.join()).toContain(`${NUMBERS[maxAttempts(RULES)]} attempts failed`);
  });

  it('have every status of an endpoint, with the numbers of the document', () => {
    const drawn = arrows('## The life of an endpoint');
    expect(states(drawn)).toEqual([...ENDPOINT_STATUSES].sort());
    const labels = drawn.map(({ label }) => label).join();
    expect(labels).toContain(`after ${RULES.blockMs / 1_000} s`);
    expect(labels).toContain(`the ${RULES.blocksBeforeDisable}th in a row`);
  });

  it('have what a block makes of an endpoint, also of one that is blocked', () => {
    const drawn = arrows('## The life of an endpoint');
    const nameOf = ({ enabled, blocked }: EndpointState): string =>
      enabled ? (blocked ? 'blocked' : 'enabled') : 'disabled';
    const byBlocks = [true, false].flatMap((blocked) =>
      [0, RULES.blocksBeforeDisable - 1].map((consecutiveBlocks) => {
        const before = { enabled: true, deleted: false, blocked, consecutiveBlocks } as EndpointState;
        return `${nameOf(before)} to ${nameOf(afterExhausted(RULES, before))}`;
      }),
    );
    const drawnByBlocks = drawn.filter(({ label }) => /block|failed/.test(label));
    const changes = [...new Set(byBlocks)].filter((change) => !/^(\w+) to \1$/.test(change));
    expect(drawnByBlocks.map(({ from, to }) => `${from} to ${to}`).sort()).toEqual(changes.sort());
  });

  it('have every role at its port', () => {
    const config = loadConfig(
      testEnvironment('postgres://localhost/x', {
        PORT: '',
        ADMIN_PORT: '',
        PORTAL_PORT: '',
        CALLBACK_PORT: '',
      }),
    );
    const drawing = page.code('## The system', 'mermaid');
    const { partnerApi, adminApi, portal, callbacks } = config;
    for (const place of [
      `api :${partnerApi.port}`,
      `admin :${adminApi.port}`,
      `portal :${portal.listen.port}`,
    ])
      expect(drawing).toContain(place);
    expect(drawing).toContain(`callbacks :${callbacks.port}`);
  });
});
