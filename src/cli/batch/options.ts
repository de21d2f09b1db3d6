/** Checks the flags of `rushes batch`, selects the rows of `--only`, and builds the command that continues a batch. */
import type { ManifestEntry } from '../../batch/manifest/entry.js'
import { usageError } from '../../errors.js'
import { quoteWord } from '../../host/shell.js'
import { didYouMean } from '../../protocol/text.js'
import { parseDuration } from '../../protocol/units.js'
import type { Context } from '../context/context.js'
import { wholeNumber } from '../flags/values.js'
import { type CostLimit, openCostLimit } from '../models/cost-limit.js'
import { commandLine, globOf, type ServiceFlags } from '../settings/globals.js'

/** Flags as typed. */
export interface BatchFlags {
  readonly check?: boolean
  readonly dryRun?: boolean
  readonly only?: readonly string[]
  readonly force?: boolean
  readonly maxRuns?: string
  readonly maxCost?: string
  readonly concurrency?: string
  readonly failFast?: boolean
  readonly resubmitUnconfirmed?: boolean
  readonly allowOutside?: boolean
  readonly overwrite?: boolean
  readonly timeout?: string
  readonly report?: string
}

/** A checked command line. */
export interface BatchOptions {
  /** Path of the manifest. */
  readonly source: string
  readonly flags: BatchFlags
  readonly mode: 'run' | 'check' | 'dry run'
  /** Maximum number of runs. Undefined: no limit. */
  readonly maxRuns: number | undefined
  readonly limit: CostLimit
  /** Maximum number of runs in flight. Undefined: no limit. */
  readonly concurrency: number | undefined
  /** Timeout of each run, from the response to its create. Undefined: no limit. */
  readonly timeoutMs: number | undefined
  /** Command that continues the batch and pays for no run again, in backquotes. */
  readonly continuation: string
  /** Returns how to create a run again, and pay for it again. Without a name it has a placeholder. */
  payAgain(name?: string): string
}

const MAX_COUNT = 999_999_999

/** Checks the flags. `limit`: of a session that runs the batch. Throws `usage`. */
export async function batchOptionsOf(
  ctx: Context,
  source: string,
  flags: BatchFlags,
  limit?: CostLimit,
): Promise<BatchOptions> {
  const { check = false, dryRun = false, maxRuns, concurrency } = flags
  if (check && dryRun)
    throw usageError(
      '--check and --dry-run cannot be used together.',
      '--check is for CI. --dry-run prints the plan.',
    )
  const timeout = ctx.setting('timeout', flags.timeout) ?? '0'
  return {
    source,
    flags,
    mode: check ? 'check' : dryRun ? 'dry run' : 'run',
    maxRuns: maxRuns === undefined ? undefined : wholeNumber(maxRuns, '--max-runs', 0, MAX_COUNT),
    limit: limit ?? (await openCostLimit(ctx, { flag: flags.maxCost })),
    concurrency:
      concurrency === undefined ? undefined : wholeNumber(concurrency, '--concurrency', 1, MAX_COUNT),
    timeoutMs: parseDuration(timeout, '--timeout') || undefined,
    continuation: `\`${batchCommandLine(ctx.globals, { source, flags })}\``,
    payAgain(name) {
      const command = batchCommandLine(ctx.globals, { source, flags: { ...flags, only: [] } })
      const only = name === undefined ? '<name>' : quoteWord(globOf(name))
      return `To create it again and pay again: \`${command} --only ${only} --force\``
    },
  }
}

/**
 * Returns the command that continues a batch, with every flag that the same rows need. Leaves out `--force` and
 * `--resubmit-unconfirmed`, which would repeat creates that this batch has already sent.
 */
export function batchCommandLine(
  globals: ServiceFlags,
  { source, flags }: Pick<BatchOptions, 'source' | 'flags'>,
): string {
  const words = CONTINUED.flatMap(([flag, name]) =>
    [flags[name] ?? []].flat().flatMap((value) => {
      if (typeof value === 'string') return [flag, quoteWord(value)]
      return value ? [flag] : []
    }),
  )
  // Not a flag, even before further flags.
  const path = quoteWord(source.replace(/^-/, './-'))
  return commandLine('batch', globals, [...words, path])
}

const CONTINUED: readonly (readonly [string, keyof BatchFlags])[] = [
  ['--only', 'only'],
  ['--max-runs', 'maxRuns'],
  ['--max-cost', 'maxCost'],
  ['--concurrency', 'concurrency'],
  ['--timeout', 'timeout'],
  ['--fail-fast', 'failFast'],
  ['--allow-outside', 'allowOutside'],
  ['--overwrite', 'overwrite'],
]

/**
 * `--only <glob>`: returns a function that selects runs. A glob matches the name of the run, the name of its row,
 * or its output.
 */
export async function selectorFor(
  only: readonly string[],
  entries: readonly ManifestEntry[],
): Promise<(entry: ManifestEntry) => boolean> {
  if (only.length === 0) return () => true
  const { default: picomatch } = await import('picomatch')
  const matchers = only.map((glob) => {
    const matches = picomatch(glob.normalize(), { dot: true })
    return { glob, matches: (text: string) => matches(text.normalize()) }
  })
  const matchesEntry = (
    { name, rowName, output }: ManifestEntry,
    matches: (text: string) => boolean,
  ): boolean => [name, rowName, output].some((text) => matches(text))
  for (const { glob, matches } of matchers)
    if (!entries.some((entry) => matchesEntry(entry, matches))) {
      const names = entries.flatMap(({ name, output }) => [name, output])
      throw usageError(
        `--only ${glob} does not match the name or output of any run.${didYouMean(glob, names)}`,
        '* matches within one folder, ** across folders.',
      )
    }
  return (entry) => matchers.some(({ matches }) => matchesEntry(entry, matches))
}
