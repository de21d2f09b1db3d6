/** A plan as lines and as JSON, pure. */

import type { Expectation } from '../../batch/plan/expected.js'
import type { Action, Plan, Step } from '../../batch/plan/index.js'
import { printable } from '../../protocol/text.js'
import { formatDuration } from '../flags/duration.js'
import { plural } from '../terminal/plural.js'

export const reasonOf = (action: Action): string | undefined => {
  if (action.do === 'refuse' || action.do === 'fetch' || action.do === 'make') return action.why
  return action.do === 'unconfirmed' ? action.key : undefined
}

/** Action, name, file, reason. */
export const stepCells = ({ entry, file, action }: Step): readonly string[] =>
  [action.do, entry.name, file, reasonOf(action) ?? ''].map(printable)

/** Every key always there, unknown ones null. */
export const stepJson = ({ entry, model, hash, file, action }: Step) => ({
  name: entry.name,
  action: action.do,
  reason: reasonOf(action) ?? null,
  kind: entry.kind ?? null,
  model: model ?? null,
  hash: hash ?? null,
  file,
  run: action.do === 'fetch' ? action.run : null,
  line: entry.at.line,
})

const WORDS: readonly (readonly [Action['do'], string])[] = [
  ['current', 'current'],
  ['fetch', 'to fetch'],
  ['make', 'to make'],
  ['unconfirmed', 'unconfirmed'],
  ['refuse', 'with a file in the way'],
  ['skip', 'left out'],
]

/** `5 runs: 3 current, 2 to make; at least 4 requests, about 40 s` */
export function summaryLine({ counts }: Plan, expectation?: Expectation): string {
  const parts = WORDS.flatMap(([word, said]) => (counts[word] === 0 ? [] : [`${counts[word]} ${said}`]))
  const time = expectation === undefined ? '' : timeOf(expectation)
  const requests = counts.requests === 0 ? '' : `; at least ${counts.requests} requests${time}`
  return `${plural(counts.total, 'run')}${parts.length === 0 ? '' : `: ${parts.join(', ')}`}${requests}`
}

/** Empty when nothing is known and the limit takes no time. */
function timeOf({ leastMs, expectedMs }: Expectation): string {
  if (expectedMs !== undefined) return `, about ${formatDuration(expectedMs)}`
  return leastMs === 0 ? '' : `, at least ${formatDuration(leastMs)} by the limit`
}

/** Notes beside the rows of a plan. */
export function notesOf({ renamed, leftover }: Plan): readonly string[] {
  const notes = renamed.map(({ from, to }) => `"${to}" is what "${from}" was: the same model and input`)
  if (leftover.length > 0) {
    const names = leftover.map(({ name, file }) => (file === undefined ? name : `${name} (${file})`))
    notes.push(`not in the manifest any more, kept as long as the file is there: ${names.join(', ')}`)
  }
  return notes
}

/** Whether every selected run is up to date. */
export const isAllCurrent = ({ counts }: Plan): boolean => counts.current + counts.skip === counts.total
