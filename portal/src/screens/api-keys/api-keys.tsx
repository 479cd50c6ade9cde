import { useState } from 'react';
import { useScope, useSession } from '../../api/session.ts';
import type { ApiKey } from '../../api/types.ts';
import { CopyFact } from '../../components/copy-button.tsx';
import { Badge, Empty } from '../../components/feedback.tsx';
import { counted } from '../../components/format.ts';
import { List } from '../../components/list.tsx';
import { Ago, Time } from '../../components/time.tsx';
import { useMode } from '../../layout/use-mode.ts';
import { accessInWords, limitInWords } from './access.ts';
import { NewKeyDialog } from './new-key.tsx';
import { RevokeDialog } from './revoke-key.tsx';
import { RotateDialog } from './rotate-key.tsx';

type Open = { what: 'new' } | { what: 'rotate' | 'revoke'; key: ApiKey } | null;

const COLUMNS = ['Name', 'Key', 'Access', 'State', 'Created', 'Last used', 'Actions'];

export function ApiKeys() {
  const mode = useMode();
  const mayWrite = useScope('keys:write');
  const { api_url: apiUrl } = useSession();
  const [open, setOpen] = useState<Open>(null);
  const close = () => setOpen(null);
  return (
    <>
      <div className="screen-head">
        <h1>API Keys</h1>
        {mayWrite && (
          <button type="button" className="button primary" onClick={() => setOpen({ what: 'new' })}>
            New key
          </button>
        )}
      </div>
      <p className="lead">
        Your programs authenticate with an API key. We store only a hash of each key, so we cannot recover a
        lost one. Replace it instead.
      </p>
      <List<ApiKey>
        path="api-keys"
        mode={mode}
        label="API keys"
        columns={COLUMNS}
        row={(key) => <KeyRow key={key.id} apiKey={key} open={mayWrite ? setOpen : null} />}
        empty={
          <Empty
            title={`No ${mode === 'live' ? 'Live' : 'Sandbox'} keys yet`}
            command={`curl ${apiUrl ?? 'https://$API_HOST'}/v1/me -H "Authorization: Bearer $ESIM_API_KEY"`}
          >
            <p>Create a key, set ESIM_API_KEY to it, and make your first call:</p>
          </Empty>
        }
      />
      {open?.what === 'new' && <NewKeyDialog mode={mode} onClose={close} />}
      {open?.what === 'rotate' && <RotateDialog apiKey={open.key} onClose={close} />}
      {open?.what === 'revoke' && <RevokeDialog apiKey={open.key} onClose={close} />}
    </>
  );
}

function KeyRow({ apiKey, open }: { apiKey: ApiKey; open: ((open: Open) => void) | null }) {
  const id = `key-${apiKey.id}`;
  return (
    <tr>
      <th scope="row" id={id} data-column="Name">
        {apiKey.name ?? 'No name'}
      </th>
      <td data-column="Key">
        <code>
          {apiKey.prefix}…{apiKey.last4}
        </code>
        <span className="sub">
          <CopyFact text={apiKey.id} what="key id" />
        </span>
      </td>
      <td data-column="Access">
        {accessInWords(apiKey)}
        {apiKey.spend_limit && <span className="sub">{limitInWords(apiKey)}</span>}
      </td>
      <td data-column="State">
        <KeyState apiKey={apiKey} />
      </td>
      <td data-column="Created">
        <Time at={apiKey.created_at} />
        {apiKey.created_by && <span className="sub">by {apiKey.created_by}</span>}
      </td>
      <td data-column="Last used" className="number">
        {apiKey.last_used_at ? <Ago at={apiKey.last_used_at} /> : 'Never'}
        {apiKey.uses_24h !== undefined && (
          <span className="sub">{counted(apiKey.uses_24h, 'call')} in the last 24 h</span>
        )}
      </td>
      <td data-column="Actions">
        {open && apiKey.status === 'active' && (
          <div className="row-actions">
            <button
              type="button"
              className="button small"
              aria-describedby={id}
              onClick={() => open({ what: 'rotate', key: apiKey })}
            >
              Rotate
            </button>
            <button
              type="button"
              className="button small danger-quiet"
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

function KeyState({ apiKey }: { apiKey: ApiKey }) {
  if (apiKey.status === 'revoked')
    return (
      <>
        <Badge tone="off">Revoked</Badge>
        {apiKey.revoked_at && (
          <span className="sub">
            <Time at={apiKey.revoked_at} />
          </span>
        )}
      </>
    );
  if (apiKey.status === 'expired') return <Badge tone="off">Expired</Badge>;
  return (
    <>
      <Badge tone={apiKey.replaced_by ? 'wait' : 'good'}>{apiKey.replaced_by ? 'Replaced' : 'Active'}</Badge>
      {apiKey.expires_at && (
        <span className="sub">
          until <Time at={apiKey.expires_at} />
        </span>
      )}
    </>
  );
}
