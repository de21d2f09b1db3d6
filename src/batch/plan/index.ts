/** The plan of a batch: every run of the manifest with its action. Planning changes nothing. */
import { resolve } from 'node:path'
import { createSlots } from '../../host/slots.js'
import { MediaSummary } from '../../protocol/media.js'
import { type MediaSource, withMedia } from '../../protocol/media-parameters.js'
import type { ModelInput } from '../../protocol/models.js'
import { type Lock, type LockedOutput, type Made, outputsOf } from '../lock/lock.js'
import {
  levelsOf,
  type Manifest,
  type ManifestEntry,
  type RowNode,
  sourcesOf,
  withSources,
} from '../manifest/entry.js'
import type { Models } from '../manifest/row.js'
import {
  type BlockedAction,
  type CreateAction,
  type DownloadAction,
  decide,
  type RowAction,
  type RowFlags,
} from './decide.js'
import { Disk, isInPlace, type PlannedOutput } from './disk.js'
import { type Flight, type Paired, Pairing, type Unpaired } from './pair.js'

export interface PlanStep extends Paired {
  readonly entry: ManifestEntry
  /** Names of the rows whose outputs it uses, without duplicates. */
  readonly sources: readonly string[]
  /**
   * Sources whose output will change first. Until then the hash is unknown, and the action is `create`. If the new output
   * has the same bytes, the row may need no create.
   */
  readonly waitsFor: readonly string[]
  /** At least one output, with what existed at each path when the plan was made. */
  readonly outputs: readonly PlannedOutput[]
  /** File of the output that the action is about: the first one that is not in place, else the first one. */
  readonly file: string
  /** Flags of this row: `--force` applies to selected rows only. */
  readonly flags: RowFlags
  readonly action: RowAction
}

/** A step that creates or downloads something. */
export type ActiveStep = PlanStep & { readonly action: DownloadAction | CreateAction }

export interface Plan {
  /** In the order of the manifest. */
  readonly steps: readonly PlanStep[]
  /**
   * Next entries of the lock file. Renamed runs have their new names. The entry of a removed row is kept until another row
   * has its file, so that nothing is paid again if the row returns.
   */
  readonly entries: ReadonlyMap<string, Made>
  /** Runs in flight that may have been paid for, and that no row waits for. The user is warned about them. */
  readonly left: readonly Flight[]
  readonly counts: Counts
  readonly disk: Disk
  readonly pairing: Pairing
}

export interface Counts extends Readonly<Record<RowAction['do'], number>> {
  /** All rows, with `count` expanded. */
  readonly total: number
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
    disk: new Disk({ ...options, ...manifest, keepsFiles: (name) => isPart && !selected.has(name) }),
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
  return planOf(
    rows.map(({ name }) => planning.steps.get(name) as PlanStep),
    planning,
  )
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

interface RowInput extends Unpaired, Pick<PlanStep, 'sources' | 'waitsFor'> {
  readonly blocked: BlockedAction | undefined
}

function inputOfRow({ entry, sources }: PlanRow, { steps }: Planning): RowInput {
  const unknown: RowInput = { entry, sources, waitsFor: [], identities: [], blocked: undefined }
  const used = sources.flatMap((name) => steps.get(name) ?? [])
  const blocking = used.find(({ action }) => BLOCKING[action.do] !== undefined)
  if (blocking !== undefined) {
    const by = blocking.entry.name
    return { ...unknown, blocked: { do: 'blocked', why: `row:${by} ${BLOCKING[blocking.action.do]}`, by } }
  }
  const changing = used.filter(isChanging).map((step) => step.entry.name)
  if (changing.length > 0) return { ...unknown, waitsFor: changing }
  const identities = identitiesOf(entry, (name) => outputsOf(steps.get(name)?.locked))
  if (typeof identities !== 'string') return { ...unknown, identities }
  return { ...unknown, blocked: { do: 'blocked', why: identities, by: undefined } }
}

/** Reason for each action after which the output of a row does not exist. */
const BLOCKING: Readonly<Partial<Record<RowAction['do'], string>>> = {
  unconfirmed: 'is unconfirmed',
  conflict: 'has a conflicting file',
  blocked: 'is blocked',
}

/** Whether the outputs of a row are not known yet. */
const isChanging = ({ action }: PlanStep): boolean =>
  action.do === 'create' || (action.do === 'download' && action.why === 'unfinished')

/** The file that a killed batch has already given its name. */
export const placedFile = ({ file, fact }: PlannedOutput, flight: Flight | undefined, folder: string) =>
  flight?.files.findLast((each) => each.path === resolve(folder, file) && isInPlace(fact, each.sha256))

/**
 * Returns what identifies the input, with outputs of other rows replaced by their summaries, or why a reference cannot be
 * used.
 */
export function identitiesOf(
  { identities, references }: ManifestEntry,
  outputsOfRow: (name: string) => readonly LockedOutput[],
): readonly ModelInput[] | string {
  const sources: MediaSource[] = []
  for (const reference of references) {
    if (reference.from !== 'row') continue
    const { text, source, place } = reference
    const outputs = outputsOfRow(source)
    const output = outputs[reference.output - 1]
    if (output === undefined) {
      const count = outputs.length === 1 ? 'one output' : `${outputs.length} outputs`
      return `${text}: the run of "${source}" has ${count}`
    }
    const { sha256, bytes, content_type } = output
    sources.push({ ...place, value: new MediaSummary(sha256, bytes, content_type) })
  }
  return sources.length === 0 ? identities : identities.map((each) => withMedia(each, sources))
}

async function stepFor(paired: RowInput & Paired, planning: Planning): Promise<PlanStep> {
  const { options, disk, matched, selected, pairing } = planning
  const { blocked, identities: _, ...row } = paired
  const { entry, locked, flight, waitsFor } = row
  const isMatched = matched.has(entry.name)
  const { force, forcePending, ...others } = options.flags
  const flags = { ...others, force: force && isMatched, forcePending: forcePending && isMatched }
  if (!selected.has(entry.name)) {
    const { output } = entry
    const outputs = [{ file: output, name: output, fact: { is: 'missing' as const } }]
    return { ...row, outputs, flags, file: output, action: { do: 'skip' } }
  }
  // A row that waits takes its run when its hash is known.
  const flights = waitsFor.length > 0 ? pairing.flightsOf(entry.name) : []
  const placed = [flight, ...flights].flatMap((each) => each?.files ?? [])
  const outputs = await disk.lookAt(entry, locked, flight?.urls.length)
  const step = decided({ ...row, outputs, flags }, options.isElsewhere, placed)
  return blocked === undefined ? step : { ...step, action: blocked, file: outputs[0]?.file ?? '' }
}

function decided(
  step: Omit<PlanStep, 'action' | 'file'>,
  isElsewhere: boolean,
  placed?: Flight['files'],
): PlanStep {
  const action = decide({ ...step, placed, isElsewhere })
  const at = action.do === 'download' || action.do === 'conflict' ? action.at : 0
  return { ...step, action, file: step.outputs[at]?.file ?? '' }
}

/** Decides the action of a waiting row again, after the outputs that it uses exist. `lockOf` returns the entry of a row. */
export function decideAgain(
  step: PlanStep,
  { pairing }: Plan,
  lockOf: (name: string) => Made | undefined,
  isElsewhere: boolean,
): PlanStep {
  const { entry } = step
  const identities = identitiesOf(entry, (name) => outputsOf(lockOf(name)))
  if (typeof identities === 'string')
    return { ...step, action: { do: 'blocked', why: identities, by: undefined } }
  const paired = pairing.takeFlight(entry, pairing.hashesOf({ entry, identities }), lockOf(entry.name))
  return decided({ ...step, ...paired, waitsFor: [] }, isElsewhere)
}

function planOf(steps: readonly PlanStep[], { disk, pairing }: Planning): Plan {
  const keysOf = (files: readonly { readonly file: string }[]) => files.map(({ file }) => disk.keyOf(file))
  const taken = new Set(steps.flatMap(({ locked }) => keysOf(outputsOf(locked))))
  const kept = [...pairing.leftover()].filter(([, made]) => !taken.has(disk.keyOf(made.file)))
  return {
    steps,
    entries: new Map([
      ...steps.flatMap(({ entry, locked }) => (locked === undefined ? [] : [[entry.name, locked] as const])),
      ...kept,
    ]),
    left: leftRunsOf(steps, pairing.leftFlights()),
    counts: countsOf(steps),
    disk,
    pairing,
  }
}

/** `left`: runs in flight that no row has taken. */
function leftRunsOf(steps: readonly PlanStep[], left: readonly Flight[]): readonly Flight[] {
  const byName = new Map(steps.map((step) => [step.entry.name, step]))
  const forced = steps.flatMap(({ action, flight }) =>
    flight !== undefined && action.do === 'create' && action.why === 'forced' ? [flight] : [],
  )
  // If the row was made since, the batch that made it has warned about the run. A row that waits may still take it.
  const isOpen = ({ action, waitsFor }: PlanStep) =>
    action.do !== 'skip' && action.do !== 'up_to_date' && waitsFor.length === 0
  const others = left.filter(({ name }) => {
    const step = byName.get(name)
    return step === undefined || isOpen(step)
  })
  return [...forced, ...others]
}

function countsOf(steps: readonly PlanStep[]): Counts {
  const counts = { up_to_date: 0, create: 0, download: 0, unconfirmed: 0, conflict: 0, blocked: 0, skip: 0 }
  for (const { action } of steps) counts[action.do]++
  return { total: steps.length, ...counts }
}

export const isActive = (step: PlanStep): step is ActiveStep =>
  step.action.do === 'create' || step.action.do === 'download'

export const activeSteps = (plan: Plan): readonly ActiveStep[] => plan.steps.filter(isActive)

/** False for a row whose files already exist on this machine. */
export const needsService = ({ action }: ActiveStep): boolean =>
  action.do === 'create' || action.why !== 'moved'
