import { ApiProperty } from '@nestjs/swagger';
import { IsIn } from 'class-validator';
import { LINES_PATTERN } from '../../common/plain-text.js';
import { MultiLineText } from '../../infra/http/index.js';
import type { OrderEntity } from '../../orders/index.js';
import type { ProviderCancelStatus } from '../../providers/index.js';
import {
  orderRefusal,
  type ProviderSnapshot,
  RESOLVE_ORDER_ACTIONS,
  RESOLVE_TOPUP_ACTIONS,
  type ResolveOrderAction,
  type ResolveTopupAction,
} from '../resolution-rules.js';

const PROVIDER_ESIM_STATUSES = [
  'provisioned',
  'unused',
  'in_use',
  'being_canceled',
  'canceled',
  'unknown',
] as const;

/** An eSIM under the provider's own id. */
export class UpstreamEsimResponse {
  @ApiProperty({ type: String, description: "The wholesaler's id of the eSIM." })
  provider_esim_id!: string;

  @ApiProperty({ enum: PROVIDER_ESIM_STATUSES, description: '`unknown`: the wholesaler does not report it.' })
  standing!: 'provisioned' | ProviderCancelStatus['cancelStatus'];
}

/** The order's state at the provider, and the actions open to support. */
export class OrderUpstreamResponse {
  @ApiProperty({ type: String, example: 'ord_01KAEXAMPLE0000000000000000' })
  order_id!: string;

  @ApiProperty({ enum: ['processing', 'canceling'] })
  status!: 'processing' | 'canceling';

  @ApiProperty({ type: 'boolean', description: 'Whether the wholesaler responded.' })
  answered!: boolean;

  @ApiProperty({ type: [UpstreamEsimResponse], description: 'The eSIMs that the wholesaler reports.' })
  esims!: UpstreamEsimResponse[];

  @ApiProperty({ type: 'integer', description: 'Number of eSIMs that the wholesaler is still provisioning.' })
  running!: number;

  @ApiProperty({ type: 'integer', description: 'Number of sold eSIMs whose data is unusable.' })
  unusable!: number;

  @ApiProperty({
    enum: RESOLVE_ORDER_ACTIONS,
    isArray: true,
    description:
      'The actions that the response of the wholesaler allows. An action may still be rejected if it is too early, or while a worker queries the wholesaler.',
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

const MAX_NOTE = 500;

export class ReconcileOrderDto {
  @ApiProperty({
    enum: RESOLVE_ORDER_ACTIONS,
    description:
      '`requery`: a worker queries the wholesaler immediately. The other actions query it now and end the ' +
      'order. For a `processing` order, `mark_issued` issues what the wholesaler has, releases the rest, ' +
      'and gets 503 while the wholesaler does not respond. `mark_failed` ends the order as failed and ' +
      'releases its money, unless the wholesaler has eSIMs for it. For a `canceling` order, `mark_issued` ' +
      'means that it was not canceled: it returns to its earlier status, with `cancel_failure`. ' +
      '`mark_failed` means that it was canceled: it becomes `canceled` and is refunded, unless an eSIM is ' +
      'in use. Both get 409 while the wholesaler is working on the order, while a worker queries it, and ' +
      'for a time after the last call in which the wholesaler may not show the result yet; `detail` says ' +
      'which. If the wholesaler does not respond, your decision applies.',
  })
  @IsIn(RESOLVE_ORDER_ACTIONS, { message: `must be one of ${RESOLVE_ORDER_ACTIONS.join(', ')}` })
  action!: ResolveOrderAction;

  @ApiProperty({
    type: String,
    minLength: 1,
    maxLength: MAX_NOTE,
    pattern: LINES_PATTERN,
    description: 'The reason, for the audit log.',
  })
  @MultiLineText(MAX_NOTE)
  note!: string;
}

export class ReconcileTopupDto {
  @ApiProperty({
    enum: RESOLVE_TOPUP_ACTIONS,
    description:
      '`requery`: a worker queries the wholesaler immediately. `mark_completed`: the eSIM has the top-up, ' +
      'and its price is charged. `mark_failed`: releases its money. Both query the wholesaler now and are ' +
      'rejected if its response contradicts them. If it does not respond, your decision applies.',
  })
  @IsIn(RESOLVE_TOPUP_ACTIONS, { message: `must be one of ${RESOLVE_TOPUP_ACTIONS.join(', ')}` })
  action!: ResolveTopupAction;

  @ApiProperty({
    type: String,
    minLength: 1,
    maxLength: MAX_NOTE,
    pattern: LINES_PATTERN,
    description: 'The reason, for the audit log.',
  })
  @MultiLineText(MAX_NOTE)
  note!: string;
}
