import { Fragment } from 'react';

/** A URL that breaks after its dots and slashes, not inside its words. */
export function Url({ text }: { text: string }) {
  return text.split(/(?<=[./?&])(?=[^./])/).map((part, at) => (
    <Fragment key={at}>
      {at > 0 && <wbr />}
      {part}
    </Fragment>
  ));
}
