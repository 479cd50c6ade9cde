import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { Pick, PickText } from './form.tsx';
import { capitalized, words } from './format.ts';

type Choice = {
  name: string;
  label: string;
  options: readonly string[];
  /** Names of the options; default: the code in words. */
  nameOf?: (option: string) => string;
};
type Text = {
  name: string;
  label: string;
  placeholder?: string;
  /** Values that the server accepts; others are not written to the address. */
  pattern?: RegExp;
};

/** Typing takes effect after this pause. */
const TYPING_MS = 350;

type Search = Record<string, string | undefined>;

/** Sets one parameter of the address, or removes it. */
export function useSetParameter(): (name: string, value: string) => void {
  const navigate = useNavigate();
  return (name, value) =>
    void navigate({
      to: '.',
      search: (last: Search) => {
        const { [name]: _before, ...others } = last;
        return value === '' ? others : { ...others, [name]: value };
      },
      replace: true,
      resetScroll: false,
    });
}

const inWords = (code: string): string => capitalized(words(code));

type Props = {
  choices?: readonly Choice[];
  texts?: readonly Text[];
  /** Offers a range of times, as `created_after` and `created_before`. */
  times?: boolean;
  children?: ReactNode;
};

/** Filters stored in the address: a link shows the same list. */
export function UrlFilters({ choices = [], texts = [], times = false, children }: Props) {
  const search: Search = useSearch({ strict: false });
  const set = useSetParameter();
  return (
    <div className="filters" role="search" aria-label="Filters">
      {choices.map(({ name, label, options, nameOf = inWords }) => (
        <Pick
          key={name}
          label={label}
          value={search[name] ?? ''}
          onChange={(value) => set(name, value)}
          options={[['', 'Any'], ...options.map((option) => [option, nameOf(option)] as const)]}
        />
      ))}
      {texts.map(({ name, label, placeholder = 'any', pattern }) => (
        <TypedFilter
          key={name}
          label={label}
          placeholder={placeholder}
          isWhole={(text) => pattern?.test(text) ?? true}
          value={search[name] ?? ''}
          onRest={(value) => set(name, value)}
        />
      ))}
      {times && <TimeFilters search={search} set={set} />}
      {children}
    </div>
  );
}

/** A half-typed year is a valid date too, in one of the first centuries. */
const isWholeTime = (text: string) => /^[2-9]\d{3}-/.test(text);

/** Formats a time as `2026-11-22T13:05` in the viewer's zone, for an input field. */
function local(at: string | undefined): string {
  if (at === undefined || Number.isNaN(Date.parse(at))) return '';
  const date = new Date(at);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

const TIMES = [
  ['created_after', 'After'],
  ['created_before', 'Before'],
] as const;

/** A range of times, in the viewer's zone. */
export function TimeFilters({ search, set }: { search: Search; set: (name: string, value: string) => void }) {
  return TIMES.map(([name, label]) => (
    <TypedFilter
      key={name}
      label={label}
      type="datetime-local"
      value={local(search[name])}
      onRest={(value) => set(name, value === '' ? '' : new Date(value).toISOString())}
      isWhole={isWholeTime}
    />
  ));
}

type TypedProps = {
  label: string;
  placeholder?: string;
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
  return <PickText {...field} value={draft ?? value} onChange={setDraft} />;
}
