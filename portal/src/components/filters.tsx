import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { SelectField, TextField } from './form.tsx';

type Choice = { name: string; label: string; options: readonly string[] };
type Text = { name: string; label: string; placeholder?: string };

/** What one types counts when it rests for so long. */
const TYPING_MS = 350;

/** Filters that live in the address: a link shows what one sees. */
export function UrlFilters({
  choices = [],
  texts = [],
}: {
  choices?: readonly Choice[];
  texts?: readonly Text[];
}) {
  const search: Record<string, string | undefined> = useSearch({ strict: false });
  const navigate = useNavigate();
  const set = (name: string, value: string) =>
    void navigate({
      to: '.',
      search: (last: Record<string, string | undefined>) => {
        const { [name]: _before, ...others } = last;
        return value === '' ? others : { ...others, [name]: value };
      },
      replace: true,
      resetScroll: false,
    });
  return (
    <div className="filter-fields" role="search" aria-label="Filters">
      {choices.map(({ name, label, options }) => (
        <SelectField
          key={name}
          label={label}
          value={search[name] ?? ''}
          onChange={(value) => set(name, value)}
          options={[['', 'Any'], ...options.map((option) => [option, option.replaceAll('_', ' ')] as const)]}
        />
      ))}
      {texts.map(({ name, label, placeholder }) => (
        <TypedFilter
          key={name}
          label={label}
          {...(placeholder === undefined ? {} : { placeholder })}
          value={search[name] ?? ''}
          onRest={(value) => set(name, value)}
        />
      ))}
    </div>
  );
}

type TypedProps = { label: string; placeholder?: string; value: string; onRest: (value: string) => void };

function TypedFilter({ label, placeholder, value, onRest }: TypedProps) {
  const [text, setText] = useState(value);
  useEffect(() => {
    if (text.trim() === value) return;
    const timer = window.setTimeout(() => onRest(text.trim()), TYPING_MS);
    return () => window.clearTimeout(timer);
    // `onRest` is another function at each rendering; what it does depends on nothing else.
  }, [text, value]);
  return (
    <TextField label={label} value={text} onChange={setText} {...(placeholder ? { placeholder } : {})} />
  );
}
