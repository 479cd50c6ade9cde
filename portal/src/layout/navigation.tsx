import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { overviewQuery } from '../api/queries.ts';
import { useSession } from '../api/session.ts';
import type { Scope } from '../api/types.ts';
import { Icon, type IconName } from '../components/icon.tsx';
import { useMode } from './use-mode.ts';

type Entry = { to: string; name: string; scope: Scope; icon: IconName };

const BUSINESS = [
  { to: '/catalog', name: 'Catalog', scope: 'catalog:read', icon: 'catalog' },
  { to: '/orders', name: 'Orders', scope: 'orders:read', icon: 'orders' },
  { to: '/esims', name: 'eSIMs', scope: 'orders:read', icon: 'sim' },
  { to: '/top-ups', name: 'Top-ups', scope: 'orders:read', icon: 'topup' },
  { to: '/refunds', name: 'Refunds', scope: 'orders:read', icon: 'coin' },
  { to: '/balance', name: 'Balance', scope: 'wallet:read', icon: 'wallet' },
  { to: '/install-page', name: 'Install Page', scope: 'brand:write', icon: 'link' },
] as const satisfies readonly Entry[];

const DEVELOPERS = [
  { to: '/developers/api-keys', name: 'API Keys', scope: 'keys:read', icon: 'key' },
  { to: '/developers/webhooks', name: 'Webhooks', scope: 'webhooks:read', icon: 'webhook' },
  { to: '/developers/events', name: 'Events', scope: 'webhooks:read', icon: 'events' },
  { to: '/developers/requests', name: 'Requests', scope: 'requests:read', icon: 'requests' },
  { to: '/developers/signature-doctor', name: 'Signature Doctor', scope: 'webhooks:read', icon: 'doctor' },
] as const satisfies readonly Entry[];

const GROUPS = [
  { name: 'Business', entries: BUSINESS },
  { name: 'Developers', entries: DEVELOPERS },
] as const;

/** Pages outside this program, so they open in a tab of their own. */
const DOCUMENTS = [
  ['/docs/guides', 'Guides'],
  ['/docs/reference', 'API Reference'],
] as const;

export const SCREENS = [...BUSINESS, ...DEVELOPERS];

/** The screens that the session may see, in the order of the navigation. */
export function useScreens(): readonly (typeof SCREENS)[number][] {
  const scopes: readonly Scope[] = useSession().scopes;
  return SCREENS.filter(({ scope }) => scopes.includes(scope));
}

/** Marks the webhooks while Home knows of an endpoint that fails. */
function Trouble() {
  const { data } = useQuery({ ...overviewQuery(useMode(), '7d'), enabled: false });
  const fails = data?.attention.some(
    ({ kind }) => kind === 'endpoint_failing' || kind === 'endpoint_disabled',
  );
  if (!fails) return null;
  return (
    <span className="count" title="An endpoint is failing">
      <Icon name="warn" />
      <span className="hidden">, an endpoint is failing</span>
    </span>
  );
}

/** Shows only the screens that the session may see. */
export function Navigation({ onFollow }: { onFollow: () => void }) {
  const allowed = useScreens();
  const groups = GROUPS.map(({ name, entries }) => {
    const shown = entries.filter((entry) => allowed.includes(entry));
    if (shown.length === 0) return null;
    const id = `navigation-${name.toLowerCase()}`;
    return (
      <nav key={name} aria-labelledby={id}>
        <h2 id={id}>{name}</h2>
        <ul>
          {shown.map((entry) => (
            <li key={entry.to}>
              <Link to={entry.to} onClick={onFollow}>
                <Icon name={entry.icon} />
                {entry.name}
                {entry.to === '/developers/webhooks' && <Trouble />}
              </Link>
            </li>
          ))}
          {name === 'Developers' &&
            DOCUMENTS.map(([address, title]) => (
              <li key={address}>
                <a href={address} target="_blank" rel="noreferrer">
                  <Icon name="book" />
                  {title}
                  <span className="hidden"> (new tab)</span>
                </a>
              </li>
            ))}
        </ul>
      </nav>
    );
  });
  return (
    <>
      <nav aria-label="Start">
        <ul>
          <li>
            <Link to="/" activeOptions={{ exact: true, includeSearch: false }} onClick={onFollow}>
              <Icon name="home" />
              Home
            </Link>
          </li>
        </ul>
      </nav>
      {groups}
    </>
  );
}
