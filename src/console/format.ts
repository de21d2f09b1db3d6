/** Numbers, times and URLs as the pages show them. */
import { capitalized, withEllipsis } from '../protocol/text.js'

export const number = (value: number): string => value.toLocaleString('en')
/** `1 run`, `1,200 runs` */
export const plural = (count: number, noun: string): string =>
  `${number(count)} ${noun}${count === 1 ? '' : 's'}`
export const credits = (count: number): string => plural(count, 'credit')
/** `+1,000`, `−6` */
export const amount = (value: number): string => `${value < 0 ? '−' : '+'}${number(Math.abs(value))}`

/** `2026-01-31 09:30:00 UTC` */
export const timeText = (ms: number): string =>
  `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`

/** `Aspect ratio` for `aspect_ratio`, `Image` for `image_urls`. */
export const labelOf = (name: string): string =>
  capitalized(name.replace(/_urls$/, 's').replace(/[_.-]+/g, ' '))
/** The unit of a parameter, which no schema has. */
export const unitOf = (name: string): string => (name === 'duration' ? ' s' : '')

/** Cuts text without splitting a character. */
export const cut = (text: string, length: number): string =>
  [...text.slice(0, 2 * length)].length > length
    ? `${[...text.slice(0, 2 * length)].slice(0, length - 1).join('')}…`
    : withEllipsis(text, 2 * length)

export type UrlQuery = Readonly<Record<string, string | number | undefined>>

/** A path with a query without empty fields, so that each view has one short URL. */
export function linkTo(path: string, query: UrlQuery): string {
  const fields = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, String(value)]],
  )
  return fields.length === 0 ? path : `${path}?${new URLSearchParams(fields)}`
}
