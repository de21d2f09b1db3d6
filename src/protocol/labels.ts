/** Labels: texts that group the runs of the journal. They are never sent to a service. */
import { printable } from './text.js'

export const MAX_LABELS = 20
const MAX_LABEL_LENGTH = 100

/** Returns the form in which a label is stored and compared: without spaces at its ends, in Unicode's form NFC. */
export const asLabel = (text: string): string => text.normalize('NFC').trim()

/** Returns the problem of a label in the form of `asLabel`, if any. */
export function labelProblem(label: string): string | undefined {
  if (label === '') return 'a label must not be empty'
  // Format characters are allowed: emoji and some scripts are written with them. Half of a pair has no UTF-8.
  if (printable(label) !== label || /\p{Cs}/u.test(label))
    return 'a label must not contain control characters'
  return [...label].length > MAX_LABEL_LENGTH
    ? `a label must have at most ${MAX_LABEL_LENGTH} characters`
    : undefined
}
