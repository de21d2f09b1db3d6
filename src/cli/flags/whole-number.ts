import { usageError } from '../../errors.js'

/** Throws `usage`, naming the flag or argument, for anything else than a whole number within these bounds. */
export function wholeNumber(text: string, what: string, least: number, most: number): number {
  const number = /^-?\d+$/.test(text) ? Number(text) : Number.NaN
  if (number >= least && number <= most) return number
  throw usageError(`${what} ${text}: must be a whole number from ${least} to ${most}.`)
}
