import type { Endpoint } from '../../api/types.ts';
import { Checkboxes, fieldError, TextField } from '../../components/form.tsx';
import { LEVELS_HINT, levelsOf, SUBSCRIPTION_HINT, SUBSCRIPTION_OPTIONS } from './subscriptions.ts';

/** An endpoint's settings as typed into a form. */
export type TypedEndpoint = {
  url: string;
  types: string[];
  /** As typed, such as `25, 90`. */
  levels: string;
  description: string;
};

/** The settings of an endpoint that a form changes. Null means the default, or none. */
export type EndpointSettings = Pick<Endpoint, 'url' | 'description'> & {
  event_types: readonly string[] | null;
  usage_levels: readonly number[] | null;
};

/** Returns the settings to send for what was typed. */
export function settingsOf({ url, types, levels, description }: TypedEndpoint): EndpointSettings {
  return {
    url: url.trim(),
    description: description.trim() === '' ? null : description.trim(),
    event_types: types.length === 0 ? null : types,
    usage_levels: levelsOf(levels),
  };
}

type Props = { value: TypedEndpoint; onChange: (value: TypedEndpoint) => void; error: unknown };

/** The fields of the dialogs that create and edit an endpoint. */
export function EndpointFields({ value, onChange, error }: Props) {
  return (
    <>
      <TextField
        label="URL"
        type="url"
        value={value.url}
        onChange={(url) => onChange({ ...value, url })}
        required
        placeholder="https://example.com/webhooks"
        hint="A public HTTPS URL that accepts POST and returns 2xx."
        error={fieldError(error, 'url')}
      />
      <Checkboxes
        legend="Event types"
        hint={SUBSCRIPTION_HINT}
        options={SUBSCRIPTION_OPTIONS}
        chosen={value.types}
        onChange={(types) => onChange({ ...value, types })}
      />
      <TextField
        label="Usage levels"
        optional
        value={value.levels}
        onChange={(levels) => onChange({ ...value, levels })}
        placeholder="25, 90"
        hint={LEVELS_HINT}
        error={fieldError(error, 'usage_levels')}
      />
      <TextField
        label="Description"
        optional
        value={value.description}
        onChange={(description) => onChange({ ...value, description })}
        error={fieldError(error, 'description')}
      />
    </>
  );
}
