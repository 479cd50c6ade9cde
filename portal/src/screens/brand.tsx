import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { get, send } from '../api/client.ts';
import type { Session } from '../api/types.ts';
import { useAction } from '../api/use-action.ts';
import { ErrorNote, Loading } from '../components/feedback.tsx';
import { fieldError, Submit, TextField } from '../components/form.tsx';
import { notify } from '../components/toasts.tsx';
import { Screen } from '../layout/screen.tsx';

type Brand = Session['partner']['brand'];

const KEY = ['brand'];

/** The form for the partner's look on the install page. Both modes share it. */
export function InstallPageBrand() {
  const query = useQuery({
    queryKey: KEY,
    queryFn: async ({ signal }) => (await get<{ data: Session }>('session', {}, signal)).data.partner,
  });
  return (
    <Screen
      name="Install Page"
      lead="Travelers see this on the page that an install link opens. Without a name, they see your company’s."
    >
      {query.isPending && <Loading />}
      {query.isError && <ErrorNote error={query.error} retry={() => void query.refetch()} />}
      {query.data && <BrandForm brand={query.data.brand} partnerName={query.data.name} />}
    </Screen>
  );
}

function BrandForm({ brand, partnerName }: { brand: Brand; partnerName: string }) {
  const [name, setName] = useState(brand.name ?? '');
  const [logo, setLogo] = useState(brand.logo_url ?? '');
  const [accent, setAccent] = useState(brand.accent ?? '');
  const [help, setHelp] = useState(brand.help_url ?? '');
  const queries = useQueryClient();
  const { busy, error, run } = useAction(async () => {
    await send('PATCH', 'brand', {
      name: valueOf(name),
      logo_url: valueOf(logo),
      accent: valueOf(accent),
      help_url: valueOf(help),
    });
    await queries.invalidateQueries({ queryKey: KEY });
    notify('Saved. The install page shows it at once.');
  });
  return (
    <form
      className="card stack reading"
      aria-label="Brand"
      onSubmit={(event) => {
        event.preventDefault();
        void run();
      }}
    >
      <TextField
        label="Name"
        optional
        value={name}
        onChange={setName}
        placeholder={partnerName}
        error={fieldError(error, 'name')}
      />
      <TextField
        label="Logo address"
        optional
        value={logo}
        onChange={setLogo}
        placeholder="https://…/logo.svg"
        hint="An image at an https address, at least 28 pixels high."
        error={fieldError(error, 'logo_url')}
      />
      <TextField
        label="Accent color"
        optional
        value={accent}
        onChange={setAccent}
        placeholder="#0a66c2"
        hint="For buttons and highlights, as # and six hex digits."
        error={fieldError(error, 'accent')}
      />
      <TextField
        label="Help address"
        optional
        value={help}
        onChange={setHelp}
        placeholder="https://…/help"
        hint="Your help pages for travelers, at an https address."
        error={fieldError(error, 'help_url')}
      />
      <ErrorNote error={error} />
      <div>
        <Submit busy={busy}>Save brand</Submit>
      </div>
    </form>
  );
}

const valueOf = (text: string): string | null => (text.trim() === '' ? null : text.trim());
