import { useId, type ReactNode } from 'react';
import { ApiError } from '../api/client.ts';

type FieldProps = {
  label: string;
  value: string;
  onChange: (value: string) => void;
  hint?: string;
  error?: string | undefined;
  type?: string;
  required?: boolean;
  placeholder?: string;
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
  placeholder,
}: FieldProps) {
  const id = useId();
  const described = [hint ? `${id}-hint` : '', error ? `${id}-error` : ''].filter(Boolean).join(' ');
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type={type}
        value={value}
        required={required}
        placeholder={placeholder}
        autoComplete="off"
        spellCheck={false}
        aria-invalid={error ? true : undefined}
        aria-describedby={described || undefined}
        onChange={(event) => onChange(event.target.value)}
      />
      {hint && (
        <span id={`${id}-hint`} className="hint">
          {hint}
        </span>
      )}
      {error && (
        <span id={`${id}-error`} className="field-error" role="alert">
          {error}
        </span>
      )}
    </div>
  );
}

type SelectProps = {
  label: string;
  value: string;
  onChange: (value: string) => void;
  options: readonly (readonly [value: string, name: string])[];
};

export function SelectField({ label, value, onChange, options }: SelectProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.target.value)}>
        {options.map(([option, name]) => (
          <option key={option} value={option}>
            {name}
          </option>
        ))}
      </select>
    </div>
  );
}

type ChoicesProps = {
  legend: string;
  hint?: string;
  options: readonly (readonly [value: string, name: string])[];
  chosen: readonly string[];
  onChange: (chosen: string[]) => void;
};

/** Check boxes under one name. */
export function Checkboxes({ legend, hint, options, chosen, onChange }: ChoicesProps) {
  return (
    <fieldset className="choices">
      <legend>{legend}</legend>
      {hint && <p className="hint">{hint}</p>}
      <div className="choice-list">
        {options.map(([option, name]) => (
          <label key={option}>
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

type RadiosProps = Omit<ChoicesProps, 'chosen' | 'onChange'> & {
  chosen: string;
  onChange: (chosen: string) => void;
};

export function Radios({ legend, hint, options, chosen, onChange }: RadiosProps) {
  const name = useId();
  return (
    <fieldset className="choices">
      <legend>{legend}</legend>
      {hint && <p className="hint">{hint}</p>}
      <div className="choice-list">
        {options.map(([option, text]) => (
          <label key={option}>
            <input type="radio" name={name} checked={option === chosen} onChange={() => onChange(option)} />
            <span>{text}</span>
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

export function Submit({ children, busy, danger = false, disabled = false }: SubmitProps) {
  return (
    <button type="submit" className={danger ? 'button danger' : 'button primary'} disabled={busy || disabled}>
      {children}
    </button>
  );
}
