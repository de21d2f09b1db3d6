/** The flags that say how long to wait and where the outputs go; `run` and `wait` share them. */
import { type Command, Option } from 'commander'
import { parseTarget, type Target } from '../../download/target.js'
import { usageError } from '../../errors.js'
import { isFolder } from '../../host/files.js'
import type { Context } from '../context.js'
import { parseDuration } from '../duration.js'

export interface DeliveryOptions {
  readonly timeout?: string
  readonly download?: boolean
  readonly output?: string
  readonly overwrite?: boolean
  readonly open?: boolean
}

const ROWS: readonly (readonly [string, string])[] = [
  ['--timeout <duration>', 'how long to wait: 90s, 15m, 0 for ever (default 30m)'],
  ['-d, --download', 'download the outputs into the current folder'],
  [
    '-o, --output <path>',
    'download to this path; {id} {index} {kind} {name} {ext} are filled in, - is standard output',
  ],
  ['--overwrite', 'replace a file that exists'],
]

export function addDeliveryOptions(command: Command): void {
  for (const [flags, about] of ROWS) command.addOption(new Option(flags, about).helpGroup('Result options:'))
}

/** Where outputs are to be put; undefined when their URLs are the answer. */
export interface Delivery {
  readonly target: Target | undefined
  readonly overwrite: boolean
  /** Undefined: for ever. */
  readonly timeoutMs: number | undefined
  readonly open: boolean
}

/** Throws `usage`. Under `--local` outputs are downloaded anyway: their URLs end with the process. */
export async function deliveryOf(ctx: Context, options: DeliveryOptions, runs: number): Promise<Delivery> {
  const timeoutText = (await ctx.setting('timeout', options.timeout)) ?? '0'
  const timeoutMs = parseDuration(timeoutText, 'The wait limit')
  const target = parseTarget(options.output, {
    download: options.download === true || ctx.globals.local,
    isFolder,
  })
  if (target?.kind === 'stdout') checkStdout(ctx, runs)
  return {
    target,
    overwrite: options.overwrite === true,
    timeoutMs: timeoutMs === 0 ? undefined : timeoutMs,
    open: options.open === true,
  }
}

function checkStdout({ out }: Context, runs: number): void {
  if (out.stdoutIsTerminal)
    throw usageError(
      '-o - writes bytes, and standard output is a terminal.',
      'Redirect it: -o - > fox.png, or name a file: -o fox.png.',
    )
  if (out.mode.json) throw usageError('-o - and --json both want standard output.', 'Leave one of them out.')
  if (runs > 1)
    throw usageError('-o - takes the output of one run.', 'Name files instead: -o "fox-{index}.{ext}".')
}
