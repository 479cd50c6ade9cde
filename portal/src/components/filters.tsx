import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { SelectField, TextField } from './form.tsx';

type Choice = { name: string; label: string; options: readonly string[] };
type Text = {
  name: string;
  label: string;
  placeholder?: string;
  /** What the server takes; anything else stays out of the address. `shape` says it in words. */
  pattern?: RegExp;
  shape?: string;
};

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
      {texts.map(({ name, label, placeholder, pattern, shape }) => (
        <TypedFilter
          key={name}
          label={label}
          {...(placeholder === undefined ? {} : { placeholder })}
          {...(shape === undefined ? {} : { hint: shape })}
          isWhole={(text) => pattern?.test(text) ?? true}
          value={search[name] ?? ''}
          onRest={(value) => set(name, value)}
        />
      ))}
    </div>
  );
}

type TypedProps = {
  label: string;
  placeholder?: string;
  hint?: string;
  type?: string;
  value: string;
  /** Called with what is typed when it rests and is whole, or nothing. */
  onRest: (value: string) => void;
  isWhole: (text: string) => boolean;
};

/** A field whose text gets into the address when one has typed it, and goes when the address loses it. */
export function TypedFilter({ value, onRest, isWhole, ...field }: TypedProps) {
  const [draft, setDraft] = useState<string | null>(null);
  /** What the address has, as far as this field knows. */
  const known = useRef(value);
  useEffect(() => {
    if (value === known.current) return;
    // Not by this field: who went back or took the filter away means the address, not what was typed before.
    known.current = value;
    setDraft(null);
  }, [value]);
  useEffect(() => {
    const next = draft?.trim();
    if (next === undefined || next === known.current || !(next === '' || isWhole(next))) return;
    const timer = window.setTimeout(() => {
      known.current = next;
      onRest(next);
    }, TYPING_MS);
    return () => window.clearTimeout(timer);
    // `onRest` and `isWhole` are other functions at each rendering; what they do depends on nothing else.
  }, [draft]);
  return <TextField {...field} value={draft ?? value} onChange={setDraft} />;
}
