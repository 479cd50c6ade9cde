import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { post, send } from '../api/client.ts';
import { useScope } from '../api/session.ts';
import type { Esim, Order } from '../api/types.ts';
import { useAction } from '../api/use-action.ts';
import { Dialog } from '../components/dialog.tsx';
import { ErrorNote } from '../components/feedback.tsx';
import { Cancel, fieldError, Submit, TextField } from '../components/form.tsx';
import { ActionMenu, type MenuEntry } from '../components/menu.tsx';
import { notify } from '../components/toasts.tsx';
import { RefundDialog } from './refunds.tsx';

type Control = 'suspend' | 'resume' | 'revoke' | 'replace';

const CONTROLS: Record<Control, { name: string; text: string; icon: MenuEntry['icon']; danger?: true }> = {
  suspend: {
    name: 'Suspend eSIM',
    text: 'Its data stops until you resume it. Its validity goes on.',
    icon: 'pause',
  },
  resume: { name: 'Resume eSIM', text: 'Its data works again.', icon: 'check' },
  replace: {
    name: 'Replace eSIM',
    text: 'We cancel this eSIM and issue a new one of the same package. The refund of the old one pays for it.',
    icon: 'refresh',
  },
  revoke: {
    name: 'Revoke eSIM',
    text: 'Its data stops for ever, and nothing is refunded. This cannot be undone.',
    icon: 'trash',
    danger: true,
  },
};
const ORDER: readonly Control[] = ['suspend', 'resume', 'replace', 'revoke'];

/** The actions that an eSIM allows now, a refund request, and further entries at the end. */
export function EsimActions({ esim, more = [] }: { esim: Esim; more?: readonly MenuEntry[] }) {
  const mayControl = useScope('esims:write');
  const mayRequest = useScope('refunds:write');
  const [open, setOpen] = useState<Control | 'refund' | 'label' | null>(null);
  const close = () => setOpen(null);
  const controls = ORDER.filter((control) => mayControl && esim.actions.includes(control));
  const entries: MenuEntry[] = [
    ...(mayControl ? [{ name: 'Edit label', icon: 'edit' as const, onSelect: () => setOpen('label') }] : []),
    ...controls
      .filter((control) => !CONTROLS[control].danger)
      .map((control) => ({ ...CONTROLS[control], onSelect: () => setOpen(control) })),
    ...(mayRequest
      ? [{ name: 'Request refund', icon: 'coin' as const, onSelect: () => setOpen('refund') }]
      : []),
    ...controls
      .filter((control) => CONTROLS[control].danger)
      .map((control) => ({ ...CONTROLS[control], onSelect: () => setOpen(control) })),
    ...more,
  ];
  return (
    <>
      <ActionMenu entries={entries} />
      {open === 'refund' && <RefundDialog esim={esim} onClose={close} />}
      {open === 'label' && <LabelDialog esim={esim} onClose={close} />}
      {open !== null && open !== 'refund' && open !== 'label' && (
        <ControlDialog esim={esim} control={open} onClose={close} />
      )}
    </>
  );
}

function LabelDialog({ esim, onClose }: { esim: Esim; onClose: () => void }) {
  const [label, setLabel] = useState(esim.label ?? '');
  const queries = useQueryClient();
  const { busy, error, run } = useAction(async () => {
    await send('PATCH', `esims/${esim.id}`, { label: label.trim() === '' ? null : label.trim() });
    await queries.invalidateQueries({ queryKey: ['esims'] });
    onClose();
  });
  return (
    <Dialog
      onClose={onClose}
      title="Edit label"
      onSubmit={() => void run()}
      foot={
        <>
          <Cancel onClick={onClose} />
          <Submit busy={busy}>Save</Submit>
        </>
      }
    >
      <TextField
        label="Label"
        value={label}
        onChange={setLabel}
        hint="Your name for the eSIM, such as the traveler’s."
        error={fieldError(error, 'label')}
      />
      <ErrorNote error={error} />
    </Dialog>
  );
}

type DialogProps = { esim: Esim; control: Control; onClose: () => void };

function ControlDialog({ esim, control, onClose }: DialogProps) {
  const { name, text, danger } = CONTROLS[control];
  const [reason, setReason] = useState('');
  const queries = useQueryClient();
  const navigate = useNavigate();
  const { busy, error, run } = useAction(async () => {
    const path = `esims/${esim.id}/${control}`;
    if (control === 'replace') {
      const order = await post<Order>(path);
      onClose();
      await navigate({ to: '/orders/$orderId', params: { orderId: order.id } });
    } else {
      await post<Esim>(path, reason.trim() === '' ? {} : { reason: reason.trim() });
      onClose();
      notify('Requested. The eSIM changes when the network confirms it.');
    }
    void queries.invalidateQueries({ queryKey: ['esims'] });
  });
  return (
    <Dialog
      onClose={onClose}
      title={name}
      description={text}
      onSubmit={() => void run()}
      live={esim.mode === 'live' && <strong>Live eSIM.</strong>}
      foot={
        <>
          <Cancel onClick={onClose} />
          <Submit busy={busy} danger={danger === true}>
            {name}
          </Submit>
        </>
      }
    >
      {control !== 'replace' && (
        <TextField
          label="Reason"
          optional
          value={reason}
          onChange={setReason}
          error={fieldError(error, 'reason')}
        />
      )}
      <ErrorNote error={error} />
    </Dialog>
  );
}
