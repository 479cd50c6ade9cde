import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { ApiAnswer } from '../harness/index.js';
import { FAULTS } from './faults.js';
import type { LiveBuyer, LiveService } from './live-service.js';
import type { Scenario, Step } from './scenario.js';

/** Long enough for an undisturbed order. */
const AWAIT_MS = 3_000;
const OPEN = ['pending', 'processing', 'canceling'];

interface PlacedOrder {
  readonly id: string;
  readonly buyer: LiveBuyer;
}

/** Plays one scenario with separate partners. Every API response must be one that the step allows. */
export class ScenarioPlayer {
  private buyers: LiveBuyer[] = [];
  private readonly orders: PlacedOrder[] = [];
  private readonly done: Record<string, number> = {};
  private references = 0;

  constructor(
    private readonly service: LiveService,
    /** Maximum wait for an order, in milliseconds. */
    private readonly awaitMs = AWAIT_MS,
  ) {}

  get partnerIds(): readonly string[] {
    return this.buyers.map(({ id }) => id);
  }

  /** How often each kind of step had an effect. */
  get effects(): Readonly<Record<string, number>> {
    return this.done;
  }

  async play({ buyers, steps }: Scenario): Promise<void> {
    this.buyers = await Promise.all(Array.from({ length: buyers }, () => this.service.newBuyer()));
    for (const step of steps) await this.perform(step);
  }

  private async perform(step: Step): Promise<void> {
    switch (step.do) {
      case 'deposit':
        return this.move('deposits', this.buyer(step.buyer), step.amount, [201]);
      case 'adjust':
        return this.move('adjustments', this.buyer(step.buyer), step.amount, [201, 409]);
      case 'order':
        return this.order(step);
      case 'cancel':
        if (step.later) await this.awaitEnd(this.placed(step.nth));
        return this.cancel(this.placed(step.nth));
      case 'await':
        return this.awaitEnd(this.placed(step.nth));
      case 'topup':
        if (step.later) await this.awaitEnd(this.placed(step.nth));
        return this.topUp(this.placed(step.nth));
      case 'support':
        return this.support(this.placed(step.nth), step.action);
      case 'fault':
        return this.service.spoil(FAULTS[step.name]!);
      case 'calm':
        return this.service.calm();
      case 'pause':
        return void (await sleep(step.ms));
      case 'worker':
        // The end of the scenario waits for the restart.
        void this.service.workers[step.nth]!.end(step.how);
        return;
    }
  }

  private async move(
    kind: 'deposits' | 'adjustments',
    { id }: LiveBuyer,
    amount: number,
    allowed: readonly number[],
  ): Promise<void> {
    this.references += 1;
    const body = {
      amount: { amount, currency: 'USD' },
      reference: `${kind}-${this.references}`,
      ...(kind === 'adjustments' ? { note: 'a correction' } : {}),
    };
    this.note(
      kind,
      await this.service.admin.post(`/internal/v1/partners/${id}/wallet/${kind}`, body),
      allowed,
    );
  }

  private async order({ buyer, item, quantity, days, times }: Step & { do: 'order' }): Promise<void> {
    const by = this.buyer(buyer);
    const { packages } = this.service;
    const id = packages[item % packages.length]!;
    const body = { package_id: id, quantity, ...(id.endsWith('DAILY') ? { days } : {}) };
    const answers = await Promise.all(Array.from({ length: times }, () => by.api.post('/v1/orders', body)));
    for (const answer of answers) {
      this.note('orders', answer, [202, 402]);
      if (answer.status === 202) this.orders.push({ id: answer.body.data.id as string, buyer: by });
    }
  }

  private async cancel(order: PlacedOrder | null): Promise<void> {
    if (order)
      this.note('cancels', await order.buyer.api.post(`/v1/orders/${order.id}/cancel`), [200, 202, 409]);
  }

  private async topUp(order: PlacedOrder | null): Promise<void> {
    if (!order) return;
    const { api } = order.buyer;
    const esims = (await api.get(`/v1/orders/${order.id}`)).body.data.esims as { esim_id: string }[];
    const esim = esims[0]?.esim_id;
    if (esim === undefined) return;
    const offered = (await api.get(`/v1/esims/${esim}/topup-packages`)).body.data as {
      id: string;
      plan: { days: object | null };
    }[];
    // A canceled eSIM has no top-up packages.
    if (!offered[0]) return;
    const [{ id, plan }] = offered;
    const body = { esim_id: esim, package_id: id, ...(plan.days ? { days: 3 } : {}) };
    const answer = await api.post('/v1/topups', body);
    this.note('topups', answer, [202, 402, 409]);
  }

  private async support(order: PlacedOrder | null, action: string): Promise<void> {
    if (!order) return;
    const body = { action, note: 'a scenario' };
    const answer = await this.service.admin.post(`/internal/v1/orders/${order.id}/reconcile`, body);
    this.note(action, answer, [200, 409, 503]);
  }

  private async awaitEnd(order: PlacedOrder | null): Promise<void> {
    if (!order) return;
    const deadline = performance.now() + this.awaitMs;
    while (performance.now() < deadline) {
      const { data } = (await order.buyer.api.get(`/v1/orders/${order.id}`)).body;
      if (!OPEN.includes(data.status as string)) return;
      await sleep(50);
    }
  }

  private note(what: string, { status, text }: ApiAnswer, allowed: readonly number[]): void {
    expect(allowed, `${what}: ${status} ${text}`).toContain(status);
    if (status < 300) this.done[what] = (this.done[what] ?? 0) + 1;
  }

  private buyer(n: number): LiveBuyer {
    return this.buyers[n % this.buyers.length]!;
  }

  private placed(n: number): PlacedOrder | null {
    return this.orders[n % Math.max(1, this.orders.length)] ?? null;
  }
}
