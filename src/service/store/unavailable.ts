import { messageOf } from '../../errors.js'

/** The database cannot be reached, or cannot take a change at the moment: the same may succeed later. */
export class DatabaseUnavailable extends Error {
  override readonly name = 'DatabaseUnavailable'
  readonly code = 'DATABASE_UNAVAILABLE'
  /** The connection was lost while the change was committed, so it may have been made. */
  readonly isUnknown: boolean

  constructor(cause: unknown, { isUnknown = false } = {}) {
    const reason = messageOf(cause)
    super(isUnknown ? `${reason}; the change may have been made` : reason, { cause })
    this.isUnknown = isUnknown
  }
}
