/**
 * What was typed and chosen: kept in this tab of the browser until the run is created, so that a reload or a sign-in loses nothing.
 * Images stay only while the page does.
 */
import { type Draft, draftOf, draftText, EMPTY_DRAFT } from './draft.js'
import type { Reference } from './reference-list.js'

export interface FormStart extends Draft {
  readonly references: readonly Reference[]
}

const KEY = 'rushes.new-run'

let kept: { readonly email: string; readonly references: readonly Reference[] } | undefined

export function savedDraft(email: string): FormStart {
  const references = kept?.email === email ? kept.references : []
  try {
    return { ...(draftOf(sessionStorage.getItem(KEY), email) ?? EMPTY_DRAFT), references }
  } catch {
    // Storage can be turned off.
    return { ...EMPTY_DRAFT, references }
  }
}

export function saveDraft({ kind, values, references }: FormStart, email: string): void {
  kept = { email, references }
  try {
    sessionStorage.setItem(KEY, draftText({ kind, values }, email))
  } catch {
    // Full or turned off: it holds until the page is closed.
  }
}

export function forgetDraft(): void {
  kept = undefined
  try {
    sessionStorage.removeItem(KEY)
  } catch {
    // There is none.
  }
}
