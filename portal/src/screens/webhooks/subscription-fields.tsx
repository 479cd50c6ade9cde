import { Checkboxes, fieldError, TextField } from '../../components/form.tsx';
import { LEVELS_HINT, SUBSCRIPTION_HINT, SUBSCRIPTION_OPTIONS } from './subscriptions.ts';

export type Subscription = {
  types: string[];
  /** As typed, such as `25, 90`. */
  levels: string;
  description: string;
};

type Props = { value: Subscription; onChange: (value: Subscription) => void; error: unknown };

/** The fields of an endpoint after its URL. */
export function SubscriptionFields({ value, onChange, error }: Props) {
  return (
    <>
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
