/**
 * Advisory locks, which the server releases when the connection ends. Each is a pair of numbers: the first is ours, so that other
 * programs in the same database are not met; the second is one of these, or the number of a worker, from 1.
 */
export const LOCKS = 0x72_75_73_68

/** Held by a transaction that claims a run: accounts are served in turn. */
export const CLAIMS_LOCK = 0
/** Held by a process that creates or migrates the schema. */
export const FORMAT_LOCK = -1
