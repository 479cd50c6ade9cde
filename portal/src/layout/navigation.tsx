import { Link } from '@tanstack/react-router';
import { useSession } from '../api/session.ts';
import type { Scope } from '../api/types.ts';

type Entry = { to: string; name: string; scope: Scope };

const DEVELOPERS = [
  { to: '/developers/api-keys', name: 'API Keys', scope: 'keys:read' },
  { to: '/developers/webhooks', name: 'Webhooks', scope: 'webhooks:read' },
  { to: '/developers/events', name: 'Events', scope: 'webhooks:read' },
  { to: '/developers/requests', name: 'Requests', scope: 'requests:read' },
  { to: '/developers/signature-doctor', name: 'Signature doctor', scope: 'webhooks:read' },
] as const satisfies readonly Entry[];

const BUSINESS = [
  { to: '/orders', name: 'Orders', scope: 'orders:read' },
  { to: '/esims', name: 'eSIMs', scope: 'orders:read' },
  { to: '/top-ups', name: 'Top-ups', scope: 'orders:read' },
  { to: '/refunds', name: 'Refunds', scope: 'orders:read' },
  { to: '/balance', name: 'Balance', scope: 'wallet:read' },
] as const satisfies readonly Entry[];

export const SCREENS = [...DEVELOPERS, ...BUSINESS];

/** Shows only the screens that the session may see. */
export function Navigation({ onFollow }: { onFollow: () => void }) {
  const { scopes } = useSession();
  const groups = [
    { name: 'Developers', entries: DEVELOPERS },
    { name: 'Business', entries: BUSINESS },
  ];
  return (
    <>
      {groups.map(({ name, entries }) => {
        const allowed = entries.filter(({ scope }) => scopes.includes(scope));
        if (allowed.length === 0) return null;
        const id = `navigation-${name.toLowerCase()}`;
        return (
          <nav key={name} aria-labelledby={id}>
            <h2 id={id}>{name}</h2>
            <ul>
              {allowed.map((entry) => (
                <li key={entry.to}>
                  <Link to={entry.to} onClick={onFollow}>
                    {entry.name}
                  </Link>
                </li>
              ))}
              {name === 'Developers' && (
                <li>
                  <a href="/reference" target="_blank" rel="noreferrer">
                    API reference<span className="visually-hidden"> (new tab)</span>
                  </a>
                </li>
              )}
            </ul>
          </nav>
        );
      })}
    </>
  );
}
