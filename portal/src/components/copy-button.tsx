import { useState } from 'react';

/** Copies `text`. The screen reader's text never repeats it, because it may be a secret. */
export function CopyButton({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [state, setState] = useState<'idle' | 'copied' | 'refused'>('idle');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setState('copied');
    } catch {
      setState('refused');
    }
  };
  return (
    <span className="copy">
      <button
        type="button"
        className="button small"
        onClick={() => void copy()}
        onBlur={() => setState('idle')}
      >
        {label}
      </button>
      <span role="status" className="copy-state">
        {state === 'copied' && 'Copied'}
        {state === 'refused' && 'Your browser blocked copying. Select the text and copy it.'}
      </span>
    </span>
  );
}

/** An id with a copy button. @param what names the id in the button's label: `order id` */
export function CopyFact({ text, what }: { text: string; what: string }) {
  return (
    <>
      <code>{text}</code> <CopyButton text={text} label={`Copy ${what}`} />
    </>
  );
}
