/** `rushes mcp`: runs a Model Context Protocol server on standard input and output. */
import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { usageError } from '../../errors.js'
import { isFolder } from '../../host/directories.js'
import { DEFAULTS } from '../../protocol/defaults.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { wholeNumber } from '../flags/values.js'
import type { Commands } from '../mcp/session.js'
import { SETTINGS } from '../settings/table.js'

export interface McpOptions {
  /** Value of the flag, not parsed yet. */
  readonly maxRuns: string
  readonly maxCost?: string
  readonly folder: string
  readonly allowOutside?: boolean
}

const MAX_RUNS = 10_000

export function register(command: Command, { run }: CommandEnvironment, serve = mcpCommand): void {
  command
    .addOption(
      new Option('--max-runs <n>', 'Number of runs that a session may create').default(DEFAULTS.sessionRuns),
    )
    .addOption(
      new Option('--max-cost <amount>', 'Maximum estimate of a session; further creates are refused'),
    )
    .addOption(
      new Option('--folder <folder>', 'Folder for outputs, manifests and reference images').default('.'),
    )
    .addOption(new Option('--allow-outside', 'Allow paths outside the folder'))
    .action((flags: McpOptions) => run(command, (ctx) => serve(ctx, flags)))
}

export async function mcpCommand(ctx: Context, options: McpOptions): Promise<number> {
  const maxRuns = wholeNumber(options.maxRuns, '--max-runs', 0, MAX_RUNS)
  if (options.maxCost !== undefined) SETTINGS.maxCost.check(options.maxCost, '--max-cost')
  const folder = resolve(options.folder)
  if (!isFolder(folder)) throw usageError(`--folder: ${options.folder} is not a folder.`, 'Create it first.')
  // Loaded here because the help does not need it.
  const [{ serveMcp }, batch, cancel, list, models, run, show] = await Promise.all([
    import('../mcp/serve.js'),
    import('./batch.js'),
    import('./cancel.js'),
    import('./list.js'),
    import('./models.js'),
    import('./run.js'),
    import('./show.js'),
  ])
  const commands: Commands = {
    batch: batch.batchCommand,
    cancel: cancel.cancelCommand,
    list: list.listCommand,
    models: models.modelsCommand,
    run: (at, { request, flags, ...session }) => run.runCommand(at, request, flags, session),
    show: show.showCommand,
  }
  return serveMcp(ctx, { ...options, folder, maxRuns, allowOutside: options.allowOutside === true }, commands)
}
