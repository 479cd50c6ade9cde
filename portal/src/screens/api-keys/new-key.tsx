import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { post } from '../../api/client.ts';
import { useSession } from '../../api/session.ts';
import type { IssuedKey, Mode } from '../../api/types.ts';
import { useAction } from '../../api/use-action.ts';
import { Dialog } from '../../components/dialog.tsx';
import { ErrorNote } from '../../components/feedback.tsx';
import { Cancel, fieldError, Radios, Submit, TextField } from '../../components/form.tsx';
import { currencySign, minorUnits } from '../../components/format.ts';
import { SecretLost, SecretOnce } from '../../components/secret-once.tsx';
import { MODE_NAMES } from '../../layout/use-mode.ts';
import { ACCESS, PRESETS } from './access.ts';

const MODES = [
  ['sandbox', 'Sandbox', 'Simulated eSIMs, no charges'],
  ['live', 'Live', 'Real eSIMs, charged to your balance'],
] as const;

/** Asks for the key's name, mode and restrictions, then shows the key once. */
export function NewKeyDialog({ mode: shown, onClose }: { mode: Mode; onClose: () => void }) {
  const { modes } = useSession();
  const [name, setName] = useState('');
  const [mode, setMode] = useState<Mode>(shown);
  const [access, setAccess] = useState<string>(ACCESS[0][0]);
  const [limit, setLimit] = useState('');
  const [currency, setCurrency] = useState('USD');
  const [ranges, setRanges] = useState('');
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
      ...(ranges.trim() === '' ? {} : { allowed_cidrs: ranges.split(/[\s,;]+/).filter(Boolean) }),
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
      <SecretLost title="The new key cannot be shown" what="key" onDone={done}>
        Revoke {issued.name ?? 'the key'} …{issued.last4} in the list and create another key.
      </SecretLost>
    );
  if (issued)
    return (
      <SecretOnce
        title="Your new key"
        what="key"
        of={`${MODE_NAMES[mode]} key${issued.name ? ` “${issued.name}”` : ''}`}
        secret={issued.key}
        hint="Store it with your programs’ secrets, never in source code."
        onDone={done}
      />
    );
  return (
    <Dialog
      onClose={onClose}
      title="New key"
      onSubmit={() => void run()}
      live={
        mode === 'live' && (
          <>
            <strong>Live key.</strong> {maySpend && 'It spends your balance.'}
          </>
        )
      }
      foot={
        <>
          <Cancel onClick={onClose} />
          <Submit busy={busy} disabled={isWrong}>
            Create key
          </Submit>
        </>
      }
    >
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        hint="The service that uses the key. One key for each service."
        error={fieldError(error, 'name')}
      />
      <Radios
        legend="Mode"
        two
        options={MODES.filter(([each]) => modes.includes(each))}
        chosen={mode}
        onChange={(next) => setMode(next as Mode)}
      />
      <Radios legend="Access" options={ACCESS} chosen={access} onChange={setAccess} />
      {maySpend && (
        <TextField
          label="Daily spend limit"
          optional
          inputMode="decimal"
          affixes={[currencySign(currency), currency]}
          value={limit}
          onChange={setLimit}
          hint="Resets at 00:00 UTC. Above it, orders and top-ups return 402 spend_limit_reached. It cannot be changed later."
          error={
            isWrong ? `Enter an amount in ${currency}, such as 250.00.` : fieldError(error, 'spend_limit')
          }
        />
      )}
      {maySpend && limit !== '' && (
        <TextField
          label="Currency"
          value={currency}
          onChange={(next) => setCurrency(next.trim().toUpperCase())}
        />
      )}
      <TextField
        label="Address ranges"
        optional
        value={ranges}
        onChange={setRanges}
        placeholder="203.0.113.0/24"
        hint="The key works only from these addresses. Separate ranges by commas. Empty: from anywhere."
        error={fieldError(error, 'allowed_cidrs')}
      />
      <TextField
        label="Expires"
        optional
        type="datetime-local"
        value={expires}
        onChange={setExpires}
        error={fieldError(error, 'expires_at')}
      />
      <ErrorNote error={error} />
    </Dialog>
  );
}
