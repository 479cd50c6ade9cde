import { queryOptions, useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { ApiError, get, send } from '../api/client.ts';
import { every, pages } from '../api/queries.ts';
import { useScope } from '../api/session.ts';
import type { AutoTopup, Esim, Package } from '../api/types.ts';
import { useAction } from '../api/use-action.ts';
import { Dialog } from '../components/dialog.tsx';
import { Facts } from '../components/facts.tsx';
import { ErrorNote } from '../components/feedback.tsx';
import { Cancel, fieldError, SelectField, Submit, TextField } from '../components/form.tsx';
import { money } from '../components/format.ts';
import { PackageName, titleOf } from '../components/package-name.tsx';
import { State } from '../components/state.tsx';
import { Time } from '../components/time.tsx';
import { notify } from '../components/toasts.tsx';

const THRESHOLDS = ['50', '80', '100'].map(
  (percent) => [percent, `${percent} % of its data is used`] as const,
);

const pathOf = (esimId: string) => `esims/${esimId}/auto-topup`;

/** The eSIM's rule; null if it has none. */
const ruleQuery = (esimId: string) =>
  queryOptions({
    queryKey: [pathOf(esimId)],
    queryFn: async ({ signal }): Promise<AutoTopup | null> => {
      try {
        return (await get<{ data: AutoTopup }>(pathOf(esimId), {}, signal)).data;
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return null;
        throw error;
      }
    },
    refetchInterval: every(5_000),
  });

/** The rule that tops an eSIM up by itself. Absent if the eSIM has none and its package cannot be topped up. */
export function AutoTopupSection({ esim }: { esim: Esim }) {
  const mayChange = useScope('esims:write');
  const [open, setOpen] = useState(false);
  const { data: rule, error } = useQuery(ruleQuery(esim.id));
  const offers = useInfiniteQuery(pages<Package>(`esims/${esim.id}/topup-packages`, null));
  const packages = offers.data?.pages.flatMap((page) => page.data) ?? [];
  const maySet = mayChange && packages.length > 0 && !['expired', 'canceled'].includes(esim.status);
  if (!rule && !maySet) return <ErrorNote error={error} />;
  return (
    <section aria-labelledby="auto-topup">
      <div className="section-head">
        <h2 id="auto-topup">Automatic top-up</h2>
        {maySet && (
          <button type="button" className="button small" onClick={() => setOpen(true)}>
            {rule ? 'Edit rule' : 'Set up'}
          </button>
        )}
        {rule && mayChange && <RemoveRule esim={esim} />}
      </div>
      {rule ? <Rule rule={rule} esim={esim} /> : <p className="muted">Off. We top up only when you ask.</p>}
      <ErrorNote error={error} />
      {open && (
        <RuleDialog esim={esim} rule={rule ?? null} packages={packages} onClose={() => setOpen(false)} />
      )}
    </section>
  );
}

function Rule({ rule, esim }: { rule: AutoTopup; esim: Esim }) {
  const failure = rule.last_failure;
  return (
    <Facts
      entries={[
        ['State', <State key="state" of={rule.status} />],
        ['When', `${rule.at_percent} % of its data is used`],
        ['Package', <PackageName key="package" id={rule.package_id} mode={esim.mode} />],
        ['Used', `${rule.times_used} of ${rule.max_times}`],
        ['Maximum price', money(rule.max_price)],
        [
          'Last top-up',
          rule.last_topup_id && (
            <Link key="last" to="/top-ups/$topupId" params={{ topupId: rule.last_topup_id }}>
              Top-up …{rule.last_topup_id.slice(-6)}
            </Link>
          ),
        ],
        [
          'Last failure',
          failure && (
            <span key="failure">
              {failure.reason} <Time at={failure.at} as="short" />
            </span>
          ),
        ],
      ]}
    />
  );
}

function RemoveRule({ esim }: { esim: Esim }) {
  const queries = useQueryClient();
  const { busy, error, run } = useAction(async () => {
    await send('DELETE', pathOf(esim.id));
    await queries.invalidateQueries({ queryKey: [pathOf(esim.id)] });
    notify('The eSIM is no longer topped up automatically.');
  });
  return (
    <>
      <button type="button" className="button small quiet" aria-busy={busy} onClick={() => void run()}>
        Remove rule
      </button>
      <ErrorNote error={error} />
    </>
  );
}

type DialogProps = { esim: Esim; rule: AutoTopup | null; packages: readonly Package[]; onClose: () => void };

function RuleDialog({ esim, rule, packages, onClose }: DialogProps) {
  const [percent, setPercent] = useState(String(rule?.at_percent ?? 80));
  const [packageId, setPackageId] = useState(rule?.package_id ?? packages[0]!.id);
  const [times, setTimes] = useState(String(rule?.max_times ?? 3));
  const queries = useQueryClient();
  const chosen = packages.find(({ id }) => id === packageId);
  const { busy, error, run } = useAction(async () => {
    await send('PUT', pathOf(esim.id), {
      at_percent: Number(percent),
      package_id: packageId,
      max_times: Number(times),
      max_price: chosen?.price ?? rule?.max_price,
    });
    await queries.invalidateQueries({ queryKey: [pathOf(esim.id)] });
    onClose();
  });
  return (
    <Dialog
      onClose={onClose}
      title="Automatic top-up"
      description="We buy the package when the eSIM reaches this usage, at most at today’s price."
      onSubmit={() => void run()}
      live={esim.mode === 'live' && <strong>Live eSIM. Each top-up is charged to your balance.</strong>}
      foot={
        <>
          <Cancel onClick={onClose} />
          <Submit busy={busy}>Save rule</Submit>
        </>
      }
    >
      <SelectField label="When" value={percent} onChange={setPercent} options={THRESHOLDS} />
      <SelectField
        label="Package"
        value={packageId}
        onChange={setPackageId}
        options={packages.map((item) => [item.id, `${titleOf(item)} · ${money(item.price)}`] as const)}
      />
      <TextField
        label="Maximum number of top-ups"
        inputMode="numeric"
        value={times}
        onChange={setTimes}
        error={fieldError(error, 'max_times')}
      />
      <ErrorNote error={error} />
    </Dialog>
  );
}
