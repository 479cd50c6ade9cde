import { useNavigate } from '@tanstack/react-router';
import { EVENT_TYPES } from '../../api/types.ts';
import { SelectField, TextField } from '../../components/form.tsx';
import { endpointRoute } from '../../router.tsx';

export const FILTERS = [
  'status',
  'event_type',
  'event_id',
  'status_code',
  'outcome',
  'created_after',
  'created_before',
] as const;
type Filter = (typeof FILTERS)[number];

const STATUSES = ['pending', 'delivered', 'failed', 'held', 'discarded'] as const;
const OUTCOMES = ['delivered', 'failed', 'interrupted'] as const;
const any = ['', 'Any'] as const;

/** `2026-11-22T13:05` in the viewer's zone, as a field of the browser wants it. */
function local(at: string | undefined): string {
  if (at === undefined) return '';
  const date = new Date(at);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function DeliveryFilters() {
  const search = endpointRoute.useSearch();
  const navigate = useNavigate({ from: endpointRoute.fullPath });
  const set = (name: Filter) => (value: string) =>
    void navigate({
      search: ({ [name]: _before, ...others }) => (value === '' ? others : { ...others, [name]: value }),
      replace: true,
      resetScroll: false,
    });
  const setTime = (name: 'created_after' | 'created_before') => (value: string) =>
    set(name)(value === '' ? '' : new Date(value).toISOString());
  const active = FILTERS.filter((name) => search[name] !== undefined).length;
  return (
    <details className="filters" open={active > 0}>
      <summary>Filters{active > 0 ? ` (${active})` : ''}</summary>
      <div className="filter-fields">
        <SelectField
          label="Delivery status"
          value={search.status ?? ''}
          onChange={set('status')}
          options={[any, ...STATUSES.map((status) => [status, status] as const)]}
        />
        <SelectField
          label="Event type"
          value={search.event_type ?? ''}
          onChange={set('event_type')}
          options={[any, ...[...EVENT_TYPES, 'webhook.test'].map((type) => [type, type] as const)]}
        />
        <SelectField
          label="Last outcome"
          value={search.outcome ?? ''}
          onChange={set('outcome')}
          options={[any, ...OUTCOMES.map((outcome) => [outcome, outcome] as const)]}
        />
        <TextField
          label="Last status code"
          type="number"
          value={search.status_code ?? ''}
          onChange={set('status_code')}
        />
        <TextField label="Event id" value={search.event_id ?? ''} onChange={set('event_id')} />
        <TextField
          label="After"
          type="datetime-local"
          value={local(search.created_after)}
          onChange={setTime('created_after')}
        />
        <TextField
          label="Before"
          type="datetime-local"
          value={local(search.created_before)}
          onChange={setTime('created_before')}
        />
        {active > 0 && (
          <button
            type="button"
            className="button small"
            onClick={() =>
              void navigate({
                search: ({ mode }) => (mode ? { mode } : {}),
                replace: true,
                resetScroll: false,
              })
            }
          >
            Clear filters
          </button>
        )}
      </div>
    </details>
  );
}
