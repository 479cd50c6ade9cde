import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { ApiKeyEntity } from '../api-keys/index.js';
import type { Mode } from '../common/mode.js';
import type { PortalScope } from '../common/scopes.js';
import { OrderEntity } from '../orders/index.js';
import { LedgerTransactionEntity } from '../wallet/index.js';
import type { ShownEndpoint } from '../webhooks/index.js';

/** The steps in their order, each with what a session needs in order to see it. */
const STEPS = {
  first_sandbox_order: { mode: 'sandbox', scope: 'orders:read' },
  endpoint_created: { mode: null, scope: 'webhooks:read' },
  endpoint_received_2xx: { mode: null, scope: 'webhooks:read' },
  live_key_created: { mode: 'live', scope: 'keys:read' },
  wallet_funded: { mode: 'live', scope: 'wallet:read' },
  first_live_order: { mode: 'live', scope: 'orders:read' },
} as const satisfies Readonly<Record<string, { mode: Mode | null; scope: PortalScope }>>;

export type ChecklistStep = keyof typeof STEPS;
export const CHECKLIST_STEPS = Object.keys(STEPS) as readonly ChecklistStep[];

/** Checks the steps from Sandbox to the first Live order; each looks up at most a few rows. */
@Injectable()
export class GoLiveChecklist {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /**
   * @param endpoints the partner's endpoints in both modes
   * @param session steps that it must not see are left out
   */
  async check(
    partnerId: string,
    endpoints: readonly ShownEndpoint[],
    session: { readonly modes: readonly Mode[]; readonly scopes: readonly PortalScope[] },
  ): Promise<readonly { readonly step: ChecklistStep; readonly done: boolean }[]> {
    const shown = CHECKLIST_STEPS.filter((step) => {
      const { mode, scope } = STEPS[step];
      return session.scopes.includes(scope) && (mode === null || session.modes.includes(mode));
    });
    const checked = [];
    for (const step of shown) checked.push({ step, done: await this.isDone(step, partnerId, endpoints) });
    return checked;
  }

  private async isDone(
    step: ChecklistStep,
    partnerId: string,
    endpoints: readonly ShownEndpoint[],
  ): Promise<boolean> {
    const { manager } = this;
    switch (step) {
      case 'first_sandbox_order':
        // Sandbox orders are purged, but a partner with Live orders has passed this step.
        return (await this.hasOrder(partnerId, 'sandbox')) || this.hasOrder(partnerId, 'live');
      case 'endpoint_created':
        return endpoints.length > 0;
      case 'endpoint_received_2xx':
        return endpoints.some(({ figures }) => figures.lastSuccessAt !== null);
      case 'live_key_created':
        return manager.existsBy(ApiKeyEntity, { partnerId, mode: 'live' });
      case 'wallet_funded':
        return manager.existsBy(LedgerTransactionEntity, { partnerId, type: 'deposit' });
      case 'first_live_order':
        return this.hasOrder(partnerId, 'live');
    }
  }

  /** Sorted like the list, because PostgreSQL would otherwise search the whole table for a partner with many orders. */
  private async hasOrder(partnerId: string, mode: Mode): Promise<boolean> {
    const found = await this.manager.find(OrderEntity, {
      select: { id: true },
      where: { partnerId, mode },
      order: { createdAt: 'DESC', id: 'DESC' },
      take: 1,
    });
    return found.length > 0;
  }
}
