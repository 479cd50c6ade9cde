import { Link } from '@tanstack/react-router';
import type { ChecklistStep, Mode } from '../../api/types.ts';
import { Icon } from '../../components/icon.tsx';
import { Meter } from '../../components/meter.tsx';

type Text = { name: string; hint: string; to: string; mode: Mode };

const TEXTS: Record<ChecklistStep['step'], Text> = {
  first_sandbox_order: {
    name: 'Place a Sandbox order',
    hint: 'It costs nothing and is issued in a second.',
    to: '/orders',
    mode: 'sandbox',
  },
  endpoint_created: {
    name: 'Register a webhook endpoint',
    hint: 'We then tell your server what happens to an order.',
    to: '/developers/webhooks',
    mode: 'live',
  },
  endpoint_received_2xx: {
    name: 'Return 2xx to a webhook',
    hint: 'Send a test event, or place an order.',
    to: '/developers/webhooks',
    mode: 'sandbox',
  },
  live_key_created: {
    name: 'Create a Live key',
    hint: 'Live keys order real eSIMs.',
    to: '/developers/api-keys',
    mode: 'live',
  },
  wallet_funded: {
    name: 'Fund your balance',
    hint: 'Live orders are paid from it.',
    to: '/balance',
    mode: 'live',
  },
  first_live_order: {
    name: 'Place a Live order',
    hint: 'Install it on a phone of yours.',
    to: '/orders',
    mode: 'live',
  },
};

/** The steps to go live, which tick themselves. Gone when all are done. */
export function Checklist({ steps }: { steps: readonly ChecklistStep[] }) {
  const done = steps.filter((step) => step.done);
  const todo = steps.filter((step) => !step.done);
  if (todo.length === 0) return null;
  return (
    <section className="card" aria-labelledby="golive">
      <h2 id="golive">
        Going live: {done.length} of {steps.length}
      </h2>
      <Meter share={done.length / steps.length} label={`${done.length} of ${steps.length} steps done`} />
      <ul className="checklist">
        {todo.map(({ step }) => {
          const { name, hint, to, mode } = TEXTS[step];
          return (
            <li key={step} className="todo">
              <Icon name="todo" />
              <Link to={to} search={{ mode }}>
                {name}
              </Link>
              <span />
              <span className="hint">{hint}</span>
            </li>
          );
        })}
        {done.map(({ step }) => (
          <li key={step}>
            <Icon name="ok" />
            <span className="done">
              <span className="hidden">Done: </span>
              {TEXTS[step].name}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
