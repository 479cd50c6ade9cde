import { ApiProperty } from '@nestjs/swagger';
import type { OrderEntity } from '../../orders/index.js';
import type { ProviderCancelStatus } from '../../providers/index.js';
import {
  orderRefusal,
  type ProviderSnapshot,
  RESOLVE_ORDER_ACTIONS,
  type ResolveOrderAction,
} from '../resolution-rules.js';

const STANDINGS = ['provisioned', 'unused', 'in_use', 'being_canceled', 'canceled', 'unknown'] as const;

/** An eSIM under the provider's own id. */
export class UpstreamEsimResponse {
  @ApiProperty({ type: String, description: "The wholesaler's id of the eSIM." })
  provider_esim_id!: string;

  @ApiProperty({ enum: STANDINGS, description: '`unknown`: the upstream does not say.' })
  standing!: 'provisioned' | ProviderCancelStatus['cancelStatus'];
}

/** What the provider shows of an order now, and what support can do with it. */
export class OrderUpstreamResponse {
  @ApiProperty({ type: String, example: 'ord_01KAEXAMPLE0000000000000000' })
  order_id!: string;

  @ApiProperty({ enum: ['processing', 'canceling'] })
  status!: 'processing' | 'canceling';

  @ApiProperty({ type: 'boolean', description: 'Whether the upstream answered.' })
  answered!: boolean;

  @ApiProperty({ type: [UpstreamEsimResponse], description: 'Those that the upstream can name.' })
  esims!: UpstreamEsimResponse[];

  @ApiProperty({ type: 'integer', description: 'eSIMs of the order that the upstream is at.' })
  running!: number;

  @ApiProperty({ type: 'integer', description: 'eSIMs that are sold, but not described in a usable form.' })
  unusable!: number;

  @ApiProperty({
    enum: RESOLVE_ORDER_ACTIONS,
    isArray: true,
    description:
      'What the answer allows. One may still be refused for being too early, or while a worker asks.',
  })
  actions!: ResolveOrderAction[];
}

export function toOrderUpstreamResponse({
  order,
  snapshot,
}: {
  readonly order: OrderEntity;
  readonly snapshot: ProviderSnapshot;
}): OrderUpstreamResponse {
  const isAllowed = (action: ResolveOrderAction): boolean =>
    action === 'requery' || orderRefusal(action, order, snapshot) === null;
  return {
    order_id: order.id,
    status: snapshot.orderStatus,
    ...toCounts(snapshot),
    actions: RESOLVE_ORDER_ACTIONS.filter(isAllowed),
  };
}

function toCounts(
  snapshot: ProviderSnapshot,
): Pick<OrderUpstreamResponse, 'answered' | 'esims' | 'running' | 'unusable'> {
  if (snapshot.orderStatus === 'canceling') {
    const cancelStatuses = snapshot.cancelStatuses ?? [];
    return {
      answered: snapshot.cancelStatuses !== null,
      esims: cancelStatuses.map(({ providerEsimId, cancelStatus }) => ({
        provider_esim_id: providerEsimId,
        standing: cancelStatus,
      })),
      running: cancelStatuses.filter(({ cancelStatus }) => cancelStatus === 'being_canceled').length,
      unusable: 0,
    };
  }
  return {
    answered: snapshot.parts !== null,
    esims: (snapshot.parts?.profiles ?? []).map(({ providerEsimId }) => ({
      provider_esim_id: providerEsimId,
      standing: 'provisioned',
    })),
    running: snapshot.parts?.running ?? 0,
    unusable: snapshot.parts?.unusable ?? 0,
  };
}
