import { usageError } from '../../errors.js'

/** Throws `usage` that names the flag or argument (`what`) unless the text is a whole number within the bounds. */
export function wholeNumber(text: string, what: string, min: number, max: number): number {
  const number = /^-?\d+$/.test(text) ? Number(text) : Number.NaN
  if (number >= min && number <= max) return number
  throw usageError(`${what}: "${text}" is not a whole number from ${min} to ${max}.`)
}
