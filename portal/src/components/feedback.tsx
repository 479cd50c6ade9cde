import type { ReactNode } from 'react';
import { ApiError } from '../api/client.ts';
import { returnAddress } from '../api/return-address.ts';
import { useSession } from '../api/session.ts';
import { Callout } from './callout.tsx';
import { Code } from './code.tsx';
import { Id } from './copy-button.tsx';
import { Icon, type IconName } from './icon.tsx';

/** Names of the actions that need a recent sign-in. */
const ACTIONS: readonly (readonly [RegExp, string])[] = [
  [/^POST api-keys$/, 'Creating a Live key'],
  [/^POST api-keys\/.+\/rotate$/, 'Rotating a Live key'],
  [/^POST api-keys\/.+\/revoke$/, 'Revoking a Live key'],
  [/^POST webhook-endpoints$/, 'Creating a Live endpoint'],
  [/^POST .+\/rotate-secret/, 'Rotating a signing secret'],
  [/^POST .+\/replay$/, 'A replay of this size'],
  [/^POST .+\/enable$/, 'Resending or discarding deliveries'],
  [/^POST .+\/disable$/, 'Switching a Live endpoint off'],
  [/^PATCH webhook-endpoints\//, 'Changing a Live endpoint'],
  [/^DELETE webhook-endpoints\//, 'Deleting a Live endpoint'],
  [/^POST orders\/.+\/cancel$/, 'Canceling a Live order'],
  [/^POST esims\/.+\/replace$/, 'Replacing a Live eSIM'],
  [/^POST esims\/.+\/revoke$/, 'Revoking a Live eSIM'],
  [/^POST esims\/.+\/install-data$/, 'Showing install data of a Live eSIM'],
  [/^POST esims\/.+\/install-links$/, 'Creating an install link for a Live eSIM'],
];

/** The action needs a sign-in within the last 15 minutes: names it, and leads to a new sign-in. */
function StepUp({ call }: { call: string }) {
  const address = returnAddress(useSession().return_url, 'step_up');
  const action = ACTIONS.find(([pattern]) => pattern.test(call))?.[1] ?? 'This action';
  return (
    <Callout
      tone="warn"
      role="alert"
      title="Sign in again to continue"
      actions={
        address && (
          <a className="button small primary" href={address}>
            Sign in again
          </a>
        )
      }
    >
      <p>
        {action} needs a sign-in within the last 15 minutes. Nothing was changed.
        {!address && ' Open the portal again from your provider’s site.'}
      </p>
    </Callout>
  );
}

/** Forms mark their invalid fields, so the API's hint at `errors` does not help there. */
function messageOf({ call, fields, message }: ApiError): string {
  return fields.size > 0 && !call.startsWith('GET ')
    ? 'Nothing was changed. Correct the marked fields.'
    : message;
}

/** An error with the request id that support needs. */
export function ErrorNote({ error, retry }: { error: unknown; retry?: () => void }) {
  if (error === null || error === undefined) return null;
  const known = error instanceof ApiError ? error : null;
  if (known?.code === 'step_up_required') return <StepUp call={known.call} />;
  return (
    <Callout
      tone="bad"
      role="alert"
      actions={
        retry && (
          <button type="button" className="button small" onClick={retry}>
            Try again
          </button>
        )
      }
    >
      <p>
        {known ? messageOf(known) : 'We could not reach the portal. Check your connection and try again.'}
      </p>
      {known?.requestId && (
        <p className="small">
          Request <Id text={known.requestId} what="request id" />
        </p>
      )}
    </Callout>
  );
}

type EmptyProps = { title: string; icon?: IconName; children?: ReactNode; command?: string };

/** An empty state: what will appear here, and how to make it appear. */
export function Empty({ title, icon = 'info', children, command }: EmptyProps) {
  return (
    <div className="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      {children}
      {command !== undefined && <Code label="Command" head="Terminal" text={command} role="group" />}
    </div>
  );
}

/** Widths of placeholder lines in rem, so that they look like text. */
const WIDTHS = [14, 20, 11, 17, 9, 15];

/** Placeholder rows of the final height, so that nothing jumps. */
export function Loading({ lines = 6 }: { lines?: number }) {
  return (
    <div className="loading">
      <p className="hidden" role="status">
        Loading
      </p>
      {Array.from({ length: lines }, (_, line) => (
        <div key={line} aria-hidden="true">
          <span className="skeleton" style={{ maxWidth: `${WIDTHS[line % WIDTHS.length]}rem` }} />
        </div>
      ))}
    </div>
  );
}
