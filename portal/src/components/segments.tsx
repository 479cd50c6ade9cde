import { useId } from 'react';

type Props<T extends string> = {
  legend: string;
  options: readonly (readonly [value: T, name: string])[];
  value: T;
  onChange: (value: T) => void;
};

/** One of two to four choices, which change the page in place. */
export function Segments<T extends string>({ legend, options, value, onChange }: Props<T>) {
  const name = useId();
  return (
    <fieldset className="segments">
      <legend className="hidden">{legend}</legend>
      {options.map(([option, text]) => (
        <label key={option}>
          <input type="radio" name={name} checked={option === value} onChange={() => onChange(option)} />
          {text}
        </label>
      ))}
    </fieldset>
  );
}
