import { useId, type ReactNode } from 'react';
import { Icon, type IconName } from './icon.tsx';
import type { Tone } from './state.tsx';

const ICONS: Record<Tone, IconName> = { good: 'ok', off: 'info', run: 'run', warn: 'warn', bad: 'bad' };

type Props = {
  tone: Tone;
  title?: ReactNode;
  children?: ReactNode;
  actions?: ReactNode;
  /** `alert` for an error, `status` for a result. Default: a region named by the title. */
  role?: 'alert' | 'status';
  /** Names the region; default: its title. */
  label?: string;
  className?: string;
};

/** Says what happened, then what to do. More than one in a view become a list. */
export function Callout({ tone, title, children, actions, role, label, className = '' }: Props) {
  const id = useId();
  const name =
    label === undefined && title !== undefined ? { 'aria-labelledby': id } : { 'aria-label': label };
  const isNamed = role === undefined && (label !== undefined || title !== undefined);
  const Element = isNamed ? 'section' : 'div';
  return (
    <Element className={`callout ${className}`} data-tone={tone} role={role} {...(isNamed ? name : {})}>
      <Icon name={ICONS[tone]} spin={tone === 'run'} />
      <div className="body">
        {title !== undefined && (
          <h2 id={id} className="h-md">
            {title}
          </h2>
        )}
        {children}
      </div>
      {actions && <div className="actions">{actions}</div>}
    </Element>
  );
}
