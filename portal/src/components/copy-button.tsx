import { useState } from 'react';
import { Icon } from './icon.tsx';
import { notify } from './toasts.tsx';

type Props = { text: string; label: string; shape?: 'icon' | 'button' };

/** Copies `text`. The screen reader's text never repeats it, because it may be a secret. */
export function CopyButton({ text, label, shape = 'icon' }: Props) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
    } catch {
      notify('Your browser blocked copying. Select the text and copy it.', { about: 'copy' });
    }
  };
  const isIcon = shape === 'icon';
  return (
    <>
      <button
        type="button"
        className={isIcon ? 'copy' : 'button small'}
        aria-label={isIcon ? label : undefined}
        title={isIcon ? label : undefined}
        onClick={() => void copy()}
        onBlur={() => setCopied(false)}
      >
        <Icon name={copied ? 'check' : 'copy'} />
        {!isIcon && label}
      </button>
      <span role="status" className="hidden">
        {copied && 'Copied'}
      </span>
    </>
  );
}

/** Characters at the end of an id that stay visible: ULIDs of one time differ there. */
const TAIL = 6;

/**
 * A long id. Its start gives way, but the whole id is in the page for search and selection.
 * @param what names the id in the copy button's label: `order id`
 */
export function Id({ text, what }: { text: string; what: string }) {
  return (
    <span className="id" title={text}>
      <span className="id-head">{text.slice(0, -TAIL)}</span>
      <span className="id-tail">{text.slice(-TAIL)}</span>
      <CopyButton text={text} label={`Copy ${what}`} />
    </span>
  );
}

/** A short text with a copy button, such as a reference. */
export function Copyable({ text, what }: { text: string; what: string }) {
  return (
    <span className="copyable">
      {text}
      <CopyButton text={text} label={`Copy ${what}`} />
    </span>
  );
}
