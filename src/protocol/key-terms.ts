/** What a key may be limited to, checked by the service and by the form of the console. */

/** For one change of a balance, and for a limit. Thousands of these fit into a balance, which must stay an integer that a double holds exactly. */
export const MAX_CREDITS = 1_000_000_000_000

/** Addresses and networks in the whitelist of a key. */
export const MAX_ALLOWED_IPS = 100

/** Of an account: those that are not disabled. */
export const MAX_ACTIVE_KEYS = 200

/** The last instant that RFC 3339 can write: years have four digits. */
export const MAX_TIME_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999)
