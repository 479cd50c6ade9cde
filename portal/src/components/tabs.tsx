import { Tabs as Base } from '@base-ui/react/tabs';
import type { ReactNode } from 'react';

type Props = { label: string; tabs: readonly (readonly [name: string, content: ReactNode])[] };

/** Parts of one thing, of which one is shown. The first one is open at the beginning. */
export function Tabs({ label, tabs }: Props) {
  return (
    <Base.Root defaultValue={tabs[0]?.[0]}>
      <Base.List className="tabs" aria-label={label}>
        {tabs.map(([name]) => (
          <Base.Tab key={name} value={name} className="tab">
            {name}
          </Base.Tab>
        ))}
      </Base.List>
      {tabs.map(([name, content]) => (
        <Base.Panel key={name} value={name} className="tab-panel">
          {content}
        </Base.Panel>
      ))}
    </Base.Root>
  );
}
