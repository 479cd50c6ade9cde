import { getRouteApi } from '@tanstack/react-router';
import { useSession } from '../api/session.ts';
import { EVENT_TYPES, type Event } from '../api/types.ts';
import { CopyButton } from '../components/copy-button.tsx';
import { Empty } from '../components/feedback.tsx';
import { UrlFilters } from '../components/filters.tsx';
import { List } from '../components/list.tsx';
import { Time } from '../components/time.tsx';
import { useMode } from '../layout/use-mode.ts';

const eventsRoute = getRouteApi('/developers/events');

export function Events() {
  const mode = useMode();
  const { type } = eventsRoute.useSearch();
  const { api_url: apiUrl } = useSession();
  return (
    <>
      <h1>Events</h1>
      <p className="lead">Every change to your orders, eSIMs and top-ups, exactly as webhooks deliver it.</p>
      <UrlFilters choices={[{ name: 'type', label: 'Type', options: EVENT_TYPES }]} />
      <List<Event>
        path="events"
        mode={mode}
        filters={{ type }}
        label="Events"
        columns={['Type', 'Event', 'Time', 'Data']}
        row={(event) => (
          <tr key={event.id}>
            <td data-column="Type">{event.type}</td>
            <td data-column="Event">
              <code>{event.id}</code> <CopyButton text={event.id} label="Copy event id" />
            </td>
            <td data-column="Time">
              <Time at={event.created_at} short />
            </td>
            <td data-column="Data" className="wide-cell">
              <details>
                <summary>Show data</summary>
                <pre className="code-block" tabIndex={0} role="region" aria-label={`Data of ${event.id}`}>
                  {JSON.stringify(event.data, null, 2)}
                </pre>
              </details>
            </td>
          </tr>
        )}
        empty={
          <Empty
            title="No events yet"
            command={`curl "${apiUrl ?? 'https://$API_HOST'}/v1/events?limit=10" -H "Authorization: Bearer $ESIM_API_KEY"`}
          >
            <p>Your first order creates one. Your programs can read events too:</p>
          </Empty>
        }
      />
    </>
  );
}
