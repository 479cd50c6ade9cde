import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  retainSearchParams,
  type ErrorComponentProps,
} from '@tanstack/react-router';
import type { Mode } from './api/types.ts';
import { ErrorNote, Loading } from './components/feedback.tsx';
import { PageBar, Screen } from './layout/screen.tsx';
import { Shell } from './layout/shell.tsx';

type Search = Record<string, unknown>;

/** The named parameters that the address has; others are dropped. */
function texts<const Name extends string>(...names: Name[]) {
  return (search: Search): { [name in Name]?: string } => {
    const found: { [name in Name]?: string } = {};
    for (const name of names) {
      const value = search[name];
      if (typeof value === 'string' && value !== '') found[name] = value;
    }
    return found;
  };
}

const signedOut = new Set<() => void>();

/** Calls `listener` when the user has signed out. Returns the unsubscribe function. */
export function onSignedOut(listener: () => void): () => void {
  signedOut.add(listener);
  return () => signedOut.delete(listener);
}

const rootRoute = createRootRoute({
  validateSearch: (search: Search): { mode?: Mode } =>
    search['mode'] === 'sandbox' || search['mode'] === 'live' ? { mode: search['mode'] } : {},
  search: { middlewares: [retainSearchParams(['mode'])] },
  // The shell stays mounted for all objects and both modes.
  remountDeps: () => null,
  component: () => (
    <Shell
      onSignedOut={() => {
        for (const listener of signedOut) listener();
      }}
    />
  ),
  notFoundComponent: () => <Screen name="Page not found" lead="Choose a page from the navigation." />,
});

const home = createRoute({
  getParentRoute: () => rootRoute,
  path: '/',
  validateSearch: texts('window'),
  component: lazyRouteComponent(() => import('./screens/home/home.tsx'), 'Home'),
});
const catalogRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/catalog',
  validateSearch: texts('to', 'plan', 'exit_country', 'max_price', 'topups', 'sort', 'all'),
  component: lazyRouteComponent(() => import('./screens/catalog/catalog.tsx'), 'Catalog'),
});
const packageRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/catalog/$packageId',
  component: lazyRouteComponent(() => import('./screens/catalog/package.tsx'), 'PackagePage'),
});
const apiKeys = createRoute({
  getParentRoute: () => rootRoute,
  path: '/developers/api-keys',
  component: lazyRouteComponent(() => import('./screens/api-keys/api-keys.tsx'), 'ApiKeys'),
});
const webhooks = createRoute({
  getParentRoute: () => rootRoute,
  path: '/developers/webhooks',
  component: lazyRouteComponent(() => import('./screens/webhooks/webhooks.tsx'), 'Webhooks'),
});
const endpointRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/developers/webhooks/$endpointId',
  validateSearch: texts(
    'status',
    'event_type',
    'event_id',
    'status_code',
    'outcome',
    'created_after',
    'created_before',
    'delivery',
    'replay',
  ),
  component: lazyRouteComponent(() => import('./screens/endpoint/endpoint.tsx'), 'EndpointPage'),
});
const eventsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/developers/events',
  validateSearch: texts('type'),
  component: lazyRouteComponent(() => import('./screens/events.tsx'), 'Events'),
});
const eventRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/developers/events/$eventId',
  component: lazyRouteComponent(() => import('./screens/event.tsx'), 'EventPage'),
});
const requestsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/developers/requests',
  validateSearch: texts(
    'status',
    'key_id',
    'error_code',
    'method',
    'route',
    'created_after',
    'created_before',
  ),
  component: lazyRouteComponent(() => import('./screens/requests.tsx'), 'Requests'),
});
const requestRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/developers/requests/$requestId',
  component: lazyRouteComponent(() => import('./screens/request.tsx'), 'RequestPage'),
});
const doctorRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/developers/signature-doctor',
  validateSearch: texts('endpoint'),
  component: lazyRouteComponent(() => import('./screens/signature-doctor.tsx'), 'SignatureDoctor'),
});
const ordersRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/orders',
  validateSearch: texts('status', 'reference', 'created_after', 'created_before'),
  component: lazyRouteComponent(() => import('./screens/orders.tsx'), 'Orders'),
});
const orderRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/orders/$orderId',
  component: lazyRouteComponent(() => import('./screens/order.tsx'), 'OrderPage'),
});
const esimsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/esims',
  validateSearch: texts('status', 'iccid', 'order_id', 'label'),
  component: lazyRouteComponent(() => import('./screens/esims.tsx'), 'Esims'),
});
const esimRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/esims/$esimId',
  component: lazyRouteComponent(() => import('./screens/esim.tsx'), 'EsimPage'),
});
const topupsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/top-ups',
  validateSearch: texts('status', 'esim_id', 'reference'),
  component: lazyRouteComponent(() => import('./screens/topups.tsx'), 'Topups'),
});
const topupRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/top-ups/$topupId',
  component: lazyRouteComponent(() => import('./screens/topup.tsx'), 'TopupPage'),
});
const refundsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/refunds',
  validateSearch: texts('status', 'esim_id'),
  component: lazyRouteComponent(() => import('./screens/refunds.tsx'), 'Refunds'),
});
const balance = createRoute({
  getParentRoute: () => rootRoute,
  path: '/balance',
  component: lazyRouteComponent(() => import('./screens/balance.tsx'), 'Balance'),
});
const installPage = createRoute({
  getParentRoute: () => rootRoute,
  path: '/install-page',
  component: lazyRouteComponent(() => import('./screens/brand.tsx'), 'InstallPageBrand'),
});

const routeTree = rootRoute.addChildren([
  home,
  catalogRoute,
  packageRoute,
  apiKeys,
  webhooks,
  endpointRoute,
  eventsRoute,
  eventRoute,
  requestsRoute,
  requestRoute,
  doctorRoute,
  ordersRoute,
  orderRoute,
  esimsRoute,
  esimRoute,
  topupsRoute,
  topupRoute,
  refundsRoute,
  balance,
  installPage,
]);

export const router = createRouter({
  routeTree,
  // Parameters are text: `status_code=500` keeps the form that the API accepts.
  parseSearch: (search) => Object.fromEntries(new URLSearchParams(search)),
  stringifySearch: (search) => {
    const kept = Object.entries(search).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    );
    return kept.length === 0 ? '' : `?${new URLSearchParams(kept).toString()}`;
  },
  // Open dialogs, typed text and shown data belong to one object in one mode: another one starts fresh.
  defaultRemountDeps: ({ params, search }) => [params, search.mode ?? null],
  defaultPreload: 'intent',
  defaultPendingComponent: () => (
    <>
      <PageBar name="" />
      <div className="page">
        <Loading />
      </div>
    </>
  ),
  defaultErrorComponent: ({ error, reset }: ErrorComponentProps) => (
    <div className="page">
      <ErrorNote error={error} retry={reset} />
    </div>
  ),
  scrollRestoration: true,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
