/** A plan as lines and as JSON, pure. */

import { type Output, outputsOf } from '../../batch/lock/lock.js'
import type { Expectation } from '../../batch/plan/expected.js'
import {
  type Action,
  type CreateAction,
  isInPlace,
  type Plan,
  type PlannedOutput,
  type Step,
} from '../../batch/plan/index.js'
import { printable } from '../../protocol/text.js'
import { formatDuration } from '../flags/duration.js'
import { plural } from '../terminal/plural.js'
import { formatEstimate } from '../terminal/progress-lines.js'

export const reasonOf = (action: Action): string | undefined => {
  if (action.do === 'up_to_date' || action.do === 'skip') return undefined
  if (action.do === 'unconfirmed') return action.key
  return action.do === 'create' && action.why === 'out_of_date' ? changeOf(action) : action.why
}

const MAX_CHANGES = 4

/** `prompt, row:hero changed`. Lock files of older versions do not say which of the inputs. */
function changeOf({ changed = [] }: CreateAction): string {
  const more = changed.length - MAX_CHANGES
  const names = changed.slice(0, MAX_CHANGES).join(', ') || 'input'
  return `${names}${more > 0 ? ` and ${more} more` : ''} changed`
}

/** Action, name, file, reason: the values of the JSON form. */
export const stepCells = ({ entry, file, action }: Step): readonly string[] =>
  [action.do, entry.name, file, reasonOf(action) ?? ''].map(printable)

/** The same for people. */
export const stepWords = ({ entry, file, action }: Step): readonly string[] =>
  [action.do.replaceAll('_', ' '), entry.name, file, sayReason(action)].map(printable)

function sayReason(action: Action): string {
  if (action.do === 'create' && action.why === 'missing') return 'never created'
  if (action.do === 'download' && action.why === 'missing') return 'file missing'
  return reasonOf(action) ?? ''
}

/** Every key always there, unknown ones null. */
export const stepJson = ({ entry, model, hash, file, action, sources, locked, outputs }: Step) => ({
  name: entry.name,
  action: action.do,
  reason: reasonOf(action) ?? null,
  kind: entry.kind ?? null,
  model: model ?? null,
  hash: hash ?? null,
  file,
  run: action.do === 'download' ? action.run : null,
  uses: sources,
  outputs: outputsOf(locked?.made).map((output, at) => outputJson(output, outputs[at])),
  line: entry.at.line,
})

/** An output that the lock file knows. */
function outputJson({ file, sha256, bytes }: Output, planned: PlannedOutput | undefined) {
  const fact = planned?.fact ?? { is: 'missing' }
  const there = isInPlace(fact, sha256) ? 'in_place' : 'different'
  return { file: planned?.file ?? file, sha256, bytes, state: fact.is === 'missing' ? 'missing' : there }
}

const WORDS: readonly (readonly [Action['do'], string])[] = [
  ['up_to_date', 'up to date'],
  ['download', 'to download'],
  ['create', 'to create'],
  ['unconfirmed', 'unconfirmed'],
  ['conflict', 'with a conflicting file'],
  ['blocked', 'blocked'],
  ['skip', 'skipped'],
]

/** `5 runs: 3 up to date, 2 to create; at least 4 requests, about 40 s` */
export function summaryLine({ counts }: Plan, expectation?: Expectation): string {
  const parts = WORDS.flatMap(([word, said]) => (counts[word] === 0 ? [] : [`${counts[word]} ${said}`]))
  const time = expectation === undefined ? '' : timeOf(expectation)
  const requests = counts.requests === 0 ? '' : `; at least ${plural(counts.requests, 'request')}${time}`
  return `${plural(counts.total, 'run')}${parts.length === 0 ? '' : `: ${parts.join(', ')}`}${requests}`
}

/** Number of runs to create, by model. */
export function runsByModel({ steps }: Plan): ReadonlyMap<string, number> {
  const runs = new Map<string, number>()
  for (const { action, model } of steps)
    if (action.do === 'create' && model !== undefined) runs.set(model, (runs.get(model) ?? 0) + 1)
  return runs
}

/** `2 with acme/still-1, 1 with acme/cinema-1`; nothing to say of a single model. */
export function modelsNote(plan: Plan): string | undefined {
  const runs = [...runsByModel(plan)]
  return runs.length < 2
    ? undefined
    : `to create: ${runs.map(([model, count]) => `${count} with ${printable(model)}`).join(', ')}`
}

/** Empty when nothing is known and the limit takes no time. */
function timeOf({ leastMs, expectedMs }: Expectation): string {
  if (expectedMs !== undefined) return `, about ${formatEstimate(expectedMs)}`
  return leastMs === 0 ? '' : `, at least ${formatDuration(leastMs)} because of the rate limit`
}

/** Notes beside the rows of a plan. */
export function notesOf({ renamed, leftover }: Plan): readonly string[] {
  const notes = renamed.map(({ from, to }) => `"${from}" was renamed to "${to}" (same model and input)`)
  const withFile = leftover.filter(({ file }) => file !== undefined)
  if (withFile.length > 0) {
    const names = withFile.map(({ name, file }) => (file === undefined ? name : `${name} (${file})`))
    notes.push(`no longer in the manifest, kept in the lock file while the file exists: ${names.join(', ')}`)
  }
  return notes
}

/** Whether every selected run is up to date. */
export const isAllUpToDate = ({ counts }: Plan): boolean => counts.up_to_date + counts.skip === counts.total
