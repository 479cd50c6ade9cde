import { ApiProperty } from '@nestjs/swagger';
import type { ProviderCancelStatus } from '../../providers/index.js';
import { refusalOf } from '../allowed-endings.js';
import type { OrderEntity } from '../order.entity.js';
import { RECONCILE_ACTIONS, type ReconcileAction, type UpstreamLook } from '../upstream-word.js';

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
    enum: RECONCILE_ACTIONS,
    isArray: true,
    description:
      'What the answer allows. One may still be refused for being too early, or while a worker asks.',
  })
  actions!: ReconcileAction[];
}

export function toOrderUpstreamResponse({
  order,
  look,
}: {
  readonly order: OrderEntity;
  readonly look: UpstreamLook;
}): OrderUpstreamResponse {
  const isAllowed = (action: ReconcileAction): boolean =>
    action === 'requery' || refusalOf(action, order, look) === null;
  return {
    order_id: order.id,
    status: look.about,
    ...toCounts(look),
    actions: RECONCILE_ACTIONS.filter(isAllowed),
  };
}

function toCounts(
  look: UpstreamLook,
): Pick<OrderUpstreamResponse, 'answered' | 'esims' | 'running' | 'unusable'> {
  if (look.about === 'canceling') {
    const cancelStatuses = look.cancelStatuses ?? [];
    return {
      answered: look.cancelStatuses !== null,
      esims: cancelStatuses.map(({ providerEsimId, cancelStatus }) => ({
        provider_esim_id: providerEsimId,
        standing: cancelStatus,
      })),
      running: cancelStatuses.filter(({ cancelStatus }) => cancelStatus === 'being_canceled').length,
      unusable: 0,
    };
  }
  return {
    answered: look.parts !== null,
    esims: (look.parts?.profiles ?? []).map(({ providerEsimId }) => ({
      provider_esim_id: providerEsimId,
      standing: 'provisioned',
    })),
    running: look.parts?.running ?? 0,
    unusable: look.parts?.unusable ?? 0,
  };
}
