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

  @ApiProperty({ enum: PROVIDER_ESIM_STATUSES, description: '`unknown`: the upstream does not say.' })
  standing!: 'provisioned' | ProviderCancelStatus['cancelStatus'];
}

/** The order's state at the provider, and the actions open to support. */
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

const MAX_NOTE = 500;

export class ReconcileOrderDto {
  @ApiProperty({
    enum: RESOLVE_ORDER_ACTIONS,
    description:
      '`requery`: a worker asks the upstream at once. The others ask it now and end the order. ' +
      'Of a `processing` order `mark_issued` issues what the upstream has, releases the rest, and is 503 while it does ' +
      'not answer; `mark_failed` ends it as failed and releases its money, unless the upstream has eSIMs of it. ' +
      'Of a `canceling` order `mark_issued` means that it was not taken back: it is where it was, with `cancel_failure`; ' +
      '`mark_failed` means that it was: `canceled` and refunded, unless an eSIM is in use. ' +
      'Both are 409 while the upstream is at it, while a worker asks, and for so long after the last call as the ' +
      'upstream may not show what that did; `detail` says which. Where it does not answer, the decision is yours.',
  })
  @IsIn(RESOLVE_ORDER_ACTIONS, { message: `must be one of ${RESOLVE_ORDER_ACTIONS.join(', ')}` })
  action!: ResolveOrderAction;

  @ApiProperty({
    type: String,
    minLength: 1,
    maxLength: MAX_NOTE,
    pattern: LINES_PATTERN,
    description: 'Why; kept in the audit log.',
  })
  @MultiLineText(MAX_NOTE)
  note!: string;
}

export class ReconcileTopupDto {
  @ApiProperty({
    enum: RESOLVE_TOPUP_ACTIONS,
    description:
      '`requery`: a worker asks the upstream at once. `mark_completed`: the eSIM has it, its price is charged. ' +
      '`mark_failed`: releases its money. Both ask the upstream now and are refused by what it says; where it says ' +
      'nothing, your word counts.',
  })
  @IsIn(RESOLVE_TOPUP_ACTIONS, { message: `must be one of ${RESOLVE_TOPUP_ACTIONS.join(', ')}` })
  action!: ResolveTopupAction;

  @ApiProperty({
    type: String,
    minLength: 1,
    maxLength: MAX_NOTE,
    pattern: LINES_PATTERN,
    description: 'Why; kept in the audit log.',
  })
  @MultiLineText(MAX_NOTE)
  note!: string;
}
