import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { post } from '../api/client.ts';
import { oneQuery } from '../api/queries.ts';
import { useScope } from '../api/session.ts';
import type { Esim, Order } from '../api/types.ts';
import { useAction } from '../api/use-action.ts';
import { Dialog } from '../components/dialog.tsx';
import { ErrorNote } from '../components/feedback.tsx';
import { Cancel, Submit } from '../components/form.tsx';
import { counted, money } from '../components/format.ts';
import { ActionMenu, type MenuEntry } from '../components/menu.tsx';
import { notify } from '../components/toasts.tsx';
import { EsimActions } from './esim-actions.tsx';
import { CreateInstallLink } from './install-links.tsx';

/** The actions of an order; with one eSIM, also those of the eSIM. */
export function OrderActions({ order }: { order: Order }) {
  const mayCancel = useScope('esims:write');
  const [canceling, setCanceling] = useState(false);
  const [only, ...others] = order.esims;
  const hasOne = only !== undefined && others.length === 0;
  const { data: esim } = useQuery({ ...oneQuery<Esim>('esims', only?.esim_id ?? ''), enabled: hasOne });
  const cancel: MenuEntry = {
    name: 'Cancel order',
    icon: 'off',
    danger: true,
    refused: refusalOf(order, esim),
    onSelect: () => setCanceling(true),
  };
  const more = mayCancel ? [cancel] : [];
  return (
    <>
      {hasOne && esim && (
        <>
          <CreateInstallLink esim={esim} />
          <EsimActions esim={esim} more={more} />
        </>
      )}
      {!hasOne && <ActionMenu entries={more} />}
      {canceling && <CancelDialog order={order} onClose={() => setCanceling(false)} />}
    </>
  );
}

/** Why the order cannot be canceled, as far as the page knows. */
function refusalOf({ status }: Order, esim: Esim | undefined): string | undefined {
  if (status === 'canceled' || status === 'canceling') return `The order is ${status} already.`;
  if (status !== 'issued') return 'Only an issued order can be canceled.';
  if (esim && !esim.actions.includes('cancel'))
    return 'Not possible: the eSIM was downloaded, used or topped up.';
  return undefined;
}

function CancelDialog({ order, onClose }: { order: Order; onClose: () => void }) {
  const queries = useQueryClient();
  const { busy, error, run } = useAction(async () => {
    await post<Order>(`orders/${order.id}/cancel`);
    await queries.invalidateQueries({ queryKey: ['orders'] });
    onClose();
    notify('Cancellation requested. The order is refunded when the network confirms it.');
  });
  return (
    <Dialog
      onClose={onClose}
      title="Cancel order"
      description={`We cancel ${counted(order.quantity_issued, 'eSIM')} and refund ${money(order.total)}. This cannot be undone.`}
      onSubmit={() => void run()}
      live={order.mode === 'live' && <strong>Live order.</strong>}
      foot={
        <>
          <Cancel onClick={onClose}>Keep it</Cancel>
          <Submit busy={busy} danger>
            Cancel order
          </Submit>
        </>
      }
    >
      <ErrorNote error={error} />
    </Dialog>
  );
}
