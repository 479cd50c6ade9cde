import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Attention } from '../../api/types.ts';
import { causeInWords } from '../../components/causes.ts';
import { counted, money } from '../../components/format.ts';
import { Icon, type IconName } from '../../components/icon.tsx';
import type { Tone } from '../../components/state.tsx';
import { Ago, inWords, Time, useNow } from '../../components/time.tsx';

/** Lists everything that needs somebody, most urgent first. */
export function AttentionList({ items }: { items: readonly Attention[] }) {
  return (
    <section aria-labelledby="attention">
      <div className="section-head">
        <h2 id="attention">Needs attention</h2>
      </div>
      <ul className="attention">
        {items.map((item) => (
          <Item key={`${item.kind} ${item.subject_id}`} item={item} />
        ))}
      </ul>
    </section>
  );
}

type Shown = { tone: Tone; icon: IconName; title: ReactNode; text: ReactNode; link: ReactNode };

function Item({ item }: { item: Attention }) {
  const now = useNow();
  const { tone, icon, title, text, link } = shownOf(item, now);
  return (
    <li data-tone={tone}>
      <Icon name={icon} />
      <p>
        <strong>{title}</strong>
        <br />
        <span className="muted">{text}</span>
      </p>
      {link}
    </li>
  );
}

const hostOf = (url: string | null): string => (url && URL.canParse(url) ? new URL(url).host : (url ?? ''));

function endpointText({ name, cause, count }: Attention, held: boolean): string {
  const why = causeInWords(cause);
  const waiting = counted(count ?? 0, 'delivery', 'deliveries');
  const state = held ? 'held' : 'waiting';
  const backlog = count ? ` ${waiting} ${count === 1 ? 'is' : 'are'} ${state}.` : '';
  return `${hostOf(name)}${why ? `: ${why.charAt(0).toLowerCase()}${why.slice(1)}` : ''}.${backlog}`;
}

const endpointLink = (id: string) => (
  <Link className="button small" to="/developers/webhooks/$endpointId" params={{ endpointId: id }}>
    See how to fix it
  </Link>
);

function shownOf(item: Attention, now: number): Shown {
  const { kind, subject_id: id, since, count } = item;
  switch (kind) {
    case 'endpoint_failing':
      return {
        tone: 'warn',
        icon: 'warn',
        title: (
          <>
            Webhook endpoint failing since <Time at={since} as="short" />
          </>
        ),
        text: endpointText(item, false),
        link: endpointLink(id),
      };
    case 'endpoint_disabled':
      return {
        tone: 'bad',
        icon: 'bad',
        title: (
          <>
            Webhook endpoint disabled since <Time at={since} as="short" />
          </>
        ),
        text: endpointText(item, true),
        link: endpointLink(id),
      };
    case 'low_balance':
      return {
        tone: 'warn',
        icon: 'wallet',
        title: 'The balance is low',
        text: `${item.available ? `${money(item.available)} available. ` : ''}${item.threshold ? `You asked for a warning below ${money(item.threshold)}.` : ''}`,
        link: (
          <Link className="button small" to="/balance">
            See balance
          </Link>
        ),
      };
    case 'key_expiring':
      return {
        tone: 'warn',
        icon: 'key',
        title: `Key ${item.name ? `“${item.name}” ` : ''}expires in ${inWords(Date.parse(item.until ?? since) - now)}`,
        text: (
          <>
            {item.until && (
              <>
                It stops working on <Time at={item.until} as="short" />.
              </>
            )}
          </>
        ),
        link: (
          <Link className="button small" to="/developers/api-keys">
            Rotate key
          </Link>
        ),
      };
    case 'order_needs_review':
      return {
        tone: 'off',
        icon: 'orders',
        title: `${counted(count ?? 1, 'order takes', 'orders take')} longer than usual`,
        text: 'We are looking into it. No action needed.',
        link: (
          <Link className="button small" to="/orders/$orderId" params={{ orderId: id }}>
            See order
          </Link>
        ),
      };
    case 'refund_requested':
      return {
        tone: 'off',
        icon: 'coin',
        title: `${counted(count ?? 1, 'refund request is', 'refund requests are')} waiting for our decision`,
        text: (
          <>
            {(count ?? 1) === 1 ? 'It' : 'The oldest'} was sent <Ago at={since} />. No action needed.
          </>
        ),
        link: (
          <Link className="button small" to="/refunds" search={(last) => ({ ...last, status: 'pending' })}>
            See requests
          </Link>
        ),
      };
    case 'refund_decided':
      return {
        tone: 'off',
        icon: 'coin',
        title: `${counted(count ?? 1, 'refund request was', 'refund requests were')} decided`,
        text: (
          <>
            The latest <Ago at={since} />.
          </>
        ),
        link: (
          <Link className="button small" to="/refunds">
            See requests
          </Link>
        ),
      };
  }
}
