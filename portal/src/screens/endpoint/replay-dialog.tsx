import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { post } from '../../api/client.ts';
import type { Endpoint, Replay } from '../../api/types.ts';
import { useAction } from '../../api/use-action.ts';
import { Callout } from '../../components/callout.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { ErrorNote } from '../../components/feedback.tsx';
import { count } from '../../components/format.ts';
import { Cancel, Checkboxes, fieldError, Submit, TextField } from '../../components/form.tsx';
import { TYPE_OPTIONS } from '../webhooks/subscriptions.ts';

const endpointRoute = getRouteApi('/developers/webhooks/$endpointId');

const STATUSES = [
  ['failed', 'Failed'],
  ['delivered', 'Delivered'],
  ['discarded', 'Discarded'],
] as const;
/** Larger replays, and many replays within an hour, require a recent sign-in. */
const STEP_UP_ABOVE = 1_000;
/** Maximum count of a dry run. */
const MAX_COUNTED = 10_000;

function hoursAgo(hours: number): string {
  const date = new Date(Date.now() - hours * 3_600_000);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Replays a period. Counts first, so that nobody sends ten thousand deliveries by mistake. */
export function ReplayDialog({ endpoint, onClose }: { endpoint: Endpoint; onClose: () => void }) {
  const [since, setSince] = useState(hoursAgo(24));
  const [until, setUntil] = useState('');
  const [types, setTypes] = useState<string[]>([]);
  const [statuses, setStatuses] = useState<string[]>(['failed']);
  const [counted, setCounted] = useState<Replay | null>(null);
  const navigate = endpointRoute.useNavigate();
  const ask = (dryRun: boolean) =>
    post<Replay>(`webhook-endpoints/${endpoint.id}/replay`, {
      since: since === '' ? '' : new Date(since).toISOString(),
      ...(until === '' ? {} : { until: new Date(until).toISOString() }),
      ...(types.length === 0 ? {} : { event_types: types }),
      ...(statuses.length === 0 ? {} : { statuses }),
      dry_run: dryRun,
    });
  const countFirst = useAction(async () => setCounted(await ask(true)));
  const start = useAction(async () => {
    const replay = await ask(false);
    onClose();
    void navigate({
      search: (last) => (replay.id ? { ...last, replay: replay.id } : last),
      resetScroll: false,
    });
  });
  // The shown count belongs to the current choice, so a change requires a new count.
  const change =
    <T,>(set: (value: T) => void) =>
    (value: T) => {
      setCounted(null);
      set(value);
    };
  const error = countFirst.error ?? start.error;
  return (
    <Dialog
      onClose={onClose}
      title="Replay"
      description="Resend past events, each as a new delivery signed with the current secret."
      onSubmit={() => void (counted ? start.run() : countFirst.run())}
      live={endpoint.mode === 'live' && <strong>Live endpoint.</strong>}
      foot={
        <>
          <Cancel onClick={onClose} />
          {counted ? (
            <Submit busy={start.busy} disabled={counted.total === 0}>
              Start replay
            </Submit>
          ) : (
            <Submit busy={countFirst.busy}>Count first</Submit>
          )}
        </>
      }
    >
      <TextField
        label="Since"
        type="datetime-local"
        value={since}
        onChange={change(setSince)}
        required
        error={fieldError(error, 'since')}
      />
      <TextField
        label="Until"
        optional
        type="datetime-local"
        value={until}
        onChange={change(setUntil)}
        error={fieldError(error, 'until')}
      />
      <Checkboxes
        legend="Deliveries that were"
        hint="Select none to include all three. Pending deliveries are sent anyway."
        options={STATUSES}
        chosen={statuses}
        onChange={change(setStatuses)}
      />
      <Checkboxes
        legend="Event types"
        hint="Select none to include every type."
        options={TYPE_OPTIONS}
        chosen={types}
        onChange={change(setTypes)}
      />
      <div role="status">{counted && <Counted total={counted.total} />}</div>
      <ErrorNote error={error} />
    </Dialog>
  );
}

function Counted({ total }: { total: number }) {
  const sent = `${count(total)}${total >= MAX_COUNTED ? ' or more' : ''} ${total === 1 ? 'delivery' : 'deliveries'}`;
  return (
    <Callout tone={total === 0 || total > STEP_UP_ABOVE ? 'warn' : 'good'}>
      <p>
        {total === 0
          ? 'No deliveries match. Choose another time range or other statuses.'
          : `${sent} will be sent.`}
        {total > STEP_UP_ABOVE && ' A replay of this size needs a sign-in within the last 15 minutes.'}
      </p>
    </Callout>
  );
}
