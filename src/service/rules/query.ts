/** The values of a query string. All functions throw `Refusal` (400) that names the field. Pure. */
import { shortened } from '../../protocol/text.js'
import { refusalSaying } from './refusal.js'

export type Query = Readonly<Record<string, unknown>>

const refuse = (sentence: string) => refusalSaying('invalid_input', sentence)

/** An empty value is the same as none, since forms send those. */
export function textIn(query: Query, name: string, maxLength = 300): string | undefined {
  const value = query[name]
  if (value === undefined || value === '') return undefined
  if (typeof value !== 'string') throw refuse(`${name} is given more than once.`)
  if (value.length > maxLength) throw refuse(`${name} has more than ${maxLength} characters.`)
  return value
}

export function numberIn(query: Query, name: string, min: number, max: number): number | undefined {
  const text = textIn(query, name)
  if (text === undefined) return undefined
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  throw refuse(`${name}: "${shortened(text)}" is not a whole number from ${min} to ${max}.`)
}

/** The sequence of a run or an entry, as an earlier page gave it. */
export const cursorIn = (query: Query, name: string): number | undefined =>
  numberIn(query, name, 0, Number.MAX_SAFE_INTEGER)

export function choiceIn<Choice extends string>(
  query: Query,
  name: string,
  choices: readonly Choice[],
): Choice | undefined {
  const text = textIn(query, name)
  const found = choices.find((each) => each === text)
  if (text !== undefined && found === undefined)
    throw refuse(`${name}: "${shortened(text)}" is not one of ${choices.join(', ')}.`)
  return found
}
