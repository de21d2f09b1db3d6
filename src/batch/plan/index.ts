/** The plan of a batch: every run of the manifest with what is to be done for it. Planning changes nothing. */
import { resolve } from 'node:path'
import type { Lock, LockEntry } from '../lock/lock.js'
import type { Manifest, ManifestEntry } from '../manifest/manifest-entry.js'
import type { Models } from '../manifest/sections.js'
import { type Action, decide, type Flags } from './decide.js'
import { type Disk, diskOf } from './facts.js'
import { type Paired, pair } from './pair.js'

export interface Step {
  readonly entry: ManifestEntry
  /** Undefined when neither manifest nor settings nor lock file name one: then the run cannot be made. */
  readonly model: string | undefined
  /** Of model and input; undefined without a model. */
  readonly hash: string | undefined
  readonly locked: LockEntry | undefined
  /** Relative to the manifest, with `/`; ends in `.{ext}` where the extension waits for the output. */
  readonly file: string
  /** The same, absolute. */
  readonly path: string
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
  readonly counts: Counts
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
  identity(model: string, input: unknown): string
  /** Whether `--only` selects the run. */
  selects(entry: ManifestEntry): boolean
}

/** This many files are hashed at once. */
const AT_ONCE = 8

export async function makePlan(options: PlanOptions): Promise<Plan> {
  const { manifest, lock, models, identity } = options
  const disk = diskOf(manifest.folder)
  const { pairs, leftover, renamed } = pair({ entries: manifest.entries, lock, models, identity })
  const steps = await mapInOrder(pairs, (paired) => stepFor(paired, disk, options))
  const kept = await stillThere(leftover, disk)
  const entries = new Map([
    ...steps.flatMap(({ entry, locked }) => (locked === undefined ? [] : [[entry.name, locked] as const])),
    ...kept,
  ])
  return {
    steps,
    lock: { ...lock, entries },
    leftover: [...kept].map(([name, { made }]) => ({ name, file: made?.file })),
    renamed,
    counts: countsOf(steps),
  }
}

async function stepFor(paired: Paired, disk: Disk, { manifest, flags, selects }: PlanOptions): Promise<Step> {
  const { entry, locked, hash } = paired
  const isSelected = selects(entry)
  const { file, fact } = isSelected
    ? await disk.lookAt(entry, locked)
    : { file: entry.output, fact: { is: 'missing' } as const }
  return {
    ...paired,
    file,
    path: resolve(manifest.folder, file),
    action: isSelected ? decide({ hash, locked, file: fact, flags }) : { do: 'skip' },
  }
}

/** A create under way is kept in any case: there may be a run that was paid for. */
async function stillThere(
  leftover: ReadonlyMap<string, LockEntry>,
  disk: Disk,
): Promise<ReadonlyMap<string, LockEntry>> {
  const kept = await mapInOrder([...leftover], async ([name, entry]) =>
    entry.pending !== undefined || (entry.made !== undefined && (await disk.has(entry.made)))
      ? ([name, entry] as const)
      : undefined,
  )
  return new Map(kept.filter((each) => each !== undefined))
}

/** Pure. */
export function countsOf(steps: readonly Pick<Step, 'action'>[]): Counts {
  const counts = { up_to_date: 0, create: 0, download: 0, unconfirmed: 0, conflict: 0, skip: 0 }
  let requests = 0
  for (const { action } of steps) {
    counts[action.do] += 1
    if (action.do === 'create') requests += 2
    if (action.do === 'download' && action.copyFrom === undefined) requests += 1
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
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return results
}

export type { Action, CreateAction, DownloadAction, Flags } from './decide.js'
