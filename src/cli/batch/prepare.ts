/** Makes the plan from the manifest and the lock file, and refuses plans that cannot be carried out. No network, no key. */
import { readLock } from '../../batch/lock/file.js'
import type { Lock } from '../../batch/lock/lock.js'
import type { Manifest, ManifestEntry } from '../../batch/manifest/index.js'
import { makePlan, type Plan, type Step } from '../../batch/plan/index.js'
import { usageError } from '../../errors.js'
import { identityOf } from '../../journal/identity.js'
import { KINDS } from '../../protocol/models.js'
import { nearest } from '../../protocol/nearest.js'
import { printable } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import type { Missing } from '../settings/missing.js'
import { missingModel, modelsByKind } from '../settings/model-settings.js'
import { plural } from '../terminal/plural.js'
import type { BatchWords } from './command-line.js'
import type { Loaded } from './load.js'
import type { BatchOptions } from './options.js'

/** A plan with its manifest and options. */
export interface Prepared extends BatchWords {
  readonly manifest: Manifest
  readonly lockPath: string
  /** As it was read. */
  readonly lock: Lock
  readonly plan: Plan
  /** The plan with another lock. */
  planWith(lock: Lock): Promise<Plan>
  readonly options: BatchOptions
  /** Models that are not set; `ctx.connect` reports them with everything else that is missing. */
  readonly missing: readonly Missing[]
}

/** Throws `usage` for a lock file that cannot be read, and an `--only` that matches nothing. */
export async function prepare(
  ctx: Context,
  { manifest, lockPath }: Loaded,
  options: BatchOptions,
  words: BatchWords,
): Promise<Prepared> {
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
  return { ...words, manifest, lockPath, lock, plan, planWith, options, missing: missingFor(plan.steps) }
}

/** Throws `usage` for files in the way, and for more runs than `--max-runs` allows. */
export function refuseImpossible({
  plan: { steps, counts },
  options,
}: Pick<Prepared, 'plan' | 'options'>): void {
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

function missingFor(steps: readonly Step[]): readonly Missing[] {
  const kinds = KINDS.filter((kind) =>
    steps.some(
      ({ entry, model, action }) => action.do === 'create' && model === undefined && entry.kind === kind,
    ),
  )
  return kinds.map((kind) =>
    missingModel(
      kind,
      (environment, key) =>
        `Add it to the manifest (models: {${kind}: provider/name}), set ${environment}, or run \`rushes config set ${key} <provider/name>\`.`,
    ),
  )
}

/** A glob matches the name of a run, the name of its row, that name before its matrix filled it in, or its output. */
async function selectorFor(
  only: readonly string[],
  entries: readonly ManifestEntry[],
): Promise<(entry: ManifestEntry) => boolean> {
  if (only.length === 0) return () => true
  const { default: picomatch } = await import('picomatch')
  const matchers = only.map((glob) => ({ glob, matches: picomatch(glob, { dot: true }) }))
  const means = (
    { name, rowName, template, output }: ManifestEntry,
    matches: (text: string) => boolean,
  ): boolean => [name, rowName, template ?? name, output].some((text) => matches(text))
  for (const { glob, matches } of matchers)
    if (!entries.some((entry) => means(entry, matches))) {
      const near =
        groupOf(glob, entries) ??
        nearest(
          glob,
          entries.flatMap(({ name, output }) => [name, output]),
        )
      throw usageError(
        `--only ${glob} does not match the name or output of any run.${near === undefined ? '' : ` Did you mean "${printable(near)}"?`}`,
        '* matches within one folder, ** across folders.',
      )
    }
  return (entry) => matchers.some(({ matches }) => means(entry, matches))
}

/** `icon*` for the beginning of several names. */
function groupOf(word: string, entries: readonly ManifestEntry[]): string | undefined {
  const longer = entries.filter(({ name }) => word !== '' && name.startsWith(word))
  if (longer.length < 2) return undefined
  return `${word}${longer.some(({ name }) => name.includes('/', word.length)) ? '**' : '*'}`
}
