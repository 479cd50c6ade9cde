import { useQuery, useQueryClient } from '@tanstack/react-query';
import { get, post } from '../../api/client.ts';
import { useScope } from '../../api/session.ts';
import type { ApiKey, Call, Page } from '../../api/types.ts';
import { useAction } from '../../api/use-action.ts';
import { Callout } from '../../components/callout.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { ErrorNote } from '../../components/feedback.tsx';
import { count, counted } from '../../components/format.ts';
import { Cancel, Submit } from '../../components/form.tsx';
import { Ago } from '../../components/time.tsx';
import { notify } from '../../components/toasts.tsx';

const DAY_MS = 86_400_000;
const ASKED_FOR = 100;

/** Shows what would stop working before a key is permanently revoked. */
export function RevokeDialog({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const queries = useQueryClient();
  const { busy, error, run } = useAction(async () => {
    await post(`api-keys/${apiKey.id}/revoke`);
    // The focus returns to the row when the dialog closes, so the row must be as it will stay.
    await queries.invalidateQueries({ queryKey: ['api-keys'] });
    notify(`Key …${apiKey.last4} was revoked.`);
    onClose();
  });
  return (
    <Dialog
      onClose={onClose}
      title={`Revoke ${apiKey.name ?? 'the key'} …${apiKey.last4}`}
      description="Calls with this key will start to fail with 401 immediately. This cannot be undone. If something still uses the key, rotate it instead."
      onSubmit={() => void run()}
      live={apiKey.mode === 'live' && <strong>Live key.</strong>}
      foot={
        <>
          <Cancel onClick={onClose}>Keep it</Cancel>
          <Submit busy={busy} danger>
            Revoke key
          </Submit>
        </>
      }
    >
      <RecentUse apiKey={apiKey} />
      <ErrorNote error={error} />
    </Dialog>
  );
}

/** The key's calls of the last day, by address and route. */
function RecentUse({ apiKey }: { apiKey: ApiKey }) {
  const mayRead = useScope('requests:read');
  const { data } = useQuery({
    queryKey: ['requests', 'of-key', apiKey.id],
    enabled: mayRead && apiKey.last_used_at !== null,
    queryFn: ({ signal }) =>
      get<Page<Call>>(
        'requests',
        {
          mode: apiKey.mode,
          key_id: apiKey.id,
          created_after: new Date(Date.now() - DAY_MS).toISOString(),
          limit: ASKED_FOR,
        },
        signal,
      ),
  });
  if (apiKey.last_used_at === null) return <Callout tone="good" title="This key has never been used" />;
  const uses = new Map<string, number>();
  for (const call of data?.data ?? []) {
    const use = `${call.method} ${call.route ?? call.path} from ${call.remote_address}`;
    uses.set(use, (uses.get(use) ?? 0) + 1);
  }
  return (
    <Callout tone="warn">
      <p>
        Last used <Ago at={apiKey.last_used_at} />
        {apiKey.uses_24h !== undefined && `, ${counted(apiKey.uses_24h, 'call')} in the last 24 hours`}.
      </p>
      {uses.size > 0 && (
        <>
          <p>These calls would stop working{data?.has_more ? ` (from the last ${ASKED_FOR})` : ''}:</p>
          <ul>
            {[...uses].slice(0, 8).map(([use, times]) => (
              <li key={use}>
                {use}: {count(times)}
              </li>
            ))}
          </ul>
        </>
      )}
    </Callout>
  );
}
