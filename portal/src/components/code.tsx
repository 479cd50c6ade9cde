import type { ReactNode } from 'react';
import { CopyButton } from './copy-button.tsx';

type Props = {
  /** Names the text for screen readers, such as `Request body`. */
  label: string;
  /** Shown above the text; default: the label. */
  head?: ReactNode;
  text: string;
  /** `group` where one screen may have several texts of the same name. */
  role?: 'region' | 'group';
};

/** Preformatted text that scrolls on its own. */
export function Code({ label, head = label, text, role = 'region' }: Props) {
  return (
    <div className="code reveals">
      <div className="code-head">
        <span>{head}</span>
        <CopyButton text={text} label={`Copy ${label.toLowerCase()}`} />
      </div>
      <pre tabIndex={0} role={role} aria-label={label}>
        {text}
      </pre>
    </div>
  );
}
