import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { Callout } from '../../components/callout.tsx';
import { TimeFilters, TypedFilter } from '../../components/filters.tsx';
import { Pick } from '../../components/form.tsx';
import { capitalized, words } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import {
  EVENT_ID,
  OUTCOMES,
  STATUS_CODE,
  STATUSES,
  TYPES,
  validFilters,
  type Filter,
} from './valid-filters.ts';

const endpointRoute = getRouteApi('/developers/webhooks/$endpointId');

const any = ['', 'Any'] as const;
const inWords = (values: readonly string[]) => [
  any,
  ...values.map((value) => [value, capitalized(value)] as const),
];
const asTheyAre = (values: readonly string[]) => [any, ...values.map((value) => [value, value] as const)];

/** The heading of the log with its filters, which are in the address. */
export function DeliveryFilters() {
  const { filters, ignored } = validFilters(endpointRoute.useSearch());
  const navigate = endpointRoute.useNavigate();
  const set = (name: string, value: string) =>
    void navigate({
      search: ({ [name as Filter]: _before, ...others }) =>
        value === '' ? others : { ...others, [name]: value },
      replace: true,
      resetScroll: false,
    });
  const clear = () =>
    void navigate({ search: ({ mode }) => (mode ? { mode } : {}), replace: true, resetScroll: false });
  const active = Object.keys(filters).length;
  // Stay open after the user removes the last filter.
  const [open, setOpen] = useState(active > 0);
  return (
    <>
      <div className="section-head">
        <h2 id="delivery-log">Delivery log</h2>
        <button
          type="button"
          className="button small"
          aria-expanded={open}
          aria-controls="delivery-filters"
          onClick={() => setOpen(!open)}
        >
          <Icon name="filter" />
          Filters{active > 0 ? ` (${active})` : ''}
        </button>
      </div>
      <div id="delivery-filters" className="filters" role="search" aria-label="Filters" hidden={!open}>
        <Pick
          label="Delivery status"
          value={filters.status ?? ''}
          onChange={(value) => set('status', value)}
          options={inWords(STATUSES)}
        />
        <Pick
          label="Event type"
          value={filters.event_type ?? ''}
          onChange={(value) => set('event_type', value)}
          options={asTheyAre(TYPES)}
        />
        <Pick
          label="Last outcome"
          value={filters.outcome ?? ''}
          onChange={(value) => set('outcome', value)}
          options={inWords(OUTCOMES)}
        />
        <TypedFilter
          label="Last status code"
          placeholder="any"
          value={filters.status_code ?? ''}
          onRest={(value) => set('status_code', value)}
          isWhole={(text) => STATUS_CODE.test(text)}
        />
        <TypedFilter
          label="Event id"
          placeholder="evt_…"
          value={filters.event_id ?? ''}
          onRest={(value) => set('event_id', value)}
          isWhole={(text) => EVENT_ID.test(text)}
        />
        <TimeFilters search={filters} set={set} />
        <button
          type="button"
          className="button small quiet"
          disabled={active + ignored.length === 0}
          onClick={clear}
        >
          Clear filters
        </button>
      </div>
      {ignored.map(({ name, value }) => (
        <Callout key={name} tone="warn" role="status">
          <p>
            “{value}” is not a valid value for {words(name)}, so this filter is ignored.
          </p>
        </Callout>
      ))}
    </>
  );
}
