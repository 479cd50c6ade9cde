import { getRouteApi } from '@tanstack/react-router';
import { useMemo } from 'react';
import { useSession } from '../../api/session.ts';
import type { Endpoint } from '../../api/types.ts';
import { orderCommand } from '../../components/commands.ts';
import { Empty, ErrorNote, Loading } from '../../components/feedback.tsx';
import { LoadMore, Table, type Column } from '../../components/list.tsx';
import { DeliveryDrawer } from './delivery-drawer.tsx';
import { DeliveryFilters } from './delivery-filters.tsx';
import { DeliveryRow } from './delivery-row.tsx';
import { useDeliveryLog } from './use-delivery-log.ts';
import { useKeptPlace } from './use-kept-place.ts';
import { FILTERS, validFilters } from './valid-filters.ts';

const endpointRoute = getRouteApi('/developers/webhooks/$endpointId');

const COLUMNS = [
  'Event',
  'Delivery',
  'Status code',
  ['Latency', 'number'],
  ['Time', 'number'],
] as const satisfies readonly Column[];

/** All deliveries of an endpoint, live. The URL holds the filters and the open row. */
export function DeliveryLog({ endpoint }: { endpoint: Endpoint }) {
  const search = endpointRoute.useSearch();
  const navigate = endpointRoute.useNavigate();
  const filters = useMemo(
    () => validFilters(search).filters,
    FILTERS.map((name) => search[name]),
  );
  const { log, deliveries, isOutdated } = useDeliveryLog(endpoint, filters);
  const frame = useKeptPlace(deliveries);
  const filtered = Object.keys(filters).length > 0;
  const at = deliveries.findIndex(({ id }) => id === search.delivery);
  const open = (id: string) =>
    void navigate({ search: (last) => ({ ...last, delivery: id }), replace: true, resetScroll: false });
  const close = () =>
    void navigate({ search: ({ delivery: _closed, ...others }) => others, resetScroll: false });
  return (
    <section aria-labelledby="delivery-log" className="keeps-place" ref={frame}>
      <DeliveryFilters />
      {(log.isPending || (isOutdated && deliveries.length === 0)) && <Loading lines={8} />}
      {log.isError && <ErrorNote error={log.error} retry={() => void log.refetch()} />}
      {log.isSuccess && !isOutdated && deliveries.length === 0 && (
        <NoDelivery endpoint={endpoint} filtered={filtered} />
      )}
      {deliveries.length > 0 && (
        <Table label="Delivery log" columns={COLUMNS} busy={isOutdated}>
          {deliveries.map((delivery) => (
            <DeliveryRow key={delivery.id} delivery={delivery} isOpen={delivery.id === search.delivery} />
          ))}
        </Table>
      )}
      <LoadMore
        more={log.hasNextPage}
        busy={log.isFetchingNextPage || isOutdated}
        load={() => void log.fetchNextPage()}
      />
      {search.delivery && (
        <DeliveryDrawer
          id={search.delivery}
          endpointId={endpoint.id}
          newer={at > 0 ? deliveries[at - 1]?.id : undefined}
          older={at >= 0 ? deliveries[at + 1]?.id : undefined}
          onOpen={open}
          onClose={close}
        />
      )}
    </section>
  );
}

function NoDelivery({ endpoint, filtered }: { endpoint: Endpoint; filtered: boolean }) {
  const { api_url: apiUrl } = useSession();
  if (filtered)
    return (
      <Empty title="No matching deliveries" icon="search">
        <p>Remove a filter to see more.</p>
      </Empty>
    );
  return (
    <Empty title="No deliveries yet" icon="send" command={orderCommand(apiUrl, endpoint.mode)}>
      <p>Use “Send test event” to send one now, or place an order to see real events:</p>
    </Empty>
  );
}
