/** Reads manifest, lock file and journal, makes the plan, and refuses impossible plans. Needs no network and no API key. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { lockFileOf, readLock } from '../../batch/lock/file.js'
import { claimPathOf, type Lock } from '../../batch/lock/lock.js'
import type { Manifest } from '../../batch/manifest/entry.js'
import { type ManifestOptions, readManifest } from '../../batch/manifest/index.js'
import { makePlan, type Plan, type PlanStep } from '../../batch/plan/index.js'
import { type Flight, recordedModels } from '../../batch/plan/pair.js'
import { usageError } from '../../errors.js'
import { JOURNAL_FILE } from '../../journal/index.js'
import { summaryOf } from '../../protocol/identity.js'
import { MAX_BODY_BYTES } from '../../protocol/limits.js'
import { KINDS, type Kind } from '../../protocol/models.js'
import type { Context } from '../context/context.js'
import type { CostEstimate, Prices } from '../models/prices.js'
import { readPath } from '../process/io.js'
import { identifyMediaFile } from '../runs/media-sources.js'
import { type Missing, missingError, missingModel, modelsByKind } from '../settings/settings.js'
import { plural } from '../terminal/format.js'
import { annotate, MAX_LINE_ANNOTATIONS } from './ci-reports.js'
import { type BatchOptions, selectorFor } from './options.js'

export interface LoadedManifest {
  readonly manifest: Manifest
  readonly lockPath: string
}

/** Reads the manifest. Throws `usage`, with every problem as `file:line: message`. `onMedia`: called before a file is read. */
export async function loadManifest(
  ctx: Context,
  { source: path, flags }: BatchOptions,
  onMedia?: ManifestOptions['onMedia'],
): Promise<LoadedManifest> {
  const bytes = await readFile(ctx, path)
  const lockPath = lockFileOf(path)
  const lock = readLock(lockPath, path)
  const models = await ctx.models()
  const settings = { ...recordedModels(lock), ...(await modelsByKind(ctx)) }
  let isUnknown = false
  const options: ManifestOptions = {
    path,
    bytes,
    allowOutside: flags.allowOutside === true,
    reserved: [path, lockPath, claimPathOf(lockPath)],
    readMedia: (file, shown, type) => identifyMediaFile(file, { shown, type, signal: ctx.interrupts.first }),
    summaryOf,
    maxBodyBytes: MAX_BODY_BYTES,
    ...(onMedia && { onMedia }),
    lock,
    documentOf(name: string) {
      const document = models.find(name)
      isUnknown ||= document === undefined
      return document
    },
    settings,
  }
  let read = await readManifest(options)
  // A key of a matrix is sent only if the model has it as a parameter: without its document, the row would be another one.
  const isUncertain = !read.ok || (isUnknown && read.manifest.hasMatrix)
  if (isUncertain && (await models.ask()).kind === 'list') read = await readManifest(options)
  if (!read.ok) {
    for (const { line, message } of read.problems.slice(0, MAX_LINE_ANNOTATIONS))
      annotate(ctx, { title: 'Manifest', message, at: { path, line } })
    // Loaded only for this error.
    const { problemsError } = await import('../../service/models/read-models.js')
    const problems = read.problems.map(({ line, message }) => ({ file: `${path}:${line}`, message }))
    throw problemsError(`The manifest ${path} has`, problems, '; nothing was sent')
  }
  return { manifest: read.manifest, lockPath }
}

const readFile = ({ interrupts }: Context, path: string): Promise<Uint8Array> =>
  readPath(path, {
    signal: interrupts.first,
    hint: 'Give the path of a manifest (YAML, JSON, JSON Lines or CSV). See `rushes batch --help`.',
    check(found) {
      if (found.isDirectory())
        throw usageError(`${path} is a directory.`, 'Give the path of the manifest file.')
    },
  })

/** A plan with its manifest, lock and options. */
export interface PreparedBatch extends LoadedManifest, InFlight {
  /** The lock file, as it was read. */
  readonly lock: Lock
  readonly plan: Plan
  readonly options: BatchOptions
  /** Missing models. `ctx.missingError` reports them together with other missing settings. */
  readonly missing: readonly Missing[]
}

/** What a batch has in flight: only the journal knows. */
interface InFlight {
  /** Newest first. */
  readonly flights: readonly Flight[]
  /** Whether the journal of another state folder knows what is in flight. */
  readonly isElsewhere: boolean
  /** Whether the journal of this state folder could not be read: a create could pay for a run that is in flight. */
  readonly isUnread: boolean
}

/** Reads what is in flight. Writes nothing, and creates no journal. */
async function inFlightOf(ctx: Context, { batch, working }: Lock, lockPath: string): Promise<InFlight> {
  const nothing = { flights: [], isElsewhere: working !== undefined, isUnread: false }
  if (!existsSync(join(ctx.stateFolder, JOURNAL_FILE))) return nothing
  const journal = await ctx.openJournal()
  const found = journal.tryRead((): InFlight => {
    const flights = journal.inFlight({ id: batch, lockPath }).map(
      (run): Flight => ({
        ...run,
        name: run.entry ?? '',
        hash: run.identity,
        run: run.id,
        kind: run.kind as Kind | undefined,
        files: journal.filesOf(run),
      }),
    )
    return { ...nothing, flights, isElsewhere: working !== undefined && working !== journal.id }
  })
  return found ?? { ...nothing, isUnread: true }
}

/**
 * Reads the lock file and makes the plan, as it would be carried out now. Throws `usage` if the lock file cannot be read,
 * or if `--only` matches nothing.
 */
export async function prepare(
  ctx: Context,
  { manifest, lockPath }: LoadedManifest,
  options: BatchOptions,
): Promise<PreparedBatch> {
  const { force = false, overwrite = false, resubmitUnconfirmed = false, only = [] } = options.flags
  const lock = readLock(lockPath, manifest.path)
  const inFlight = await inFlightOf(ctx, lock, resolve(lockPath))
  const plan = await makePlan({
    ...inFlight,
    manifest,
    lock,
    flags: { force, forcePending: force && only.length > 0, overwrite, resubmitUnconfirmed },
    models: await modelsByKind(ctx),
    allowOutside: options.flags.allowOutside === true,
    selects: await selectorFor(only, manifest.entries),
  })
  return { ...inFlight, manifest, lockPath, lock, plan, options, missing: missingFor(plan.steps) }
}

/** Throws `usage` for conflicting files, or for more runs than `--max-runs` allows. */
export function refuseImpossible({ plan: { steps, counts }, options }: PreparedBatch): void {
  const refused = steps.flatMap(({ file, action, entry }) =>
    action.do === 'conflict' ? [`${file} (${entry.name}, line ${entry.at.line}): ${action.why}`] : [],
  )
  const isForeign = steps.some(({ action }) => action.do === 'conflict' && action.isForeign)
  if (refused.length > 0)
    throw usageError(
      `${plural(refused.length, 'output file exists', 'output files exist')} already; nothing was sent.`,
      [...refused, ...(isForeign ? ['--overwrite replaces these files.'] : [])].join('\n'),
    )
  if (options.maxRuns !== undefined && counts.create > options.maxRuns)
    throw usageError(
      `This batch would create ${plural(counts.create, 'run')}, but --max-runs allows ${options.maxRuns}; nothing was sent.`,
      '--dry-run lists them. --only <glob> selects some of them.',
    )
}

/** Like `refuseImpossible`, but also throws for missing models and `--max-cost`. */
export async function refusePlan(prepared: PreparedBatch): Promise<void> {
  refuseImpossible(prepared)
  const { plan, missing, options } = prepared
  if (missing.length > 0) throw missingError(missing)
  await options.limit.check(() => sumPlan(plan, options.limit.prices))
}

function missingFor(steps: readonly PlanStep[]): readonly Missing[] {
  const kinds = KINDS.filter((kind) =>
    steps.some(
      ({ entry, model, action }) => action.do === 'create' && model === undefined && entry.kind === kind,
    ),
  )
  return kinds.map((kind) =>
    missingModel(
      kind,
      (environment, key) =>
        `Add it to the manifest (models: {${kind}: provider/name}), set ${environment}, ` +
        `or run \`rushes config set ${key} <provider/name>\`.`,
    ),
  )
}

export const pricedRun = ({ entry: { kind, input }, model }: PlanStep) => ({ model, kind, input })

/** Sums the estimates of all runs that a plan may create. */
export const sumPlan = ({ steps }: Plan, prices: Prices): CostEstimate =>
  prices.sum(steps.filter(({ action }) => action.do === 'create').map(pricedRun))
