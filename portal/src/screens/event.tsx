import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { oneQuery } from '../api/queries.ts';
import type { Event } from '../api/types.ts';
import { Code } from '../components/code.tsx';
import { Id } from '../components/copy-button.tsx';
import { ErrorNote, Loading } from '../components/feedback.tsx';
import { Time } from '../components/time.tsx';
import { Screen } from '../layout/screen.tsx';

const eventRoute = getRouteApi('/developers/events/$eventId');

/** One event, as webhooks deliver it. */
export function EventPage() {
  const { eventId } = eventRoute.useParams();
  const query = useQuery(oneQuery<Event>('events', eventId));
  const event = query.data;
  return (
    <Screen
      name={`…${eventId.slice(-6)}`}
      parent={{ to: '/developers/events', name: 'Events' }}
      title={event ? event.type : 'Event'}
      under={
        event && (
          <>
            <Id text={event.id} what="event id" />
            <Time at={event.created_at} />
          </>
        )
      }
    >
      {query.isPending && <Loading />}
      {query.isError && <ErrorNote error={query.error} retry={() => void query.refetch()} />}
      {event && <Code label="Data" text={JSON.stringify(event.data, null, 2)} />}
    </Screen>
  );
}
