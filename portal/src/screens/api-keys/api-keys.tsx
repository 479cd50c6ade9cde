import { useState } from 'react';
import { useScope, useSession } from '../../api/session.ts';
import type { ApiKey } from '../../api/types.ts';
import { CopyButton } from '../../components/copy-button.tsx';
import { Empty } from '../../components/feedback.tsx';
import { counted, money } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { List, type Column } from '../../components/list.tsx';
import { Badge, State } from '../../components/state.tsx';
import { Ago, inWords, Time, useNow } from '../../components/time.tsx';
import { Screen } from '../../layout/screen.tsx';
import { MODE_NAMES, useMode } from '../../layout/use-mode.ts';
import { accessInWords } from './access.ts';
import { NewKeyDialog } from './new-key.tsx';
import { RevokeDialog } from './revoke-key.tsx';
import { RotateDialog } from './rotate-key.tsx';

type Open = { what: 'new' } | { what: 'rotate' | 'revoke'; key: ApiKey } | null;

const COLUMNS = [
  'Name',
  'Access',
  'Daily limit',
  'State',
  'Last used',
  ['Created', 'wide'],
  ['Actions', 'hidden'],
] as const satisfies readonly Column[];

export function ApiKeys() {
  const mode = useMode();
  const mayWrite = useScope('keys:write');
  const { api_url: apiUrl } = useSession();
  const [open, setOpen] = useState<Open>(null);
  const close = () => setOpen(null);
  return (
    <Screen
      name="API Keys"
      lead="Your services sign in with a key. We store only a hash, so a lost key must be replaced."
      actions={
        mayWrite && (
          <button type="button" className="button primary" onClick={() => setOpen({ what: 'new' })}>
            <Icon name="plus" />
            New key
          </button>
        )
      }
    >
      <List<ApiKey>
        path="api-keys"
        mode={mode}
        label="API keys"
        columns={COLUMNS}
        row={(key) => <KeyRow key={key.id} apiKey={key} open={mayWrite ? setOpen : null} />}
        empty={
          <Empty
            title={`No ${MODE_NAMES[mode]} keys yet`}
            icon="key"
            command={`curl ${apiUrl ?? 'https://$API_HOST'}/v1/me -H "Authorization: Bearer $ESIM_API_KEY"`}
          >
            <p>Create a key, set ESIM_API_KEY to it, and make your first call:</p>
          </Empty>
        }
      />
      {open?.what === 'new' && <NewKeyDialog mode={mode} onClose={close} />}
      {open?.what === 'rotate' && <RotateDialog apiKey={open.key} onClose={close} />}
      {open?.what === 'revoke' && <RevokeDialog apiKey={open.key} onClose={close} />}
    </Screen>
  );
}

function KeyRow({ apiKey, open }: { apiKey: ApiKey; open: ((open: Open) => void) | null }) {
  const id = `key-${apiKey.id}`;
  const [access, scopes] = accessInWords(apiKey);
  return (
    <tr>
      <th scope="row">
        <strong id={id}>{apiKey.name ?? `Key …${apiKey.last4}`}</strong>
        <span className="second nowrap">
          <span className="copyable">
            <code>
              {apiKey.prefix}…{apiKey.last4}
            </code>
            <CopyButton text={apiKey.id} label="Copy key id" />
          </span>
        </span>
      </th>
      <td data-label="Access">
        <span>
          {access}
          <span className="second">
            {scopes}
            {apiKey.allowed_cidrs && `, from ${counted(apiKey.allowed_cidrs.length, 'address range')}`}
          </span>
        </span>
      </td>
      <td data-label="Daily limit">
        {apiKey.spend_limit ? (
          <span className="num">up to {money(apiKey.spend_limit.amount)} a day</span>
        ) : (
          <span className="muted">No limit</span>
        )}
      </td>
      <td className="at-state">
        <KeyState apiKey={apiKey} />
      </td>
      <td data-label="Last used">
        <span>
          {apiKey.last_used_at ? <Ago at={apiKey.last_used_at} /> : <span className="muted">Never</span>}
          {apiKey.uses_24h > 0 && <span className="second">{counted(apiKey.uses_24h, 'call')}, 24 h</span>}
        </span>
      </td>
      <td data-label="Created" className="at-wide">
        <span>
          <Time at={apiKey.created_at} as="day" />
          {apiKey.created_by && <span className="second">{apiKey.created_by}</span>}
        </span>
      </td>
      <td>
        {open && apiKey.status === 'active' && (
          <div className="row-actions">
            <button
              type="button"
              className="button small quiet"
              aria-describedby={id}
              onClick={() => open({ what: 'rotate', key: apiKey })}
            >
              Rotate
            </button>
            <button
              type="button"
              className="button small quiet danger"
              aria-describedby={id}
              onClick={() => open({ what: 'revoke', key: apiKey })}
            >
              Revoke
            </button>
          </div>
        )}
      </td>
    </tr>
  );
}

/** A key that ends sooner than this needs somebody. */
const SOON_MS = 7 * 86_400_000;

function KeyState({ apiKey }: { apiKey: ApiKey }) {
  const now = useNow();
  if (apiKey.status !== 'active')
    return (
      <>
        <State of={apiKey.status} />
        {apiKey.revoked_at && (
          <span className="second">
            <Time at={apiKey.revoked_at} as="short" />
          </span>
        )}
      </>
    );
  const left = apiKey.expires_at === null ? null : Date.parse(apiKey.expires_at) - now;
  const end = apiKey.expires_at && (
    <span className="second">
      until <Time at={apiKey.expires_at} as="short" />
    </span>
  );
  if (apiKey.replaced_by)
    return (
      <>
        <State of="replaced" />
        {end}
      </>
    );
  if (left !== null && left < SOON_MS)
    return (
      <>
        <Badge tone="warn">Expires in {inWords(left)}</Badge>
        {end}
      </>
    );
  return (
    <>
      <State of="active" />
      {end}
    </>
  );
}
