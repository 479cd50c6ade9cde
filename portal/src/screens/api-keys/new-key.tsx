import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { post } from '../../api/client.ts';
import { useSession } from '../../api/session.ts';
import type { IssuedKey, Mode } from '../../api/types.ts';
import { useAction } from '../../api/use-action.ts';
import { Dialog } from '../../components/dialog.tsx';
import { ErrorNote } from '../../components/feedback.tsx';
import { fieldError, Radios, Submit, TextField } from '../../components/form.tsx';
import { minorUnits } from '../../components/format.ts';
import { SecretLost, SecretOnce } from '../../components/secret-once.tsx';
import { PRESETS } from './access.ts';

const MODES = [
  ['sandbox', 'Sandbox'],
  ['live', 'Live'],
] as const;

const ACCESS = [
  ['Full access', 'Full access'],
  ['Storefront', 'Storefront (catalog only)'],
  ['Fulfillment', 'Fulfillment (orders, no wallet)'],
] as const;

/** Asks for the key's name, mode and restrictions, then shows the key once. */
export function NewKeyDialog({ mode: shown, onClose }: { mode: Mode; onClose: () => void }) {
  const { modes } = useSession();
  const [name, setName] = useState('');
  const [mode, setMode] = useState<Mode>(shown);
  const [access, setAccess] = useState<string>(ACCESS[0][0]);
  const [limit, setLimit] = useState('');
  const [currency, setCurrency] = useState('USD');
  const [expires, setExpires] = useState('');
  const [issued, setIssued] = useState<IssuedKey | null>(null);
  const queries = useQueryClient();
  const navigate = useNavigate();
  const maySpend = access !== 'Storefront';
  const amount = maySpend ? minorUnits(limit.trim(), currency) : null;
  const isWrong = maySpend && limit.trim() !== '' && amount === null;
  const { busy, error, run } = useAction(async () => {
    const scopes = PRESETS[access];
    const body = {
      mode,
      ...(name.trim() === '' ? {} : { name: name.trim() }),
      ...(scopes ? { scopes } : {}),
      ...(amount === null ? {} : { spend_limit: { amount: { amount, currency }, per: 'day' } }),
      ...(expires === '' ? {} : { expires_at: new Date(expires).toISOString() }),
    };
    setIssued(await post<IssuedKey>('api-keys', body));
    void queries.invalidateQueries({ queryKey: ['api-keys'] });
  });
  const done = () => {
    setIssued(null);
    onClose();
    // The new key appears in the list of its own mode.
    if (mode !== shown) void navigate({ to: '/developers/api-keys', search: { mode } });
  };

  if (issued?.key === null)
    return (
      <Dialog open onClose={done} title="The new key cannot be shown">
        <SecretLost what="key" onDone={done}>
          Revoke {issued.name ?? 'the key'} …{issued.last4} in the list and create another key.
        </SecretLost>
      </Dialog>
    );
  if (issued)
    return (
      <Dialog open onClose={done} title="Your new key" dismissible={false}>
        <SecretOnce
          what="key"
          secret={issued.key}
          hint="Store it with your programs’ secrets, never in source code."
          onDone={done}
        />
      </Dialog>
    );
  return (
    <Dialog open onClose={onClose} title="New key">
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <TextField
          label="Name"
          value={name}
          onChange={setName}
          hint="Where you use it, for example “checkout server”."
          error={fieldError(error, 'name')}
        />
        <Radios
          legend="Mode"
          options={MODES.filter(([each]) => modes.includes(each))}
          chosen={mode}
          onChange={(next) => setMode(next as Mode)}
        />
        {mode === 'live' && maySpend && (
          <p className="note wait">A Live key spends your balance on real eSIMs.</p>
        )}
        <Radios legend="Access" options={ACCESS} chosen={access} onChange={setAccess} />
        {maySpend && (
          <>
            <TextField
              label="Daily spend limit (optional)"
              value={limit}
              onChange={setLimit}
              hint="Orders and top-ups per UTC day, for example “250.00”. It cannot be changed later."
              error={
                isWrong ? `Enter an amount in ${currency}, such as 250.00.` : fieldError(error, 'spend_limit')
              }
            />
            {limit !== '' && (
              <TextField
                label="Currency"
                value={currency}
                onChange={(next) => setCurrency(next.trim().toUpperCase())}
              />
            )}
          </>
        )}
        <TextField
          label="Expires (optional)"
          type="datetime-local"
          value={expires}
          onChange={setExpires}
          error={fieldError(error, 'expires_at')}
        />
        <ErrorNote error={error} />
        <div className="actions">
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <Submit busy={busy} disabled={isWrong}>
            Create key
          </Submit>
        </div>
      </form>
    </Dialog>
  );
}
