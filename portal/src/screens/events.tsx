import { getRouteApi } from '@tanstack/react-router';
import { useSession } from '../api/session.ts';
import { EVENT_TYPES, type Event } from '../api/types.ts';
import { Code } from '../components/code.tsx';
import { Id } from '../components/copy-button.tsx';
import { Empty } from '../components/feedback.tsx';
import { UrlFilters } from '../components/filters.tsx';
import { List } from '../components/list.tsx';
import { Time } from '../components/time.tsx';
import { Screen } from '../layout/screen.tsx';
import { useMode } from '../layout/use-mode.ts';

const eventsRoute = getRouteApi('/developers/events');

export function Events() {
  const mode = useMode();
  const { type } = eventsRoute.useSearch();
  const { api_url: apiUrl } = useSession();
  return (
    <Screen
      name="Events"
      lead="Every change to your orders, eSIMs and top-ups, exactly as webhooks deliver it."
    >
      <UrlFilters choices={[{ name: 'type', label: 'Type', options: EVENT_TYPES, nameOf: (type) => type }]} />
      <List<Event>
        path="events"
        mode={mode}
        filters={{ type }}
        label="Events"
        columns={['Type', 'Event', 'Data', ['Time', 'number']]}
        row={(event) => (
          <tr key={event.id}>
            <th scope="row">{event.type}</th>
            <td data-label="Event">
              <Id text={event.id} what="event id" />
            </td>
            <td className="wide-cell">
              <details>
                <summary>Show data</summary>
                <Code label={`Data of ${event.id}`} head="Data" text={JSON.stringify(event.data, null, 2)} />
              </details>
            </td>
            <td className="num at-end">
              <Time at={event.created_at} as="short" />
            </td>
          </tr>
        )}
        empty={
          <Empty
            title="No events yet"
            icon="events"
            command={`curl "${apiUrl ?? 'https://$API_HOST'}/v1/events?limit=10" -H "Authorization: Bearer $ESIM_API_KEY"`}
          >
            <p>Your first order creates one. Your programs can read events too:</p>
          </Empty>
        }
      />
    </Screen>
  );
}
