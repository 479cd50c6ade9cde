import type { ReactNode } from 'react';
import { ApiError } from '../api/client.ts';
import { CopyButton } from './copy-button.tsx';

/** An error with the request id that support needs. */
export function ErrorNote({ error, retry }: { error: unknown; retry?: () => void }) {
  if (error === null || error === undefined) return null;
  const known = error instanceof ApiError ? error : null;
  return (
    <div role="alert" className="note bad">
      <p>{known ? known.message : 'We could not reach the portal. Check your connection and try again.'}</p>
      {known?.requestId && (
        <p className="hint">
          Request <code>{known.requestId}</code> <CopyButton text={known.requestId} label="Copy request id" />
        </p>
      )}
      {retry && (
        <button type="button" className="button small" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** A state as a word and a color. The word alone is sufficient. */
export function Badge({ tone, children }: { tone: 'good' | 'bad' | 'wait' | 'off'; children: ReactNode }) {
  return <span className={`badge ${tone}`}>{children}</span>;
}

/** An empty state: what will appear here, and how to make it appear. */
export function Empty({
  title,
  children,
  command,
}: {
  title: string;
  children?: ReactNode;
  command?: string;
}) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
      {command !== undefined && (
        <div className="command">
          <pre tabIndex={0} aria-label="Command line">
            <code>{command}</code>
          </pre>
          <CopyButton text={command} label="Copy command" />
        </div>
      )}
    </div>
  );
}

/** Placeholder lines of the final height, so that nothing jumps. */
export function Loading({ lines = 6 }: { lines?: number }) {
  return (
    <div className="loading" role="status">
      <span className="visually-hidden">Loading</span>
      {Array.from({ length: lines }, (_, line) => (
        <span key={line} className="loading-line" aria-hidden="true" />
      ))}
    </div>
  );
}
