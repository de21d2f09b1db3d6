/** The plan of a batch: every run of the manifest with its action. Planning changes nothing. */
import type { FileSystem } from '../../host/file-system.js'
import { createSlots } from '../../host/slots.js'
import { identityOf } from '../../protocol/identity.js'
import type { ModelInput } from '../../protocol/models.js'
import { type Lock, type Made, outputsOf } from '../lock/lock.js'
import { type Manifest, type ManifestEntry, sourcesOf } from '../manifest/manifest-entry.js'
import { levelsOf, type RowNode, withSources } from '../manifest/row-order.js'
import type { Models } from '../manifest/sections.js'
import {
  type BlockedAction,
  changedInputs,
  decide,
  identityInputOf,
  inputHashes,
  type RowAction,
  type RowFlags,
} from './decide.js'
import { type Disk, diskOf, type PlannedOutput } from './disk.js'
import type { Flight } from './flights.js'
import { type LeftRun, leftRunsOf } from './left-runs.js'
import { type Paired, Pairing } from './pair.js'

interface PlannedRow {
  readonly entry: ManifestEntry
  /** Names of the rows whose outputs it uses, without duplicates. */
  readonly sources: readonly string[]
  /**
   * Sources whose output will change first. Until then, hash and identity input are unknown, and the action is `create`. If
   * the new output has the same bytes, the row may need no create.
   */
  readonly waitsFor: readonly string[]
  /** The input with local images and outputs of other rows replaced by their summaries. */
  readonly identityInput: ModelInput | undefined
}

export interface PlanStep extends PlannedRow {
  /** Undefined if manifest, settings and lock file name no model: the run cannot be created. */
  readonly model: string | undefined
  /** Hash of model and identity input. Undefined if either is unknown. */
  readonly hash: string | undefined
  readonly locked: Made | undefined
  /** A create of the same model and input that the lock file does not have. */
  readonly flight: Flight | undefined
  /** At least one output, with what existed at each path when the plan was made. */
  readonly outputs: readonly PlannedOutput[]
  /** File of the output that the action is about: the first one that is not in place, else the first one. */
  readonly file: string
  /** Flags of this row: `--force` applies to selected rows only. */
  readonly flags: RowFlags
  readonly action: RowAction
}

interface Leftover {
  readonly name: string
  readonly file: string
}

export interface Plan {
  /** In the order of the manifest. */
  readonly steps: readonly PlanStep[]
  /**
   * Next entries of the lock file. Renamed runs have their new names. The entry of a removed row is kept while its file
   * exists, so that nothing is paid again if the row returns.
   */
  readonly entries: ReadonlyMap<string, Made>
  /** Entries that are not in the manifest. */
  readonly leftover: readonly Leftover[]
  readonly renamed: readonly { readonly from: string; readonly to: string }[]
  /** Runs that may have been paid for, and that no row waits for. */
  readonly left: readonly LeftRun[]
  readonly counts: Counts
  readonly disk: Disk
  /** Takes a run in flight for a row whose hash is known only now. `isMade`: the row has a file of this hash. */
  takeFlight(name: string, hash: string, isMade: boolean): Flight | undefined
  /** Numbers of the rows of the journal that rows of the plan have taken so far. */
  takenRows(): ReadonlySet<number>
}

export interface Counts extends Readonly<Record<RowAction['do'], number>> {
  /** All rows, with `count` expanded. */
  readonly total: number
  /** The minimum: a create and a status request for each new run, a status request for each download. */
  readonly requests: number
}

export interface PlanOptions {
  readonly manifest: Manifest
  readonly lock: Lock
  /** What the batch has in flight, newest first. */
  readonly flights: readonly Flight[]
  /** Whether the journal of another state folder knows what is in flight. */
  readonly isElsewhere: boolean
  readonly flags: RowFlags
  /** Models from the settings, for kinds without a model in the manifest. */
  readonly models: Models
  /** Whether `--only` selects the run. */
  selects(entry: ManifestEntry): boolean
  /** Whether files outside the folder of the manifest may be moved. */
  readonly allowOutside: boolean
  readonly fileSystem?: FileSystem | undefined
}

/** Maximum number of rows whose files are hashed at once. */
const MAX_CONCURRENT_ROWS = 8

export async function makePlan(options: PlanOptions): Promise<Plan> {
  const { manifest, selects } = options
  const rows = manifest.entries.map(
    (entry): PlanRow => ({ entry, name: entry.name, sources: sourcesOf(entry) }),
  )
  const matched = new Set(rows.filter(({ entry }) => selects(entry)).map(({ name }) => name))
  const selected = withSources(rows, matched)
  const isPart = selected.size < rows.length
  const planning: Planning = {
    options,
    disk: diskOf({ ...options, ...manifest, keepsFiles: (name) => isPart && !selected.has(name) }),
    pairing: new Pairing({
      ...options,
      entries: manifest.entries,
      isSelected: ({ name }) => selected.has(name),
    }),
    matched,
    selected,
    steps: new Map(),
  }
  const slots = createSlots(MAX_CONCURRENT_ROWS)
  // Level by level: the hash of a row depends on the rows that it uses.
  for (const level of levelsOf(rows)) {
    const paired = planning.pairing.pair(level.map((row) => inputOfRow(row, planning)))
    const steps = await Promise.all(paired.map((each) => slots.use(() => stepFor(each, planning))))
    for (const step of steps) planning.steps.set(step.entry.name, step)
  }
  const steps = rows.map(({ name }) => planning.steps.get(name) as PlanStep)
  const { renamed } = planning.pairing
  const kept = entriesToKeep(planning.pairing.leftover(), steps, planning.disk)
  const entries = new Map([
    ...steps.flatMap(({ entry, locked }) => (locked === undefined ? [] : [[entry.name, locked] as const])),
    ...kept,
  ])
  return {
    steps,
    entries,
    leftover: leftoverOf(kept, steps, planning.disk),
    renamed,
    left: leftRunsOf(steps, planning.pairing.leftFlights()),
    counts: countsOf(steps),
    disk: planning.disk,
    takeFlight: (name, hash, isMade) => planning.pairing.takeFlight(name, [hash], isMade ? hash : undefined),
    takenRows() {
      const left = new Set(planning.pairing.leftFlights())
      return new Set(options.flights.flatMap((each) => (left.has(each) ? [] : each.row)))
    },
  }
}

interface PlanRow extends RowNode {
  readonly entry: ManifestEntry
}

interface Planning {
  readonly options: PlanOptions
  readonly disk: Disk
  readonly pairing: Pairing
  /** Names of the rows that `--only` matches. */
  readonly matched: ReadonlySet<string>
  /** `matched`, and the rows that they need. */
  readonly selected: ReadonlySet<string>
  /** Steps of earlier levels, by name. */
  readonly steps: Map<string, PlanStep>
}

interface RowInput extends PlannedRow {
  readonly undocumentedInput: ModelInput | undefined
  readonly blocked: BlockedAction | undefined
}

function inputOfRow({ entry, sources }: PlanRow, { steps }: Planning): RowInput {
  const sourceSteps = sources.flatMap((name) => steps.get(name) ?? [])
  const blocking = sourceSteps.find(({ action }) => BLOCKING[action.do] !== undefined)
  const changing = sourceSteps.filter(isChanging)
  const isUnknown = blocking !== undefined || changing.length > 0
  const found = isUnknown ? undefined : identityInputOf(entry, (name) => steps.get(name)?.locked)
  const { identityInput, undocumentedInput } = found?.ok === true ? found : {}
  // Older lock files list only one output of a run; a download finds the others.
  const downloading = sourceSteps.filter(({ action }) => action.do === 'download')
  const waitsFor = (found?.ok === false ? downloading : changing).map((step) => step.entry.name)
  let blocked: BlockedAction | undefined
  if (blocking !== undefined) {
    const by = blocking.entry.name
    blocked = { do: 'blocked', why: `row:${by} ${BLOCKING[blocking.action.do]}`, by }
  } else if (found?.ok === false && waitsFor.length === 0)
    blocked = { do: 'blocked', why: found.why, by: undefined }
  return { entry, sources, waitsFor, identityInput, undocumentedInput, blocked }
}

/** Reason for each action after which the output of a row does not exist. */
const BLOCKING: Readonly<Partial<Record<RowAction['do'], string>>> = {
  unconfirmed: 'is unconfirmed',
  conflict: 'has a conflicting file',
  blocked: 'is blocked',
}

/** Whether the row will get a different output from the one in the lock file. */
const isChanging = ({ action }: PlanStep): boolean =>
  action.do === 'create' || (action.do === 'download' && action.why === 'unfinished')

type PairedRow = RowInput & Paired

async function stepFor(paired: PairedRow, planning: Planning): Promise<PlanStep> {
  const { options, disk, matched, selected } = planning
  const { blocked, undocumentedInput: _, ...row } = paired
  const { entry, locked, flight } = row
  const isMatched = matched.has(entry.name)
  const { force, forcePending, ...others } = options.flags
  const flags = { ...others, force: force && isMatched, forcePending: forcePending && isMatched }
  const isSelected = selected.has(entry.name)
  // A row that waits takes its run when its hash is known.
  const flights = row.waitsFor.length > 0 ? planning.pairing.flightsOf(entry.name) : []
  const placed = [flight, ...flights].flatMap((each) => each?.files ?? [])
  const outputs = isSelected
    ? await disk.lookAt(entry, locked, flight?.urls.length)
    : [unselectedOutput(entry)]
  const action = isSelected
    ? (blocked ??
      decide({ ...row, placed, isElsewhere: options.isElsewhere, facts: factsOf(outputs), flags }))
    : SKIP
  return { ...row, outputs, flags, ...actionOn(outputs, withChanges(action, paired, planning)) }
}

const unselectedOutput = ({ output }: ManifestEntry): PlannedOutput => ({
  file: output,
  name: output,
  fact: { is: 'missing' },
})

const factsOf = (outputs: readonly PlannedOutput[]) => outputs.map(({ fact }) => fact)

function actionOn(outputs: readonly PlannedOutput[], action: RowAction) {
  const at = action.do === 'download' || action.do === 'conflict' ? action.at : 0
  return { action, file: outputs[at]?.file ?? '' }
}

/**
 * Decides the action of a waiting row again, after the outputs that it uses exist. `lockOf` returns the entry of a row,
 * and `flightOf` a create of this row with this hash.
 */
export function decideAgain(
  step: PlanStep,
  lockOf: (name: string) => Made | undefined,
  flightOf: (hash: string) => Flight | undefined,
  isElsewhere: boolean,
): PlanStep {
  const { entry, model, outputs, flags } = step
  const found = identityInputOf(entry, lockOf)
  if (!found.ok) return { ...step, action: { do: 'blocked', why: found.why, by: undefined } }
  const { identityInput, undocumentedInput } = found
  const locked = lockOf(entry.name)
  const hashes =
    model === undefined
      ? []
      : [identityInput, undocumentedInput].flatMap((each) =>
          each === undefined ? [] : [identityOf(model, each)],
        )
  const flight = hashes.map(flightOf).find((each) => each !== undefined)
  const hash = hashes.find((each) => each === locked?.hash || each === flight?.hash) ?? hashes[0]
  const action = decide({ hash, locked, flight, isElsewhere, facts: factsOf(outputs), flags })
  return { ...step, waitsFor: [], identityInput, hash, locked, flight, ...actionOn(outputs, action) }
}

const SKIP: RowAction = { do: 'skip' }

function withChanges(
  action: RowAction,
  { entry, model, identityInput, locked, waitsFor }: PairedRow,
  planning: Planning,
): RowAction {
  if (action.do !== 'create' || action.why !== 'out_of_date' || locked === undefined) return action
  const known = { ...entry, identityInput: identityInput ?? entry.identityInput }
  const madeOf = (name: string) => planning.steps.get(name)?.locked
  const now = { model, inputs: inputHashes(known, madeOf) }
  return { ...action, changed: changedInputs(locked, now, waitsFor) }
}

/** Returns the entries of rows that have left the manifest, while their files are there. */
function entriesToKeep(
  leftover: ReadonlyMap<string, Made>,
  steps: readonly PlanStep[],
  disk: Disk,
): ReadonlyMap<string, Made> {
  const files = new Set(steps.flatMap(({ locked }) => outputsOf(locked).map(({ file }) => disk.keyOf(file))))
  return new Map([...leftover].filter(([, made]) => !files.has(disk.keyOf(made.file)) && disk.has(made)))
}

/** Those whose files no row is going to replace. */
function leftoverOf(
  kept: ReadonlyMap<string, Made>,
  steps: readonly PlanStep[],
  { keyOf }: Disk,
): readonly Leftover[] {
  const files = new Set(steps.flatMap(({ outputs }) => outputs.map(({ file }) => keyOf(file))))
  return [...kept].flatMap(([name, { file }]) => (files.has(keyOf(file)) ? [] : [{ name, file }]))
}

/** Counts the rows by action. Pure. */
export function countsOf(steps: readonly PlanStep[]): Counts {
  const counts = {
    ...{ up_to_date: 0, create: 0, download: 0, unconfirmed: 0, conflict: 0, blocked: 0, skip: 0 },
  }
  let requests = 0
  for (const { action } of steps) {
    counts[action.do] += 1
    if (action.do === 'create') requests += 2
    if (action.do === 'download' && action.why !== 'moved') requests += 1
  }
  return { ...counts, total: steps.length, requests }
}

export {
  type BlockedAction,
  type CreateAction,
  type DownloadAction,
  type FileFact,
  isInPlace,
  isReplaceable,
  type RowAction,
  type RowFlags,
} from './decide.js'
export type { Disk, PlannedOutput } from './disk.js'
export type { Flight } from './flights.js'
export type { LeftRun } from './left-runs.js'
