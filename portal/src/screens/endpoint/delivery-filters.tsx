import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { TypedFilter } from '../../components/filters.tsx';
import { SelectField } from '../../components/form.tsx';
import { words } from '../../components/format.ts';
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
const options = (values: readonly string[]) => [any, ...values.map((value) => [value, value] as const)];

/** A half-typed year is a valid date too, in one of the first centuries. */
const isWholeTime = (text: string) => /^[2-9]\d{3}-/.test(text);

/** Formats a time as `2026-11-22T13:05` in the viewer's zone, for an input field. */
function local(at: string | undefined): string {
  if (at === undefined) return '';
  const date = new Date(at);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function DeliveryFilters() {
  const { filters, ignored } = validFilters(endpointRoute.useSearch());
  const navigate = endpointRoute.useNavigate();
  const set = (name: Filter) => (value: string) =>
    void navigate({
      search: ({ [name]: _before, ...others }) => (value === '' ? others : { ...others, [name]: value }),
      replace: true,
      resetScroll: false,
    });
  const setTime = (name: 'created_after' | 'created_before') => (value: string) =>
    set(name)(value === '' ? '' : new Date(value).toISOString());
  const clear = () =>
    void navigate({ search: ({ mode }) => (mode ? { mode } : {}), replace: true, resetScroll: false });
  const active = Object.keys(filters).length;
  // Stay open after the user removes the last filter.
  const [open, setOpen] = useState(active > 0);
  return (
    <>
      <details className="filters" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>Filters{active > 0 ? ` (${active})` : ''}</summary>
        <div className="filter-fields">
          <SelectField
            label="Delivery status"
            value={filters.status ?? ''}
            onChange={set('status')}
            options={options(STATUSES)}
          />
          <SelectField
            label="Event type"
            value={filters.event_type ?? ''}
            onChange={set('event_type')}
            options={options(TYPES)}
          />
          <SelectField
            label="Last outcome"
            value={filters.outcome ?? ''}
            onChange={set('outcome')}
            options={options(OUTCOMES)}
          />
          <TypedFilter
            label="Last status code"
            value={filters.status_code ?? ''}
            onRest={set('status_code')}
            isWhole={(text) => STATUS_CODE.test(text)}
          />
          <TypedFilter
            label="Event id"
            value={filters.event_id ?? ''}
            onRest={set('event_id')}
            isWhole={(text) => EVENT_ID.test(text)}
          />
          <TypedFilter
            label="After"
            type="datetime-local"
            value={local(filters.created_after)}
            onRest={setTime('created_after')}
            isWhole={isWholeTime}
          />
          <TypedFilter
            label="Before"
            type="datetime-local"
            value={local(filters.created_before)}
            onRest={setTime('created_before')}
            isWhole={isWholeTime}
          />
          <button
            type="button"
            className="button small"
            disabled={active + ignored.length === 0}
            onClick={clear}
          >
            Clear filters
          </button>
        </div>
      </details>
      {ignored.map(({ name, value }) => (
        <p key={name} role="status" className="note wait">
          “{value}” is not a valid value for {words(name)}, so this filter is ignored.
        </p>
      ))}
    </>
  );
}
