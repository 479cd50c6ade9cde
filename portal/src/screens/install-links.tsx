import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { post, send } from '../api/client.ts';
import { pages } from '../api/queries.ts';
import type { CreatedInstallLink, Esim, InstallLink } from '../api/types.ts';
import { useAction } from '../api/use-action.ts';
import { Dialog } from '../components/dialog.tsx';
import { ErrorNote } from '../components/feedback.tsx';
import { Cancel, Checkboxes, fieldError, SelectField, Submit, TextField } from '../components/form.tsx';
import { counted } from '../components/format.ts';
import { Icon } from '../components/icon.tsx';
import { Table } from '../components/list.tsx';
import { SecretLost, SecretOnce } from '../components/secret-once.tsx';
import { Badge, State } from '../components/state.tsx';
import { Time } from '../components/time.tsx';
import { notify } from '../components/toasts.tsx';

const LANGUAGES = new Intl.DisplayNames(undefined, { type: 'language' });
const LOCALES = ['en', 'de', 'fr', 'es', 'it', 'pt', 'nl', 'pl', 'tr', 'ja', 'ko', 'zh'] as const;
const LOCALE_OPTIONS = [
  ['', 'Language of the phone'],
  ...LOCALES.map((locale) => [locale, LANGUAGES.of(locale) ?? locale] as const),
] as const;

const pathOf = (esimId: string) => `esims/${esimId}/install-links`;

/** The links that show a traveler how to install an eSIM. */
export function InstallLinks({ esim }: { esim: Esim }) {
  const query = useInfiniteQuery(pages<InstallLink>(pathOf(esim.id), null));
  const links = query.data?.pages.flatMap((page) => page.data) ?? [];
  if (links.length === 0) return null;
  return (
    <section aria-labelledby="install-links">
      <div className="section-head">
        <h2 id="install-links">Install links</h2>
      </div>
      <Table
        label="Install links"
        columns={['Created', 'State', 'Opened', 'Valid until', ['Actions', 'hidden']]}
      >
        {links.map((link) => (
          <LinkRow key={link.id} link={link} />
        ))}
      </Table>
      <p className="hint">We show a link only once. Create another one if the traveler lost it.</p>
    </section>
  );
}

function LinkRow({ link }: { link: InstallLink }) {
  const queries = useQueryClient();
  const path = pathOf(link.esim_id);
  const isExpired = Date.parse(link.expires_at) < Date.now();
  const { busy, error, run } = useAction(async () => {
    await send('DELETE', `${path}/${link.id}`);
    await queries.invalidateQueries({ queryKey: [path] });
    notify('The install link no longer works.');
  });
  return (
    <tr>
      <th scope="row">
        <Time at={link.created_at} as="short" />
      </th>
      <td className="at-state">{isExpired ? <State of="expired" /> : <Badge tone="good">Valid</Badge>}</td>
      <td data-label="Opened">
        {link.opened_count === 0 ? 'Not yet' : counted(link.opened_count, 'time')}
        {link.last_opened_at && (
          <>
            , last <Time at={link.last_opened_at} as="short" />
          </>
        )}
      </td>
      <td data-label="Valid until">
        <Time at={link.expires_at} as="short" />
      </td>
      <td>
        {!isExpired && (
          <div className="row-actions">
            <button
              type="button"
              className="button small quiet danger"
              aria-busy={busy}
              onClick={() => void run()}
            >
              Revoke link
            </button>
          </div>
        )}
        <ErrorNote error={error} />
      </td>
    </tr>
  );
}

/** The button that creates an install link, with its dialog. */
export function CreateInstallLink({ esim }: { esim: Esim }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" className="button" onClick={() => setOpen(true)}>
        <Icon name="link" />
        Create install link
      </button>
      {open && <CreateDialog esim={esim} onClose={() => setOpen(false)} />}
    </>
  );
}

function CreateDialog({ esim, onClose }: { esim: Esim; onClose: () => void }) {
  const [days, setDays] = useState('30');
  const [locale, setLocale] = useState('');
  const [options, setOptions] = useState<string[]>([]);
  const [created, setCreated] = useState<CreatedInstallLink | null>(null);
  const queries = useQueryClient();
  const path = pathOf(esim.id);
  const { busy, error, run } = useAction(async () => {
    setCreated(
      await post<CreatedInstallLink>(path, {
        expires_in_days: Number(days),
        ...(locale === '' ? {} : { locale }),
        ...(options.includes('code') ? { access_code: true } : {}),
      }),
    );
    void queries.invalidateQueries({ queryKey: [path] });
  });
  if (created?.url === null)
    return (
      <SecretLost title="The install link cannot be shown" what="install link" onDone={onClose}>
        Revoke it in the list and create another one.
      </SecretLost>
    );
  if (created)
    return (
      <SecretOnce
        title="The install link"
        what="install link"
        of={`eSIM …${esim.id.slice(-6)}`}
        secret={created.url}
        hint={
          created.access_code === null ? (
            'Anyone who has it can install the eSIM.'
          ) : (
            <>
              The traveler also needs the access code <code>{created.access_code}</code>. Send it separately.
            </>
          )
        }
        onDone={onClose}
      />
    );
  return (
    <Dialog
      onClose={onClose}
      title="Create install link"
      description="The link opens a page that shows the traveler how to install the eSIM, and later the data and days that are left."
      onSubmit={() => void run()}
      live={esim.mode === 'live' && <strong>Live eSIM.</strong>}
      foot={
        <>
          <Cancel onClick={onClose} />
          <Submit busy={busy}>Create link</Submit>
        </>
      }
    >
      <TextField
        label="Valid for days"
        inputMode="numeric"
        value={days}
        onChange={setDays}
        error={fieldError(error, 'expires_in_days')}
      />
      <SelectField label="Language" value={locale} onChange={setLocale} options={LOCALE_OPTIONS} />
      <Checkboxes
        legend="Protection"
        options={[['code', 'Ask for an access code']]}
        chosen={options}
        onChange={setOptions}
      />
      <ErrorNote error={error} />
    </Dialog>
  );
}
