import { ApiProperty } from '@nestjs/swagger';
import type { Money } from '../../common/money.js';
import { MoneyResponse } from '../../infra/http/index.js';
import { type Cause, CAUSES } from '../../webhooks/index.js';
import { ATTENTION_KINDS, type AttentionItem, type AttentionKind } from '../find-attention.js';
import { CHECKLIST_STEPS, type ChecklistStep } from '../go-live-checklist.js';
import {
  type DeliveryStep,
  type OrderFigures,
  type OrderStep,
  OVERVIEW_WINDOWS,
  type OverviewWindow,
  type Series,
  type WalletFigures,
} from '../overview.js';

export const WINDOW_NAMES = Object.keys(OVERVIEW_WINDOWS) as OverviewWindow[];

export class CountStepResponse {
  @ApiProperty({ type: String, format: 'date-time', description: 'Beginning of the hour or day, in UTC.' })
  at!: string;

  @ApiProperty({ type: 'integer', example: 116 })
  count!: number;
}

export class CountSeriesResponse {
  @ApiProperty({ type: () => [CountStepResponse], description: 'Oldest first; the last step has begun.' })
  current!: readonly CountStepResponse[];

  @ApiProperty({ type: () => [CountStepResponse], description: 'The steps before, as many.' })
  previous!: readonly CountStepResponse[];
}

export class CostStepResponse {
  @ApiProperty({ type: String, format: 'date-time', description: 'Beginning of the hour or day, in UTC.' })
  at!: string;

  @ApiProperty({ type: MoneyResponse })
  cost!: MoneyResponse;
}

export class CostSeriesResponse {
  @ApiProperty({ type: () => [CostStepResponse], description: 'Oldest first; the last step has begun.' })
  current!: readonly CostStepResponse[];

  @ApiProperty({ type: () => [CostStepResponse], description: 'The steps before, as many.' })
  previous!: readonly CostStepResponse[];
}

export class DeliveryStepResponse {
  @ApiProperty({ type: String, format: 'date-time', description: 'Beginning of the hour or day, in UTC.' })
  at!: string;

  @ApiProperty({ type: 'integer', example: 230 })
  delivered!: number;

  @ApiProperty({ type: 'integer', example: 1, description: 'Deliveries whose last attempt failed.' })
  failed!: number;
}

export class DeliverySeriesResponse {
  @ApiProperty({ type: () => [DeliveryStepResponse], description: 'Oldest first; the last step has begun.' })
  current!: readonly DeliveryStepResponse[];

  @ApiProperty({ type: () => [DeliveryStepResponse], description: 'The steps before, as many.' })
  previous!: readonly DeliveryStepResponse[];
}

export class BalanceStepResponse {
  @ApiProperty({ type: String, format: 'date-time', description: 'Beginning of the hour or day, in UTC.' })
  at!: string;

  @ApiProperty({ type: MoneyResponse, description: 'The total at its end, including what is reserved.' })
  balance!: MoneyResponse;

  @ApiProperty({ type: MoneyResponse, description: 'The sum of the deposits and adjustments in it.' })
  deposited!: MoneyResponse;
}

export class OverviewWalletResponse {
  @ApiProperty({ type: MoneyResponse })
  available!: MoneyResponse;

  @ApiProperty({ type: MoneyResponse, description: 'Reserved for open orders and top-ups.' })
  reserved!: MoneyResponse;

  @ApiProperty({
    type: MoneyResponse,
    nullable: true,
    description: 'The amount below which the balance counts as low; null if none is set.',
  })
  low_balance!: MoneyResponse | null;

  @ApiProperty({
    type: MoneyResponse,
    description: 'Average spending per day in the last 7 days, without refunds.',
  })
  average_per_day!: MoneyResponse;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    example: 4,
    description: 'Whole days that the available amount lasts at this rate; null without spending.',
  })
  days_left!: number | null;

  @ApiProperty({ type: () => [BalanceStepResponse], description: 'The steps of `current`, oldest first.' })
  history!: readonly BalanceStepResponse[];
}

export class AttentionResponse {
  @ApiProperty({ enum: ATTENTION_KINDS })
  kind!: AttentionKind;

  @ApiProperty({
    type: String,
    example: 'whe_01KAEXAMPLE000000000000000',
    description: 'The endpoint, key, order or refund request (of several the first), or the partner.',
  })
  subject_id!: string;

  @ApiProperty({ type: String, format: 'date-time' })
  since!: string;

  @ApiProperty({ type: String, nullable: true, description: 'URL of an endpoint, or name of a key.' })
  name!: string | null;

  @ApiProperty({ enum: CAUSES, nullable: true, description: 'Why an endpoint fails.' })
  cause!: Cause | null;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    description: "Number of orders or refund requests, or of an endpoint's waiting deliveries.",
  })
  count!: number | null;

  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    description: "When an endpoint's block ends, or a key expires.",
  })
  until!: string | null;

  @ApiProperty({ type: MoneyResponse, nullable: true, description: 'Of a low balance.' })
  available!: MoneyResponse | null;

  @ApiProperty({ type: MoneyResponse, nullable: true, description: 'Of a low balance.' })
  threshold!: MoneyResponse | null;
}

export class ChecklistStepResponse {
  @ApiProperty({ enum: CHECKLIST_STEPS })
  step!: ChecklistStep;

  @ApiProperty({ type: Boolean, example: true })
  done!: boolean;
}

export class OverviewResponse {
  @ApiProperty({ enum: WINDOW_NAMES })
  window!: OverviewWindow;

  @ApiProperty({
    type: CountSeriesResponse,
    nullable: true,
    description: 'Orders by the time of their acceptance. Null without `orders:read`.',
  })
  orders!: CountSeriesResponse | null;

  @ApiProperty({
    type: CostSeriesResponse,
    nullable: true,
    description:
      'Price of the issued eSIMs and completed top-ups, by the time of the acceptance. Later refunds do not reduce it. Null without orders, or without `orders:read`.',
  })
  cost!: CostSeriesResponse | null;

  @ApiProperty({
    type: CountSeriesResponse,
    nullable: true,
    description: 'Those of `orders` that failed. Null without `orders:read`.',
  })
  failed_orders!: CountSeriesResponse | null;

  @ApiProperty({
    type: DeliverySeriesResponse,
    nullable: true,
    description: 'Webhook deliveries by the time of their end. Null without `webhooks:read`.',
  })
  deliveries!: DeliverySeriesResponse | null;

  @ApiProperty({
    type: OverviewWalletResponse,
    nullable: true,
    description: 'Null in Sandbox, without a wallet, or without `wallet:read`.',
  })
  wallet!: OverviewWalletResponse | null;

  @ApiProperty({
    type: () => [AttentionResponse],
    description: 'What the session may see, most urgent first.',
  })
  attention!: readonly AttentionResponse[];

  @ApiProperty({
    type: () => [ChecklistStepResponse],
    description: 'The steps to go live that the session may see, in their order.',
  })
  checklist!: readonly ChecklistStepResponse[];
}

export function toCountSeries(
  { current, previous }: Series<OrderStep>,
  countOf: (step: OrderStep) => number,
): CountSeriesResponse {
  const toStep = (step: OrderStep) => ({ at: step.at.toISOString(), count: countOf(step) });
  return { current: current.map(toStep), previous: previous.map(toStep) };
}

export function toCostSeries({ currency, series }: OrderFigures): CostSeriesResponse | null {
  if (currency === null) return null;
  const toStep = ({ at, cost }: OrderStep) => ({ at: at.toISOString(), cost: { amount: cost, currency } });
  return { current: series.current.map(toStep), previous: series.previous.map(toStep) };
}

export function toDeliverySeries({ current, previous }: Series<DeliveryStep>): DeliverySeriesResponse {
  const toStep = ({ at, delivered, failed }: DeliveryStep) => ({ at: at.toISOString(), delivered, failed });
  return { current: current.map(toStep), previous: previous.map(toStep) };
}

export function toOverviewWallet({ wallet, averagePerDay, history }: WalletFigures): OverviewWalletResponse {
  const { currency, posted, held, lowBalanceAmount } = wallet;
  const money = (amount: number): Money => ({ amount, currency });
  const available = posted - held;
  return {
    available: money(available),
    reserved: money(held),
    low_balance: lowBalanceAmount === null ? null : money(lowBalanceAmount),
    average_per_day: money(averagePerDay),
    days_left: averagePerDay === 0 ? null : Math.max(0, Math.floor(available / averagePerDay)),
    history: history.map(({ at, balance, deposited }) => ({
      at: at.toISOString(),
      balance: money(balance),
      deposited: money(deposited),
    })),
  };
}

export function toAttentionResponse(item: AttentionItem): AttentionResponse {
  return {
    kind: item.kind,
    subject_id: item.subjectId,
    since: item.since.toISOString(),
    name: item.name ?? null,
    cause: item.cause ?? null,
    count: item.count ?? null,
    until: item.until?.toISOString() ?? null,
    available: item.available ?? null,
    threshold: item.threshold ?? null,
  };
}
