/** `rushes mcp`: runs a Model Context Protocol server on standard input and output. */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { usageError } from '../../errors.js'
import { isFolder } from '../../host/file-system.js'
import { DEFAULTS } from '../../protocol/defaults.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { wholeNumber } from '../flags/values.js'
import { SETTINGS } from '../settings/table.js'

interface McpFlags {
  /** Value of the flag, not parsed yet. */
  readonly maxRuns: string
  readonly maxCost?: string
  readonly folder: string
}

const MAX_RUNS = 10_000

export function register(command: Command, { act }: CommandEnvironment): void {
  command
    .option('--max-runs <n>', 'Number of runs that a session may create', DEFAULTS.sessionRuns)
    .option('--max-cost <amount>', 'Maximum estimate of a session; further creates are refused')
    .option('--folder <folder>', 'Folder for outputs, manifests and reference images', '.')
  act(command, mcpCommand)
}

async function mcpCommand(ctx: Context, flags: McpFlags): Promise<number> {
  const maxRuns = wholeNumber(flags.maxRuns, '--max-runs', 0, MAX_RUNS)
  if (flags.maxCost !== undefined) SETTINGS.maxCost.check(flags.maxCost, '--max-cost')
  const folder = resolve(flags.folder)
  if (!isFolder(folder)) throw usageError(`--folder: ${flags.folder} is not a folder.`, 'Create it first.')
  // Loaded here because the help does not need it.
  const { serveMcp } = await import('./serve.js')
  return serveMcp(ctx, { ...flags, folder, maxRuns })
}
