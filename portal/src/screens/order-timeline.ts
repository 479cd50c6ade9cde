import type { Esim, OrderWithTimeline, TimelineEntry } from '../api/types.ts';
import { capitalized, money, words } from '../components/format.ts';
import type { IconName } from '../components/icon.tsx';
import type { Tone } from '../components/state.tsx';
import type { Step } from '../components/timeline.tsx';

type Look = readonly [icon: IconName, tone: Tone, title: string];

const LOOKS: Readonly<Record<string, Look>> = {
  accepted: ['orders', 'off', 'Order accepted'],
  provisioned: ['check', 'good', 'eSIM issued'],
  failed: ['bad', 'bad', 'Order failed'],
  installed: ['phone', 'good', 'Installed'],
  profile_changed: ['phone', 'off', 'Profile changed'],
  first_use: ['signal', 'good', 'First use'],
  threshold: ['sim', 'off', 'Data used'],
  usage_level: ['sim', 'off', 'Data used'],
  suspended: ['pause', 'warn', 'Suspended'],
  resumed: ['check', 'good', 'Resumed'],
  revoked: ['off', 'off', 'Revoked'],
  topup_accepted: ['topup', 'off', 'Top-up accepted'],
  topup_completed: ['topup', 'good', 'Top-up completed'],
  topup_failed: ['bad', 'bad', 'Top-up failed'],
  expiring: ['clock', 'warn', 'Expires soon'],
  expired: ['end', 'off', 'Expired'],
  refund_requested: ['coin', 'off', 'Refund requested'],
  refund_approved: ['coin', 'good', 'Refund approved'],
  refund_rejected: ['coin', 'bad', 'Refund rejected'],
  refund_withdrawn: ['coin', 'off', 'Refund request withdrawn'],
  cancel_requested: ['off', 'off', 'Cancellation requested'],
  canceled: ['off', 'off', 'Canceled'],
  webhook_sent: ['send', 'warn', 'Webhook not delivered yet'],
  webhook_delivered: ['send', 'good', 'Webhook delivered'],
  webhook_failed: ['send', 'bad', 'Webhook failed'],
};

/** Shares of used data from which on the traveler soon has none. */
const NEARLY_USED = 80;

function toneOf({ kind, percent }: TimelineEntry, tone: Tone): Tone {
  return (kind === 'threshold' || kind === 'usage_level') && (percent ?? 0) >= NEARLY_USED ? 'warn' : tone;
}

function titleOf({ kind, percent, detail }: TimelineEntry, title: string, order: OrderWithTimeline): string {
  if (kind === 'provisioned' && order.quantity > 1)
    return `${order.quantity_issued} of ${order.quantity} eSIMs issued`;
  if (percent !== null) return `${percent}% used`;
  if (kind === 'profile_changed' && detail) return `Profile ${words(detail)}`;
  if (kind.startsWith('webhook_') && detail) return title.replace('Webhook', `Webhook ${detail}`);
  return title;
}

function textOf({ kind, amount, detail }: TimelineEntry, order: OrderWithTimeline): string | undefined {
  if (kind === 'accepted') return `${money(order.total)} reserved.`;
  if (kind === 'provisioned')
    return `${money(order.unit_price)} charged${order.quantity > 1 ? ' for each eSIM' : ''}.`;
  if (amount)
    return `${money(amount)} ${kind === 'topup_accepted' ? 'reserved' : 'returned to your balance'}.`;
  if (kind.startsWith('webhook_') || kind === 'installed' || kind === 'profile_changed') return undefined;
  if (detail === null) return undefined;
  if (kind === 'expiring') return 'The traveler can be told, or topped up.';
  return `${capitalized(words(detail))}${/[.!?]$/.test(detail) ? '' : '.'}`;
}

/** The life of an order, oldest first. @param esim its only eSIM, whose end is expected */
export function stepsOf(order: OrderWithTimeline, esim?: Esim): Step[] {
  const steps = pastOf(order);
  const end = esim?.expires_at;
  if (steps.length === 0 || !end || Date.parse(end) < Date.now()) return steps;
  return [...steps, { key: 'expires', at: end, icon: 'end', tone: 'off', title: 'Expires', ahead: true }];
}

/** Thresholds that were crossed at once have one time; the lower one comes first. */
function inOrder(timeline: readonly TimelineEntry[]): readonly TimelineEntry[] {
  return timeline.toSorted((a, b) => {
    const isOneMoment = a.at === b.at && a.percent !== null && b.percent !== null;
    return isOneMoment ? a.percent! - b.percent! : 0;
  });
}

function pastOf(order: OrderWithTimeline): Step[] {
  return inOrder(order.timeline).map((entry, at) => {
    const [icon, tone, title] = LOOKS[entry.kind] ?? ['info', 'off', capitalized(words(entry.kind))];
    const text = textOf(entry, order);
    return {
      key: `${at} ${entry.kind}`,
      at: entry.at,
      icon,
      tone: toneOf(entry, tone),
      title: titleOf(entry, title, order),
      ...(text === undefined ? {} : { text }),
    };
  });
}
