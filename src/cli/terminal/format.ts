/** Formats counts, statuses and durations for people. */

import { withProgress } from '../../protocol/run-state.js'
import { shortened } from '../../protocol/text.js'

/** For example `1 run`, `2 runs`. */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`

const UNITS: readonly (readonly [number, string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
]

/** For example `3 min ago`. */
export function formatAgo(ms: number): string {
  const [size, unit] = UNITS.find(([each]) => ms >= each) ?? [1_000, 's']
  return ms < 1_000 ? 'now' : `${Math.floor(ms / size)} ${unit} ago`
}

/** Breaks a text into lines at spaces, but not inside `…`, so that commands can be copied. */
export function wrapWords(text: string, columns: number): readonly string[] {
  if (text.length <= columns) return [text]
  const lines: string[] = []
  for (const word of text.match(/(?:`[^`]*`|\S)+/g) ?? []) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= columns) lines.splice(-1, 1, `${last} ${word}`)
    else lines.push(word)
  }
  return lines
}

/** The status of the only run, or for example `2 succeeded, 1 queued`. */
export function statusText(statuses: ReadonlyMap<string, string>, runs: number, detail: string): string {
  const counts = new Map<string, number>()
  for (const status of statuses.values()) counts.set(status, (counts.get(status) ?? 0) + 1)
  const [only = ''] = statuses.values()
  const text =
    runs === 1
      ? withProgress(only, detail)
      : [...counts].map(([status, count]) => `${count} ${status}`).join(', ')
  return shortened(text, 60)
}

/** Formats a row for a pipe. */
export const tabRow = (cells: readonly string[]): string => cells.join('\t')

/** Printed after a signal, while a create has no response. */
export const GRACE_NOTE =
  'Waiting up to 10 s for the response to each create that was sent, so that no run id is lost. ' +
  'Press Ctrl-C again to stop now.'
