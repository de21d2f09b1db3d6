/**
 * What was typed and chosen: kept in this tab of the browser until the run is created or the user signs out, so that a reload or a
 * session that expires loses nothing. Images from files stay only while the page does.
 */
import { draftOf, draftText } from './draft.js'
import { createDrafts, NEW_RUN } from './drafts.js'
import { referenceOfUrl } from './read-references.js'

const PREFIX = 'rushes.new-run '
/** Each user of this tab has one for each form. */
const keyOf = (name: string, owner: string): string =>
  `${PREFIX}${owner}${name === NEW_RUN ? '' : ` ${name}`}`

export const drafts = createDrafts({
  read(name, owner) {
    try {
      const kept = draftOf(sessionStorage.getItem(keyOf(name, owner)), owner)
      return kept && { ...kept, references: kept.urls.map(referenceOfUrl) }
    } catch {
      // Storage can be turned off.
      return undefined
    }
  },
  write(name, owner, draft) {
    try {
      // First, also of one that is replaced: where there is no room, an older one without its request would create a second run.
      sessionStorage.removeItem(keyOf(name, owner))
      if (draft !== undefined) sessionStorage.setItem(keyOf(name, owner), draftText(draft, owner))
    } catch {
      // Full or turned off: it holds until the page is closed.
    }
  },
})

/** Of all users of this tab: whoever signs out leaves nothing behind. */
export function forgetDrafts(): void {
  try {
    for (const name of Object.keys(sessionStorage))
      if (name.startsWith(PREFIX)) sessionStorage.removeItem(name)
  } catch {
    // There is none.
  }
}
