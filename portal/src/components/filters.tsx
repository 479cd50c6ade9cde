import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { SelectField, TextField } from './form.tsx';

type Choice = { name: string; label: string; options: readonly string[] };
type Text = {
  name: string;
  label: string;
  placeholder?: string;
  /** Values that the server accepts; others are not written to the address. `shape` describes the pattern in words. */
  pattern?: RegExp;
  shape?: string;
};

/** Typing takes effect after this pause. */
const TYPING_MS = 350;

/** Filters stored in the address: a link shows the same list. */
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
  /** Called after a pause with the typed text if it is complete, or with nothing. */
  onRest: (value: string) => void;
  isWhole: (text: string) => boolean;
};

/** A field whose text is written to the address after typing, and cleared when the address loses it. */
export function TypedFilter({ value, onRest, isWhole, ...field }: TypedProps) {
  const [draft, setDraft] = useState<string | null>(null);
  /** The address's value that this field last read or wrote. */
  const known = useRef(value);
  useEffect(() => {
    if (value === known.current) return;
    // Changed from outside: after going back or removing the filter, the address wins over earlier typing.
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
    // `onRest` and `isWhole` change identity with each rendering, but not their behavior.
  }, [draft]);
  return <TextField {...field} value={draft ?? value} onChange={setDraft} />;
}
