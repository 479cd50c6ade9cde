import { getRouteApi } from '@tanstack/react-router';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { send } from '../api/client.ts';
import { pages } from '../api/queries.ts';
import type { Diagnosis, Endpoint } from '../api/types.ts';
import { useAction } from '../api/use-action.ts';
import { Callout } from '../components/callout.tsx';
import { ErrorNote } from '../components/feedback.tsx';
import { fieldError, SelectField, Submit, TextField } from '../components/form.tsx';
import { inWords } from '../components/time.tsx';
import { Screen } from '../layout/screen.tsx';
import { useMode } from '../layout/use-mode.ts';

const doctorRoute = getRouteApi('/developers/signature-doctor');

/** More than a partner can have per mode, so one page has all. */
const MAX_ENDPOINTS = 100;

/** Parses one `Name: value` per line, as tools print them; a bare `t=…,v1=…` is the signature. */
function parseHeaders(text: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of text.split(/\r?\n/)) {
    const trimmed = line.trim();
    if (/^t=\d+/.test(trimmed)) headers['X-Service-Signature'] = trimmed;
    const colon = trimmed.indexOf(':');
    if (colon > 0 && !/^t=/.test(trimmed))
      headers[trimmed.slice(0, colon).trim()] = trimmed.slice(colon + 1).trim();
  }
  return headers;
}

export function SignatureDoctor() {
  const mode = useMode();
  const { endpoint: preset } = doctorRoute.useSearch();
  const { data } = useInfiniteQuery(pages<Endpoint>('webhook-endpoints', mode, { limit: MAX_ENDPOINTS }));
  const endpoints = data?.pages.flatMap((page) => page.data) ?? [];
  const [chosen, setChosen] = useState(preset ?? '');
  const [headers, setHeaders] = useState('');
  const [body, setBody] = useState('');
  const [computed, setComputed] = useState('');
  const [receivedAt, setReceivedAt] = useState('');
  const [diagnosis, setDiagnosis] = useState<Diagnosis | null>(null);
  // The address may name an endpoint of the other mode: only one of this mode can be selected.
  const endpointId = endpoints.find(({ id }) => id === chosen)?.id ?? endpoints[0]?.id ?? '';
  const { busy, error, run } = useAction(async () => {
    setDiagnosis(null);
    setDiagnosis(
      await send<Diagnosis>('POST', 'signature-doctor', {
        endpoint_id: endpointId,
        headers: parseHeaders(headers),
        body,
        ...(computed.trim() === '' ? {} : { computed: computed.trim() }),
        ...(receivedAt.trim() === '' ? {} : { received_at: receivedAt.trim() }),
      }),
    );
  });
  return (
    <Screen
      name="Signature Doctor"
      lead="Does your server reject our signature? Paste the headers and the body that it received. We already have the secret."
    >
      <form
        className="stack doctor"
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <SelectField
          label="Endpoint"
          value={endpointId}
          onChange={setChosen}
          options={
            endpoints.length === 0
              ? [['', 'No endpoints yet']]
              : endpoints.map(({ id, url }) => [id, url] as const)
          }
        />
        <TextField
          label="Headers"
          value={headers}
          onChange={setHeaders}
          rows={4}
          hint="Required: X-Service-Signature. Paste the whole header line or only its value."
          error={fieldError(error, 'headers')}
        />
        <TextField
          label="Body"
          value={body}
          onChange={setBody}
          rows={8}
          hint="Exactly as received, including spaces and line breaks."
          error={fieldError(error, 'body')}
        />
        <TextField
          label="Signature your code computed"
          optional
          value={computed}
          onChange={setComputed}
          hint="Hex or Base64. Helps us tell whether your code computes the signature incorrectly or uses the wrong secret."
          error={fieldError(error, 'computed')}
        />
        <TextField
          label="When it arrived"
          optional
          value={receivedAt}
          onChange={setReceivedAt}
          placeholder="2026-11-22T10:00:05Z"
          hint="By your server’s clock, from its log. Shows whether that clock is off."
          error={fieldError(error, 'received_at')}
        />
        <ErrorNote error={error} />
        <div className="actions">
          <Submit busy={busy} disabled={endpointId === ''}>
            Diagnose
          </Submit>
        </div>
      </form>
      <div role="status">{diagnosis && <Result diagnosis={diagnosis} />}</div>
    </Screen>
  );
}

/**
 * How far, and in which direction, a clock is off. With positive seconds, `t` is earlier than the time of receipt, or
 * than our clock if that time is unknown.
 */
function clockInWords(diagnosis: string, secondsOff: number): string {
  const far = inWords(Math.abs(secondsOff) * 1_000);
  if (diagnosis === 'stale') return `The signature was made ${far} ago.`;
  return `The signature’s time t is ${far} ${secondsOff < 0 ? 'ahead of' : 'behind'} the clock that we compared it with.`;
}

function Result({
  diagnosis: { diagnosis, summary, cure, seconds_off: secondsOff },
}: {
  diagnosis: Diagnosis;
}) {
  return (
    <Callout tone={diagnosis === 'valid' ? 'good' : 'bad'} title={summary}>
      {secondsOff !== null && <p>{clockInWords(diagnosis, secondsOff)}</p>}
      <p>{cure}</p>
      <p className="hint">
        <code>{diagnosis}</code>
      </p>
    </Callout>
  );
}
