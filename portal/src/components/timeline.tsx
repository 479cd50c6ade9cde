import type { ReactNode } from 'react';
import { Icon, type IconName } from './icon.tsx';
import type { Tone } from './state.tsx';
import { Time } from './time.tsx';

export type Step = {
  key: string;
  at: string;
  icon: IconName;
  tone: Tone;
  title: ReactNode;
  text?: ReactNode;
  /** Expected, not yet true. */
  ahead?: boolean;
};

const DAY = new Intl.DateTimeFormat(undefined, { weekday: 'long', month: 'long', day: 'numeric' });

function dayOf(at: string): string {
  const date = new Date(at);
  return date.toDateString() === new Date().toDateString() ? 'Today' : DAY.format(date);
}

/** Steps in time, oldest first, under the day of each. Expected steps come last and name their own day. */
export function Timeline({ steps, label }: { steps: readonly Step[]; label: string }) {
  return (
    <ol className="timeline" aria-label={label}>
      {steps.map((step, at) => {
        const day = dayOf(step.at);
        const before = steps[at - 1];
        const isNewDay = !step.ahead && (before === undefined || dayOf(before.at) !== day);
        return [
          isNewDay && (
            <li key={`day ${step.key}`} className="day">
              <h3>{day}</h3>
            </li>
          ),
          <li
            key={step.key}
            className={step.ahead ? 'ahead' : undefined}
            data-tone={step.ahead ? undefined : step.tone}
          >
            <span className="node">
              <Icon name={step.icon} />
            </span>
            <div>
              <h3>{step.title}</h3>
              {step.text && <p>{step.text}</p>}
            </div>
            <Time at={step.at} as={step.ahead ? 'short' : 'clock'} />
          </li>,
        ];
      })}
    </ol>
  );
}
