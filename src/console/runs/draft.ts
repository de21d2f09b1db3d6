/** What was typed into the form of a new run, as it is kept for a reload of the page. Pure. */

import { KINDS, type Kind } from '../../protocol/models.js'
import { isObject, parseJson } from '../../protocol/parse.js'
import type { Values } from './form.js'

export interface Draft {
  readonly kind: Kind
  readonly values: Values
}

export const EMPTY_DRAFT: Draft = { kind: 'image', values: {} }

/** `email`: whose it is. A draft of somebody else in the same browser is not shown. */
export const draftText = (draft: Draft, email: string): string => JSON.stringify({ ...draft, email })

export function draftOf(text: string | null, email: string): Draft | undefined {
  const parsed = text === null ? undefined : parseJson(text)
  if (parsed?.ok !== true || !isObject(parsed.value)) return undefined
  const { kind, values, email: owner } = parsed.value
  const known = KINDS.find((each) => each === kind)
  if (known === undefined || owner !== email || !isObject(values)) return undefined
  const texts = Object.entries(values).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  )
  return { kind: known, values: Object.fromEntries(texts) }
}
