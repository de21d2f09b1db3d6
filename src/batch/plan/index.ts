/** The plan of a batch: every run of the manifest with what is to be done for it. Planning changes nothing. */
import type { ModelInput } from '../../protocol/models.js'
import { type Lock, type LockEntry, outputsOf } from '../lock/lock.js'
import type { Manifest, ManifestEntry } from '../manifest/manifest-entry.js'
import { sourcesOf } from '../manifest/row-references.js'
import type { Models } from '../manifest/sections.js'
import { type Action, type BlockedAction, decide, type Flags } from './decide.js'
import { type Disk, diskOf, type PlannedOutput } from './facts.js'
import { changedInputs, inputHashes, meaningOfEntry } from './inputs.js'
import { type LeftRun, leftRunsOf } from './left-runs.js'
import { createPairing, type Paired, type Pairing } from './pair.js'
import { levelsOf, type RowNode, withSources } from './row-order.js'

export interface Step {
  readonly entry: ManifestEntry
  /** Names of the rows that it uses, each once. */
  readonly sources: readonly string[]
  /**
   * Those that get another output first. While there are any, hash and meaning are not known, and `create` is what happens
   * unless the output has the same bytes again.
   */
  readonly waitsFor: readonly string[]
  /** Undefined when neither manifest nor settings nor lock file name one: then the run cannot be made. */
  readonly model: string | undefined
  /** The input with local images and outputs of other rows replaced by their summaries. */
  readonly meaning: ModelInput | undefined
  /** Of model and meaning; undefined without one of them. */
  readonly hash: string | undefined
  readonly locked: LockEntry | undefined
  /** At least one. What existed at their paths when the plan was made. */
  readonly outputs: readonly PlannedOutput[]
  /** The file of the output that the action is about: the first one, unless only a further one is not in place. */
  readonly file: string
  /** As they apply to this row. */
  readonly flags: Flags
  readonly action: Action
}

export interface Leftover {
  readonly name: string
  readonly file: string | undefined
}

export interface Plan {
  /** In the order of the manifest. */
  readonly steps: readonly Step[]
  /**
   * The lock file as it will be written next: renamed runs under their new names, and without entries that have left
   * the manifest and whose file has gone. Those whose file still exists stay: when their row comes back,
   * nothing is paid again.
   */
  readonly lock: Lock
  /** Entries of `lock` beside the runs of the manifest. */
  readonly leftover: readonly Leftover[]
  readonly renamed: readonly { readonly from: string; readonly to: string }[]
  /** Runs that may be paid for, and that no row waits for. */
  readonly left: readonly LeftRun[]
  readonly counts: Counts
  readonly disk: Disk
}

export interface Counts extends Readonly<Record<Action['do'], number>> {
  /** All rows, with `count` expanded. */
  readonly total: number
  /** The least that the service will be asked: a create and a status request for each new run, a status request for each one to fetch. */
  readonly requests: number
}

export interface PlanOptions {
  readonly manifest: Manifest
  readonly lock: Lock
  readonly flags: Flags
  /** Models of the settings, for kinds that the manifest names none for. */
  readonly models: Models
  /** Equal for the same model and input; with `parameter`, for the same value of that parameter. */
  identity(model: string, input: unknown, parameter?: string): string
  /** Whether `--only` selects the run. */
  selects(entry: ManifestEntry): boolean
  /** Whether files outside the folder of the manifest may be moved. */
  readonly allowOutside: boolean
}

/** This many files are hashed at once. */
const AT_ONCE = 8

export async function makePlan(options: PlanOptions): Promise<Plan> {
  const { manifest, lock, selects } = options
  const rows = manifest.entries.map((entry): Row => ({ entry, name: entry.name, sources: sourcesOf(entry) }))
  const matched = new Set(rows.filter(({ entry }) => selects(entry)).map(({ name }) => name))
  const selected = withSources(rows, matched)
  const isPart = selected.size < rows.length
  const work: Work = {
    options,
    disk: diskOf({ ...options, ...manifest, keepsFiles: (name) => isPart && !selected.has(name) }),
    pairing: createPairing({
      ...options,
      entries: manifest.entries,
      isSelected: ({ name }) => selected.has(name),
    }),
    matched,
    selected,
    steps: new Map(),
  }
  // The hash of a row is known once the rows that it uses have been decided.
  for (const level of levelsOf(rows)) {
    const paired = work.pairing.pair(level.map((row) => meaningOfRow(row, work)))
    for (const step of await mapInOrder(paired, (each) => stepFor(each, work)))
      work.steps.set(step.entry.name, step)
  }
  const steps = rows.map(({ name }) => work.steps.get(name) as Step)
  const { renamed } = work.pairing
  const kept = await stillThere(work.pairing.leftover(), steps, work.disk)
  const entries = new Map([
    ...steps.flatMap(({ entry, locked }) => (locked === undefined ? [] : [[entry.name, locked] as const])),
    ...kept,
  ])
  return {
    steps,
    lock: { ...lock, entries },
    leftover: [...kept].map(([name, { made }]) => ({ name, file: made?.file })),
    renamed,
    left: leftRunsOf(steps, kept),
    counts: countsOf(steps),
    disk: work.disk,
  }
}

interface Row extends RowNode {
  readonly entry: ManifestEntry
}

interface Work {
  readonly options: PlanOptions
  readonly disk: Disk
  readonly pairing: Pairing
  /** Names of the rows that `--only` matches. */
  readonly matched: ReadonlySet<string>
  /** The same, with the rows that they need. */
  readonly selected: ReadonlySet<string>
  /** Of the levels before. */
  readonly steps: Map<string, Step>
}

interface RowMeaning extends Pick<Step, 'entry' | 'sources' | 'waitsFor' | 'meaning'> {
  readonly blocked: BlockedAction | undefined
}

function meaningOfRow({ entry, sources }: Row, { steps }: Work): RowMeaning {
  const sourceSteps = sources.flatMap((name) => steps.get(name) ?? [])
  const blocking = sourceSteps.find(({ action }) => BLOCKING[action.do] !== undefined)
  const changing = sourceSteps.filter(isChanging)
  const isUnknown = blocking !== undefined || changing.length > 0
  const found = isUnknown ? undefined : meaningOfEntry(entry, (name) => steps.get(name)?.locked?.made)
  const meaning = found?.ok === true ? found.meaning : undefined
  // Lock files of older versions know one output of a run; a download finds the others.
  const downloading = sourceSteps.filter(({ action }) => action.do === 'download')
  const waitsFor = (found?.ok === false ? downloading : changing).map((step) => step.entry.name)
  let blocked: BlockedAction | undefined
  if (blocking !== undefined) {
    const by = blocking.entry.name
    blocked = { do: 'blocked', why: `row:${by} ${BLOCKING[blocking.action.do]}`, by }
  } else if (found?.ok === false && waitsFor.length === 0)
    blocked = { do: 'blocked', why: found.why, by: undefined }
  return { entry, sources, waitsFor, meaning, blocked }
}

/** Why the output of a row will not be there. */
const BLOCKING: Readonly<Partial<Record<Action['do'], string>>> = {
  unconfirmed: 'is unconfirmed',
  conflict: 'has a conflicting file',
  blocked: 'is blocked',
}

/** Whether the row gets another output than the one that the lock file knows. */
const isChanging = ({ action }: Step): boolean =>
  action.do === 'create' || (action.do === 'download' && action.why === 'unfinished')

type PairedRow = RowMeaning & Paired

async function stepFor(paired: PairedRow, work: Work): Promise<Step> {
  const { options, disk, matched, selected } = work
  const { blocked, ...row } = paired
  const { entry, locked, hash } = row
  const isMatched = matched.has(entry.name)
  const { force, forcePending, ...others } = options.flags
  const flags = { ...others, force: force && isMatched, forcePending: forcePending && isMatched }
  const isSelected = selected.has(entry.name)
  const outputs = isSelected ? await disk.lookAt(entry, locked) : [unseen(entry)]
  const action = isSelected ? (blocked ?? decide({ hash, locked, facts: factsOf(outputs), flags })) : SKIP
  return { ...row, outputs, flags, ...actionOn(outputs, withChanges(action, paired, work)) }
}

const unseen = ({ output }: ManifestEntry): PlannedOutput => ({
  file: output,
  name: output,
  fact: { is: 'missing' },
})

const factsOf = (outputs: readonly PlannedOutput[]) => outputs.map(({ fact }) => fact)

function actionOn(outputs: readonly PlannedOutput[], action: Action): Pick<Step, 'action' | 'file'> {
  const at = action.do === 'download' || action.do === 'conflict' ? action.at : 0
  return { action, file: outputs[at]?.file ?? '' }
}

/** The step of a row that waited for others, now that their outputs are there. */
export function decideAgain(
  step: Step,
  { lockOf, identity }: { lockOf(name: string): LockEntry | undefined } & Pick<PlanOptions, 'identity'>,
): Step {
  const { entry, model, outputs, flags } = step
  const found = meaningOfEntry(entry, (name) => lockOf(name)?.made)
  if (!found.ok) return { ...step, action: { do: 'blocked', why: found.why, by: undefined } }
  const { meaning } = found
  const hash = model === undefined ? undefined : identity(model, meaning)
  const locked = lockOf(entry.name)
  const action = decide({ hash, locked, facts: factsOf(outputs), flags })
  return { ...step, waitsFor: [], meaning, hash, locked, ...actionOn(outputs, action) }
}

const SKIP: Action = { do: 'skip' }

function withChanges(
  action: Action,
  { entry, model, meaning, locked, waitsFor }: PairedRow,
  work: Work,
): Action {
  const made = locked?.made
  if (action.do !== 'create' || action.why !== 'out_of_date' || made === undefined) return action
  const known = { ...entry, meaning: meaning ?? entry.meaning }
  const madeOf = (name: string) => work.steps.get(name)?.locked?.made
  const now = { model, inputs: inputHashes(known, madeOf, work.options.identity) }
  return { ...action, changed: changedInputs(made, now, waitsFor) }
}

/** A create under way is kept in any case: there may be a run that was paid for. */
async function stillThere(
  leftover: ReadonlyMap<string, LockEntry>,
  steps: readonly Step[],
  disk: Disk,
): Promise<ReadonlyMap<string, LockEntry>> {
  const files = new Set(steps.flatMap(({ locked }) => outputsOf(locked?.made).map(({ file }) => file)))
  const kept = await mapInOrder([...leftover], async ([name, entry]) =>
    entry.pending !== undefined ||
    (entry.made !== undefined && !files.has(entry.made.file) && (await disk.has(entry.made)))
      ? ([name, entry] as const)
      : undefined,
  )
  return new Map(kept.filter((each) => each !== undefined))
}

/** Pure. */
export function countsOf(steps: readonly Pick<Step, 'action'>[]): Counts {
  const counts = { up_to_date: 0, create: 0, download: 0, unconfirmed: 0, conflict: 0, blocked: 0, skip: 0 }
  let requests = 0
  for (const { action } of steps) {
    counts[action.do] += 1
    if (action.do === 'create') requests += 2
    if (action.do === 'download' && action.why !== 'moved') requests += 1
  }
  return { ...counts, total: steps.length, requests }
}

async function mapInOrder<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = new Array(items.length)
  let next = 0
  const worker = async () => {
    for (let at = next++; at < items.length; at = next++) {
      const item = items[at]
      if (item !== undefined) results[at] = await work(item)
    }
  }
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, worker))
  return results
}

export {
  type Action,
  type BlockedAction,
  type CreateAction,
  type DownloadAction,
  type FileFact,
  type Flags,
  isInPlace,
  isReplaceable,
} from './decide.js'
export type { Disk, PlannedOutput } from './facts.js'
export type { LeftRun } from './left-runs.js'
