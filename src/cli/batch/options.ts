/** Checks the flags of `rushes batch`, and builds the command that continues a batch. */
import { usageError } from '../../errors.js'
import { quoteWord } from '../../protocol/text.js'
import { parseDuration } from '../../protocol/units.js'
import type { Context } from '../context/context.js'
import { type ProgressFlags, progressFormOf } from '../flags/delivery.js'
import { commandLine, type ServiceFlags } from '../flags/globals.js'
import { wholeNumber } from '../flags/values.js'
import { maxCostOf } from '../models/prices.js'
import type { ProgressForm } from '../terminal/progress.js'
import type { BatchAllowance, CostLimit } from './estimates.js'

/** The manifest of a command that names none. */
export const MANIFEST_NAME = 'rushes.yaml'

/** Flags as given on the command line. */
export interface BatchFlags extends ProgressFlags {
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
  readonly watch?: boolean
  readonly yes?: boolean
  readonly report?: string
}

export interface BatchOptions {
  readonly mode: 'run' | 'check' | 'dry run'
  /** Globs. Empty selects every run. */
  readonly only: readonly string[]
  readonly force: boolean
  readonly overwrite: boolean
  readonly resubmitUnconfirmed: boolean
  readonly allowOutside: boolean
  /** Maximum number of runs. Undefined: no limit. */
  readonly maxRuns: number | undefined
  readonly cost: CostLimit
  /** Maximum number of runs in flight. Undefined: no limit. */
  readonly concurrency: number | undefined
  readonly failFast: boolean
  /** Timeout of each run, from the response to its create. Undefined: no limit. */
  readonly patienceMs: number | undefined
  readonly watch: boolean
  /** With `watch`: creates without a question. */
  readonly yes: boolean
  readonly progress: ProgressForm
  readonly allowance?: BatchAllowance
}

const MAX_COUNT = 999_999_999

/** Checks the flags. Throws `usage`. */
export async function batchOptionsOf(ctx: Context, flags: BatchFlags): Promise<BatchOptions> {
  if (flags.check === true && flags.dryRun === true)
    throw usageError(
      '--check and --dry-run cannot be used together.',
      '--check is for CI. --dry-run prints the plan.',
    )
  if (flags.check === true && flags.watch === true)
    throw usageError(
      '--check and --watch cannot be used together.',
      '--check is for CI. --watch --dry-run prints the plan after each change.',
    )
  const timeout = (await ctx.setting('timeout', flags.timeout)) ?? '0'
  return {
    mode: flags.check === true ? 'check' : flags.dryRun === true ? 'dry run' : 'run',
    only: flags.only ?? [],
    force: flags.force === true,
    overwrite: flags.overwrite === true,
    resubmitUnconfirmed: flags.resubmitUnconfirmed === true,
    allowOutside: flags.allowOutside === true,
    maxRuns: flags.maxRuns === undefined ? undefined : wholeNumber(flags.maxRuns, '--max-runs', 0, MAX_COUNT),
    cost: { limit: await maxCostOf(ctx, flags.maxCost), used: 0 },
    concurrency:
      flags.concurrency === undefined
        ? undefined
        : wholeNumber(flags.concurrency, '--concurrency', 1, MAX_COUNT),
    failFast: flags.failFast === true,
    patienceMs: parseDuration(timeout, '--timeout') || undefined,
    watch: flags.watch === true,
    yes: flags.yes === true,
    progress: progressFormOf(flags),
  }
}

export interface BatchWords {
  /** Path of the manifest, or `-` for standard input. */
  readonly word: string
  readonly flags: BatchFlags
}

/**
 * Returns the command that continues a batch, with every flag that the same rows need. Leaves out `--force` and
 * `--resubmit-unconfirmed`, which would repeat creates that this batch has already sent.
 */
export function batchCommandLine(globals: ServiceFlags, { word, flags }: BatchWords): string {
  const value = (name: string, text: string | undefined) =>
    text === undefined ? [] : [name, quoteWord(text)]
  const flag = (name: string, isGiven: boolean | undefined) => (isGiven === true ? [name] : [])
  return commandLine('batch', globals, [
    ...(flags.only ?? []).flatMap((glob) => value('--only', glob)),
    ...value('--max-runs', flags.maxRuns),
    ...value('--max-cost', flags.maxCost),
    ...value('--concurrency', flags.concurrency),
    ...value('--timeout', flags.timeout),
    ...flag('--fail-fast', flags.failFast),
    ...flag('--allow-outside', flags.allowOutside),
    ...flag('--overwrite', flags.overwrite),
    ...flag('--watch', flags.watch),
    ...flag('--yes', flags.yes),
    ...(word.startsWith('-') && word !== '-' ? ['--'] : []),
    word === '-' ? word : quoteWord(word),
  ])
}
