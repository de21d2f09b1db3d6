/** Formats a plan as rows, lines and JSON. Pure. */
import { extname } from 'node:path'
import { type LockedOutput, outputsOf } from '../../batch/lock/lock.js'
import {
  type CreateAction,
  isInPlace,
  type Plan,
  type PlannedOutput,
  type PlanStep,
  type RowAction,
} from '../../batch/plan/index.js'
import { amountText } from '../../protocol/price.js'
import { printable } from '../../protocol/text.js'
import { plural } from '../terminal/format.js'
import type { BatchEstimate } from './estimates.js'

export const reasonOf = (action: RowAction): string | undefined => {
  if (action.do === 'up_to_date' || action.do === 'skip') return undefined
  if (action.do === 'unconfirmed') return action.key
  return action.do === 'create' && action.why === 'out_of_date' ? changeOf(action) : action.why
}

const MAX_CHANGES = 4

/** `prompt, row:hero changed`. `input changed` for lock files of older versions, which do not list the inputs. */
function changeOf({ changed = [] }: CreateAction): string {
  const more = changed.length - MAX_CHANGES
  const names = changed.slice(0, MAX_CHANGES).join(', ') || 'input'
  return `${names}${more > 0 ? ` and ${more} more` : ''} changed`
}

/** Returns action, name, file and reason, with the values of the JSON form. */
export const stepCells = ({ entry, file, action }: PlanStep): readonly string[] =>
  [action.do, entry.name, file, reasonOf(action) ?? ''].map(printable)

/** Returns action, name, file and reason as words for people. */
export const stepWords = (step: PlanStep): readonly string[] =>
  [step.action.do.replaceAll('_', ' '), step.entry.name, expectedFile(step), reasonWords(step.action)].map(
    printable,
  )

const USUAL_EXTENSIONS: Readonly<Record<string, string>> = { image: '.png', video: '.mp4' }

/** The file with the extension of the row's last output, or else with the usual one of its kind. */
function expectedFile({ entry, file, locked }: PlanStep): string {
  const [last] = outputsOf(locked)
  const extension = (last && extname(last.file)) || USUAL_EXTENSIONS[entry.kind ?? '']
  return extension === undefined ? file : file.replaceAll('.{ext}', extension)
}

function reasonWords(action: RowAction): string {
  if (action.do === 'create' && action.why === 'missing') return 'never created'
  if (action.do === 'download' && action.why === 'missing') return 'file missing'
  return reasonOf(action) ?? ''
}

/** All keys are always present. Unknown values are null. */
export const stepJson = ({ entry, model, hash, file, action, sources, locked, outputs }: PlanStep) => ({
  name: entry.name,
  action: action.do,
  reason: reasonOf(action) ?? null,
  kind: entry.kind ?? null,
  model: model ?? null,
  hash: hash ?? null,
  file,
  run: action.do === 'download' ? action.run : null,
  uses: sources,
  outputs: outputsOf(locked).map((output, at) => outputJson(output, outputs[at])),
  line: entry.at.line,
})

/** An output in the lock file. */
function outputJson({ file, sha256, bytes }: LockedOutput, planned: PlannedOutput | undefined) {
  const fact = planned?.fact ?? { is: 'missing' }
  const there = isInPlace(fact, sha256) ? 'in_place' : 'different'
  return { file: planned?.file ?? file, sha256, bytes, state: fact.is === 'missing' ? 'missing' : there }
}

const ACTION_WORDS: readonly (readonly [RowAction['do'], string])[] = [
  ['up_to_date', 'up to date'],
  ['download', 'to download'],
  ['create', 'to create'],
  ['unconfirmed', 'unconfirmed'],
  ['conflict', 'with a conflicting file'],
  ['blocked', 'blocked'],
  ['skip', 'skipped'],
]

/** `5 runs: 3 up to date, 2 to create` */
export function summaryLine({ counts }: Plan): string {
  const parts = ACTION_WORDS.flatMap(([action, words]) =>
    counts[action] === 0 ? [] : [`${counts[action]} ${words}`],
  )
  return `${plural(counts.total, 'run')}${parts.length === 0 ? '' : `: ${parts.join(', ')}`}`
}

/** `2 with acme/still-1 (0.8 USD), 1 with acme/cinema-1 (without a price)`. Undefined if there is only one model. */
export function modelsNote({ byModel, currency }: BatchEstimate): string | undefined {
  const models = [...byModel].map(([model, { runs, millionths, withoutPrice }]) => {
    const estimate = withoutPrice > 0 ? 'without a price' : amountText(millionths, currency)
    return `${runs} with ${printable(model)} (${estimate})`
  })
  return models.length < 2 ? undefined : `to create: ${models.join(', ')}`
}

/** Returns the notes to print beside the rows of a plan. */
export function notesOf({ renamed, leftover }: Plan): readonly string[] {
  const notes = renamed.map(({ from, to }) => `"${from}" was renamed to "${to}" (same model and input)`)
  if (leftover.length > 0) {
    const names = leftover.map(({ name, file }) => `${name} (${file})`)
    notes.push(`no longer in the manifest, kept in the lock file while the file exists: ${names.join(', ')}`)
  }
  return notes
}

/** Whether every selected run is up to date. */
export const isAllUpToDate = ({ counts }: Plan): boolean => counts.up_to_date + counts.skip === counts.total

/** All keys are always present. Unknown values are null. */
export const leftRunsJson = ({ left }: Plan) =>
  left.map(({ flight: { name, run, key }, why }) => ({ name, run: run ?? null, key: key ?? null, why }))
