/** Flags for the wait and for the outputs, shared by `run`, `wait` and `download`. */
import { Option } from 'commander'
import type { Target } from '../../download/file-names.js'
import { usageError } from '../../errors.js'
import { isFolder } from '../../host/file-system.js'
import { quoteWord } from '../../host/shell.js'
import { parseDuration } from '../../protocol/units.js'
import type { Settings } from '../settings/settings.js'
import { SETTINGS } from '../settings/table.js'
import type { Terminal } from '../terminal/output.js'

export interface DeliveryOptions {
  readonly timeout?: string
  readonly download?: boolean
  readonly output?: string
  readonly overwrite?: boolean
  readonly sidecar?: boolean
  readonly show?: boolean
}

/** `standard`: the wait without the flag, if it is not that of the settings. */
export const timeoutOption = (what: string, standard: string = SETTINGS.timeout.default): Option =>
  new Option('--timeout <duration>', `${what}: 15m; 0 for no limit (default: ${standard})`)

export const SHOW = ['--show', 'Draw the results in the terminal'] as const

export const deliveryOptions = (timeout = timeoutOption('How long to wait')): readonly Option[] => [
  new Option(
    '-o, --output <path>',
    'Download to this path; {id} {index} {kind} {name} {ext} are filled in, - is standard output',
  ),
  new Option('-d, --download', 'Download into the current folder'),
  new Option('--overwrite', 'Replace a file that exists'),
  timeout,
  new Option(...SHOW),
  new Option('--sidecar', 'Write <file>.json with model, input, id and times'),
]

/** The flags after validation. */
export interface Delivery {
  /** Where to download the outputs. If undefined, only their URLs are printed. */
  readonly target: Target | undefined
  readonly overwrite: boolean
  readonly sidecar: boolean
  /** Maximum wait in ms; undefined for no limit. `once` sends one status request, and the run must be finished. */
  readonly patience: number | 'once' | undefined
  /** Whether to draw the results in the terminal, if it can. */
  readonly show: boolean
  /**
   * Returns the flags, quoted, with which a later command delivers the outputs in the same way. `runs`: how many of the
   * runs of this command it delivers.
   */
  again(runs: number): readonly string[]
}

export interface DeliveryNeeds {
  /** Number of runs of the command. */
  readonly runs: number
  /** Whether the command is `download`, which sends one status request unless --timeout is given. */
  readonly isDownload?: boolean
}

/**
 * Checks the flags. Throws `usage`. `--local` implies a download, because its URLs stop working when the process ends.
 */
export async function deliveryOf(
  ctx: Terminal & Settings,
  options: DeliveryOptions,
  { runs, isDownload = false }: DeliveryNeeds,
): Promise<Delivery> {
  // Loaded here because the help does not need it.
  const { parseTarget } = await import('../../download/file-names.js')
  const target = parseTarget(options.output, {
    download: options.download === true || ctx.globals.local || isDownload,
    isFolder,
  })
  if (target?.kind === 'stdout') {
    checkStdout(ctx)
    if (runs > 1)
      throw usageError('-o - works for one run only.', 'Name the files instead: -o "fox-{index}.{ext}".')
  }
  if (options.sidecar === true && (target === undefined || target.kind === 'stdout'))
    throw usageError(
      '--sidecar needs -d or -o: it writes a file beside each download.',
      'Add -d or -o <path>.',
    )
  return {
    target,
    overwrite: options.overwrite === true,
    sidecar: options.sidecar === true,
    patience: isDownload && options.timeout === undefined ? 'once' : timeoutOf(ctx, options.timeout),
    show: options.show === true,
    again: (some) =>
      flagsAgain(
        isDownload ? { ...options, download: true } : options,
        some === runs || target?.kind === 'folder',
      ),
  }
}

function timeoutOf(settings: Settings, flag: string | undefined): number | undefined {
  const text = settings.setting('timeout', flag) ?? '0'
  return parseDuration(text, flag === undefined ? 'timeout' : '--timeout') || undefined
}

/**
 * Flags for a later command. For only some of the runs, a path (no folder) is repeated only if it contains {id}: numbers in
 * a name count all runs, and would give other files.
 */
function flagsAgain(
  { download, output, overwrite, sidecar, show }: DeliveryOptions,
  isForAny: boolean,
): readonly string[] {
  const isReusable = output !== undefined && (isForAny || output.includes('{id}'))
  const isDownload = download === true || output !== undefined
  return [
    ...(isReusable ? ['-o', quoteWord(output)] : []),
    ...(isDownload && !isReusable ? ['-d'] : []),
    ...(overwrite === true ? ['--overwrite'] : []),
    ...(sidecar === true ? ['--sidecar'] : []),
    ...(show === true ? ['--show'] : []),
  ]
}

/** Throws `usage` where `-o -` would write bytes to a terminal or between JSON. */
function checkStdout({ out }: Terminal): void {
  if (out.stdoutIsTerminal)
    throw usageError(
      '-o - would write image or video bytes to the terminal.',
      'Redirect standard output (-o - > fox.png) or name a file (-o fox.png).',
    )
  if (out.mode.json)
    throw usageError(
      '-o - and --json cannot be used together: both write to standard output.',
      'Use only one of them.',
    )
}
