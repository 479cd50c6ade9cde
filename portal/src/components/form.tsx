import { useId, type ReactNode } from 'react';
import { ApiError } from '../api/client.ts';
import { Icon } from './icon.tsx';

type FieldProps = {
  label: string;
  value: string;
  onChange: (value: string) => void;
  hint?: ReactNode;
  error?: string | undefined;
  type?: string;
  required?: boolean;
  optional?: boolean;
  placeholder?: string;
  inputMode?: 'decimal' | 'numeric';
  /** Shown before and after the text, such as a currency's sign and code. */
  affixes?: readonly [before: string, after: string];
  /** Makes the field an area of this many lines. */
  rows?: number;
};

/** A text field with its label, hint and error. */
export function TextField({
  label,
  value,
  onChange,
  hint,
  error,
  type = 'text',
  required,
  optional = false,
  placeholder,
  inputMode,
  affixes,
  rows,
}: FieldProps) {
  const id = useId();
  const described = [hint ? `${id}-hint` : '', error ? `${id}-error` : ''].filter(Boolean).join(' ');
  const shared = {
    id,
    value,
    required,
    placeholder,
    inputMode,
    autoComplete: 'off',
    spellCheck: false,
    'aria-invalid': error ? true : undefined,
    'aria-describedby': described || undefined,
    onChange: (event: { target: { value: string } }) => onChange(event.target.value),
  } as const;
  const input =
    rows === undefined ? (
      <input className="input" type={type} {...shared} />
    ) : (
      <textarea className="input mono" rows={rows} {...shared} />
    );
  return (
    <div className="field">
      <label htmlFor={id}>
        {label}
        {optional && <span className="optional"> (optional)</span>}
      </label>
      {affixes ? (
        <div className="affix">
          <span className="muted" aria-hidden="true">
            {affixes[0]}
          </span>
          {input}
          <span className="muted">{affixes[1]}</span>
        </div>
      ) : (
        input
      )}
      {hint && (
        <span id={`${id}-hint`} className="hint">
          {hint}
        </span>
      )}
      <FieldError id={`${id}-error`} error={error} />
    </div>
  );
}

function FieldError({ id, error }: { id: string; error: string | undefined }) {
  if (!error) return null;
  return (
    <span id={id} className="error" role="alert">
      <Icon name="bad" />
      <span>{error}</span>
    </span>
  );
}

type SelectProps = {
  label: string;
  value: string;
  onChange: (value: string) => void;
  options: readonly (readonly [value: string, name: string])[];
};

const optionsOf = (options: SelectProps['options']) =>
  options.map(([option, name]) => (
    <option key={option} value={option}>
      {name}
    </option>
  ));

export function SelectField({ label, value, onChange, options }: SelectProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <select id={id} className="input" value={value} onChange={(event) => onChange(event.target.value)}>
        {optionsOf(options)}
      </select>
    </div>
  );
}

/** A filter, which names itself inside its frame. */
export function Pick({ label, value, onChange, options }: SelectProps) {
  return (
    <label className="pick">
      <span>{label}</span>
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        {optionsOf(options)}
      </select>
    </label>
  );
}

type PickTextProps = Omit<SelectProps, 'options'> & { placeholder?: string; type?: string };

/** A filter by a typed text. */
export function PickText({ label, value, onChange, placeholder, type = 'text' }: PickTextProps) {
  return (
    <label className="pick">
      <span>{label}</span>
      <input
        type={type}
        value={value}
        placeholder={placeholder}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => onChange(event.target.value)}
      />
    </label>
  );
}

type Option = readonly [value: string, name: string, hint?: string];
type ChoicesProps = {
  legend: string;
  hint?: string;
  options: readonly Option[];
  chosen: readonly string[];
  onChange: (chosen: string[]) => void;
};

/** Check boxes under one name. */
export function Checkboxes({ legend, hint, options, chosen, onChange }: ChoicesProps) {
  return (
    <fieldset className="field">
      <legend>{legend}</legend>
      {hint && <p className="hint">{hint}</p>}
      <div className="choices two">
        {options.map(([option, name]) => (
          <label key={option} className="check">
            <input
              type="checkbox"
              checked={chosen.includes(option)}
              onChange={(event) =>
                onChange(
                  event.target.checked ? [...chosen, option] : chosen.filter((each) => each !== option),
                )
              }
            />
            <span>{name}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

type RadiosProps = Omit<ChoicesProps, 'chosen' | 'onChange' | 'hint'> & {
  chosen: string;
  onChange: (chosen: string) => void;
  /** Side by side, where there is room. */
  two?: boolean;
};

export function Radios({ legend, options, chosen, onChange, two = false }: RadiosProps) {
  const name = useId();
  return (
    <fieldset className="field">
      <legend>{legend}</legend>
      <div className={two ? 'choices two' : 'choices'}>
        {options.map(([option, text, hint]) => (
          <label key={option} className="choice">
            <input
              type="radio"
              name={name}
              checked={option === chosen}
              aria-labelledby={`${name}-${option}`}
              aria-describedby={hint ? `${name}-${option}-hint` : undefined}
              onChange={() => onChange(option)}
            />
            <span>
              <strong id={`${name}-${option}`}>{text}</strong>
              {hint && (
                <span className="hint" id={`${name}-${option}-hint`}>
                  {hint}
                </span>
              )}
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/** The server's error for one field. */
export function fieldError(error: unknown, field: string): string | undefined {
  return error instanceof ApiError ? error.fields.get(field) : undefined;
}

type SubmitProps = { children: ReactNode; busy: boolean; danger?: boolean; disabled?: boolean };

/** The button that decides. While busy it keeps the focus, which a disabled button loses. */
export function Submit({ children, busy, danger = false, disabled = false }: SubmitProps) {
  return (
    <button
      type="submit"
      className={danger ? 'button destroy' : 'button primary'}
      disabled={disabled}
      aria-busy={busy}
      aria-disabled={busy || undefined}
    >
      {busy && <Icon name="run" spin />}
      {children}
    </button>
  );
}

/** The button of a dialog that changes nothing. */
export function Cancel({ onClick, children = 'Cancel' }: { onClick: () => void; children?: ReactNode }) {
  return (
    <button type="button" className="button" onClick={onClick}>
      {children}
    </button>
  );
}
