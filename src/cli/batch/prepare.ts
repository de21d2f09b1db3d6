/** Reads manifest and lock file, makes the plan, and refuses impossible plans. Needs no network and no API key. */
import { statSync } from 'node:fs'
import { lockFileOf, readLock } from '../../batch/lock/file.js'
import { claimPathOf, type Lock, lockPathOf, outputsOf } from '../../batch/lock/lock.js'
import { MAX_BYTES } from '../../batch/manifest/format.js'
import {
  type FurtherOutputFile,
  type ImageRules,
  type Manifest,
  type ManifestProblem,
  type Models,
  readManifest,
} from '../../batch/manifest/index.js'
import { makePlan, type Plan, type PlanStep } from '../../batch/plan/index.js'
import { recordedModels } from '../../batch/plan/pair.js'
import { safePart, unreserved } from '../../download/file-names.js'
import { checkPlaceholders, fill } from '../../download/target.js'
import { RushesError, usageError } from '../../errors.js'
import { describeError, isSystemError } from '../../host/system-error.js'
import { identityOf } from '../../journal/identity.js'
import { MAX_BODY_BYTES } from '../../protocol/limits.js'
import { imageTypeOf } from '../../protocol/media.js'
import { KINDS, type ModelDocument } from '../../protocol/models.js'
import { formatBytes } from '../../protocol/units.js'
import { fitsBuiltIn } from '../../protocol/validate.js'
import type { Context } from '../context/context.js'
import type { KnownModels } from '../models/known-models.js'
import { refuseOldPrices } from '../models/old-prices.js'
import { openPrices, type Prices } from '../models/prices.js'
import { readPath, readStdin } from '../process/io.js'
import { type Missing, missingError, missingModel, modelsByKind } from '../settings/required-settings.js'
import { plural } from '../terminal/format.js'
import { refuseCost, sumPlan } from './estimates.js'
import type { BatchOptions, BatchWords } from './options.js'
import { annotate, MAX_LINE_ANNOTATIONS } from './reports.js'
import { selectorFor } from './select-entries.js'

/** File name for a manifest from standard input. Its paths are relative to the current folder. */
const STDIN_NAME = 'rushes'

export interface LoadedManifest {
  readonly manifest: Manifest
  readonly prices: Prices
  readonly lockPath: string
  /**
   * Asks the service about models without a document, and if its list is old. Resolves with the manifest, read again, if a
   * document has changed. Undefined otherwise, and for a command that only plans.
   */
  learned(): Promise<LoadedManifest | undefined>
}

type LoadOptions = Pick<BatchOptions, 'mode' | 'allowOutside' | 'maxRuns'> & Pick<ImageRules, 'onImage'>

/** Reads the manifest. Throws `usage`, with every problem as `file:line:column: message`. */
export async function loadManifest(
  ctx: Context,
  word: string,
  options: LoadOptions,
): Promise<LoadedManifest> {
  const loaded = await checkManifest(ctx, word, options)
  if (loaded instanceof RushesError) throw loaded
  return loaded
}

/** Like `loadManifest`, but returns the problems of the manifest. Throws `usage` only if the file cannot be read. */
export async function checkManifest(
  ctx: Context,
  word: string,
  { mode, allowOutside, maxRuns, onImage }: LoadOptions,
): Promise<LoadedManifest | RushesError> {
  const path = word === '-' ? STDIN_NAME : word
  const bytes =
    word === '-'
      ? await readStdin(ctx.stdin, 'the manifest', ctx.interrupts.first)
      : await readFile(ctx, word)
  const lockPath = lockFileOf(path)
  const { furtherOutputs, recorded } = factsInLock(lockPath, path)
  const models = await modelsForManifest(ctx)
  const options = {
    path,
    bytes,
    allowOutside,
    maxRuns,
    naming: { checkPlaceholders, fill, safePart, unreserved },
    imageTypeOf,
    maxBodyBytes: MAX_BODY_BYTES,
    ...(onImage && { onImage }),
    reserved: new Map([
      [lockPathOf(path), 'the lock file'],
      [lockPath, 'the lock file'],
      [claimPathOf(lockPath), 'the claim file'],
    ]),
    furtherOutputs,
    documentOf: models.documentOf,
    settings: { ...recorded, ...(await modelsByKind(ctx)) },
  }
  const refusal = (problems: readonly ManifestProblem[]) =>
    manifestError(word === '-' ? 'standard input' : word, problems)
  const first = await readManifest(options)
  const learn = async () => mode === 'run' && (await models.learn())
  const read = !first.ok && (await learn()) ? await readManifest(options) : first
  if (!read.ok) {
    for (const { line, column, message } of read.problems.slice(0, MAX_LINE_ANNOTATIONS))
      annotate(ctx, { title: 'Manifest', message, at: { path, line, column } })
    return refusal(read.problems)
  }
  let reloaded: Promise<LoadedManifest | undefined> | undefined
  const prices = await openPrices(ctx)
  return { manifest: read.manifest, prices, lockPath, learned: () => (reloaded ??= reload()) }

  async function reload(): Promise<LoadedManifest | undefined> {
    if (!(await learn())) return undefined
    const again = await readManifest(options)
    if (!again.ok) throw refusal(again.problems)
    return { manifest: again.manifest, prices, lockPath, learned: async () => undefined }
  }
}

/** Finds the documents of the models in a manifest, each once. */
async function modelsForManifest(ctx: Context) {
  const models = await ctx.models()
  const found = new Map<string, ModelDocument | undefined>()
  return {
    documentOf(name: string): ModelDocument | undefined {
      if (!found.has(name)) found.set(name, models.find(name))
      return found.get(name)
    },
    /** Asks the service about these models. Resolves with whether a document has changed. */
    async learn(): Promise<boolean> {
      const names = [...found.keys()]
      if (names.length === 0) return false
      const before = JSON.stringify([...found.values()])
      await models.learn(names)
      for (const name of names) found.set(name, models.find(name))
      return JSON.stringify([...found.values()]) !== before
    },
  }
}

/**
 * Returns the outputs of each row except the first, and the models of the lock file. An unreadable lock file is reported
 * later, when the plan is made.
 */
function factsInLock(
  lockPath: string,
  manifest: string,
): { readonly furtherOutputs: readonly FurtherOutputFile[]; readonly recorded: Models } {
  try {
    const lock = readLock(lockPath, manifest)
    const furtherOutputs = [...lock.entries].flatMap(([name, { made }]) =>
      outputsOf(made)
        .slice(1)
        .map(({ file }, at) => ({ name, number: at + 2, file })),
    )
    return { furtherOutputs, recorded: recordedModels(lock) }
  } catch {
    return { furtherOutputs: [], recorded: {} }
  }
}

async function readFile({ interrupts }: Context, path: string): Promise<Uint8Array> {
  try {
    const found = statSync(path)
    if (found.isDirectory())
      throw usageError(`${path} is a directory.`, 'Give the path of the manifest file.')
    if (found.size > MAX_BYTES)
      throw usageError(
        `${path} is too large (${formatBytes(found.size)}). A manifest may have at most ${MAX_BYTES / 1024 / 1024} MiB.`,
      )
    return await readPath(path, interrupts.first)
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw usageError(
      `${describeError(error, path)}.`,
      'Give the path of a manifest (YAML, JSON, JSON Lines or CSV). See `rushes batch --help`.',
    )
  }
}

/** Maximum number of problems shown: one or two screens. */
const MAX_SHOWN = 200

function manifestError(name: string, problems: readonly ManifestProblem[]): RushesError {
  const lines = problems
    .slice(0, MAX_SHOWN)
    .map(({ line, column, message }) => `${name}:${line}:${column}: ${message}`)
  const more = problems.length - lines.length
  return usageError(
    `The manifest ${name} has ${plural(problems.length, 'problem')}; nothing was sent.`,
    [...lines, ...(more > 0 ? [`and ${more} more`] : [])].join('\n'),
  )
}

/** A plan with its manifest, lock and options. */
export interface PreparedBatch extends BatchWords {
  readonly manifest: Manifest
  readonly lockPath: string
  readonly prices: Prices
  /** The lock file, as it was read. */
  readonly lock: Lock
  readonly plan: Plan
  /** Makes the plan again, with another lock. */
  planWith(lock: Lock): Promise<Plan>
  readonly options: BatchOptions
  /** Missing models. `ctx.connect` reports them together with other missing settings. */
  readonly missing: readonly Missing[]
}

/**
 * Reads the lock file and makes the plan. Throws `usage` if the lock file cannot be read, or if `--only` matches
 * nothing.
 */
export async function prepare(
  ctx: Context,
  { manifest, lockPath, prices, learned }: LoadedManifest,
  options: BatchOptions,
  words: BatchWords,
): Promise<PreparedBatch> {
  const common = {
    manifest,
    flags: { ...options, forcePending: options.force && options.only.length > 0 },
    models: await modelsByKind(ctx),
    identity: identityOf,
    allowOutside: options.allowOutside,
    selects: await selectorFor(options.only, manifest.entries),
  }
  const planWith = (lock: Lock) => makePlan({ ...common, lock })
  const lock = readLock(lockPath, manifest.path)
  const plan = await planWith(lock)
  const hasLimit = (options.cost.limit ?? options.allowance?.maxCost) !== undefined
  const known = await ctx.models()
  const needsPrice = hasLimit && sumPlan(plan, prices).withoutPrice > 0
  const isAsked = options.mode === 'run' && (needsPrice || needsDocuments(plan, known))
  const fresh = isAsked ? await learned() : undefined
  if (fresh !== undefined) return prepare(ctx, fresh, options, words)
  if (hasLimit && options.mode === 'run') refuseOldPrices(known, prices, modelsToCreate(plan))
  const missing = missingFor(plan.steps)
  return { ...words, manifest, lockPath, prices, lock, plan, planWith, options, missing }
}

/** Whether the service's documents may change what this batch creates: an input, or whether a row is paid for already. */
function needsDocuments({ steps }: Plan, known: KnownModels): boolean {
  const creates = steps.filter(({ action }) => action.do === 'create')
  const models = new Set(creates.map(({ model = '' }) => model))
  const unknown = new Set([...models].filter((model) => known.find(model) === undefined))
  // Equal inputs of one matrix: a key of it may be a parameter of the model.
  const combinations = creates.flatMap(({ entry: { template }, hash }) =>
    template === undefined || hash === undefined ? [] : [`${template} ${hash}`],
  )
  return (
    [...models].some((model) => known.oldListOf(model) !== undefined) ||
    // Another machine may have paid for the row with a document that this one does not have yet.
    creates.some(({ locked }) => locked !== undefined) ||
    (unknown.size > 0 && new Set(combinations).size < combinations.length) ||
    creates.some(({ model = '', entry }) => unknown.has(model) && !fitsBuiltIn(entry.kind, entry.input))
  )
}

const modelsToCreate = ({ steps }: Plan): readonly string[] =>
  steps.flatMap(({ action, model }) => (action.do === 'create' && model !== undefined ? [model] : []))

/** Throws `usage` for conflicting files, or for more runs than `--max-runs` allows. */
export function refuseImpossible({
  plan: { steps, counts },
  options,
}: Pick<PreparedBatch, 'plan' | 'options'>): void {
  const refused = steps.flatMap(({ file, action, entry }) =>
    action.do === 'conflict' ? [`${file} (${entry.name}, line ${entry.at.line}): ${action.why}`] : [],
  )
  const isForeign = steps.some(({ action }) => action.do === 'conflict' && action.isForeign)
  if (refused.length > 0)
    throw usageError(
      `${plural(refused.length, 'output file exists', 'output files exist')} already; nothing was sent.`,
      [...refused, ...(isForeign ? ['--overwrite replaces files that are not in the lock file.'] : [])].join(
        '\n',
      ),
    )
  if (options.maxRuns !== undefined && counts.create > options.maxRuns)
    throw usageError(
      `This batch would create ${plural(counts.create, 'run')}, but --max-runs allows ${options.maxRuns}; nothing was sent.`,
      '--dry-run lists them. --only <glob> selects some of them.',
    )
}

/** Like `refuseImpossible`, but also throws for missing models and `--max-cost`. Does not read the journal. */
export function refusePlan(prepared: PreparedBatch): void {
  refuseImpossible(prepared)
  refuseCost(prepared)
  if (prepared.missing.length > 0) throw missingError(prepared.missing)
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
