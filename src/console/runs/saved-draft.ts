/**
 * What was typed and chosen: kept in this tab of the browser until the run is created or the user signs out, so that a reload or a
 * session that expires loses nothing. Images stay only while the page does.
 */
import { type Draft, draftOf, draftText, EMPTY_DRAFT } from './draft.js'
import type { Reference } from './reference-list.js'

export interface FormStart extends Draft {
  readonly references: readonly Reference[]
}

const PREFIX = 'rushes.new-run '
/** Each user of this tab has one. */
const nameOf = (email: string): string => `${PREFIX}${email}`

const kept = new Map<string, readonly Reference[]>()

export function savedDraft(email: string): FormStart {
  const references = kept.get(email) ?? []
  try {
    return { ...(draftOf(sessionStorage.getItem(nameOf(email)), email) ?? EMPTY_DRAFT), references }
  } catch {
    // Storage can be turned off.
    return { ...EMPTY_DRAFT, references }
  }
}

export function saveDraft({ kind, values, references }: FormStart, email: string): void {
  kept.set(email, references)
  try {
    sessionStorage.setItem(nameOf(email), draftText({ kind, values }, email))
  } catch {
    // Full or turned off: it holds until the page is closed.
  }
}

export function forgetDraft(email: string): void {
  kept.delete(email)
  try {
    sessionStorage.removeItem(nameOf(email))
  } catch {
    // There is none.
  }
}

/** Of all users of this tab: whoever signs out leaves nothing behind. */
export function forgetDrafts(): void {
  kept.clear()
  try {
    for (const name of Object.keys(sessionStorage))
      if (name.startsWith(PREFIX)) sessionStorage.removeItem(name)
  } catch {
    // There is none.
  }
}
