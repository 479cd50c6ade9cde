import { Link } from '@tanstack/react-router';
import { useEffect, type ReactNode } from 'react';
import { useSession } from '../api/session.ts';
import { Icon } from '../components/icon.tsx';
import { MODE_NAMES, useMode } from './use-mode.ts';

type Props = {
  /** Names the screen in the breadcrumb and in the window's title. */
  name: string;
  /** The screen in the breadcrumb; default: the name. */
  crumb?: string;
  /** The list that the object of this screen belongs to. */
  parent?: { to: string; name: string };
  /** The heading; default: the name. */
  title?: ReactNode;
  lead?: ReactNode;
  /** State, ids and times below the heading of an object. */
  under?: ReactNode;
  /** Controls of the object's state, below the rest of the head. */
  state?: ReactNode;
  actions?: ReactNode;
  children?: ReactNode;
};

/** A screen below the bar with the breadcrumb and the mode. */
export function Screen({
  name,
  crumb = name,
  parent,
  title = name,
  lead,
  under,
  state,
  actions,
  children,
}: Props) {
  const brand = useSession().branding?.name ?? 'Partner portal';
  useEffect(() => {
    document.title = `${name} · ${brand}`;
  }, [name, brand]);
  return (
    <>
      <PageBar name={crumb} {...(parent ? { parent } : {})} />
      <div className="page">
        <div className="head">
          <div>
            <h1>{title}</h1>
            {lead && <p>{lead}</p>}
            {under && <div className="under-title reveals">{under}</div>}
            {state}
          </div>
          {actions && <div className="actions">{actions}</div>}
        </div>
        {children}
      </div>
    </>
  );
}

/** Live is real money and must never look like Sandbox. */
export function PageBar({ name, parent }: Pick<Props, 'name' | 'parent'>) {
  const mode = useMode();
  return (
    <div className="pagebar" data-mode={mode}>
      <nav className="crumbs" aria-label="Breadcrumb">
        <ol>
          {parent && (
            <li>
              <Link to={parent.to}>{parent.name}</Link>
            </li>
          )}
          <li>
            <span aria-current="page">{name}</span>
          </li>
        </ol>
      </nav>
      <p className="mode-note">
        <Icon name={mode} />
        <strong>{MODE_NAMES[mode]}</strong>
        <span className="more">
          {mode === 'live' ? 'charged to your balance' : 'simulated eSIMs, no charges'}
        </span>
      </p>
    </div>
  );
}
