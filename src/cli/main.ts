/**
 * The whole program as one function: takes an argument list, an environment and streams, and returns an exit code. It
 * does not use `process`, so that tests can run whole command lines in the test process.
 */
import { type Command, CommanderError } from 'commander'
import { EXIT } from '../errors.js'
import { asRushesError, Interruption, type Interrupts } from '../host/interrupts.js'
import type { CommandEnvironment, Context, ContextOptions, ReplaceableParts } from './context/context.js'
import { commandWord, type Globals, globalsOf, plainWords, wantsJson } from './flags/globals.js'
import { findCommand, usageOf } from './help/find-command.js'
import type { Io } from './process/io.js'
import { createProgram, globalsOfCommand } from './program.js'
import { createOutput, type Output } from './terminal/output.js'
import { createStyle } from './terminal/style.js'

export interface MainOptions extends Io {
  readonly interrupts: Interrupts
  readonly parts?: ReplaceableParts
}

export async function main(options: MainOptions): Promise<number> {
  const print = (text: string) => void options.stdout.write(text)
  if (options.argv[0] === '__complete') {
    const { completeLine } = await import('./completion/index.js')
    print(await completeLine(options.argv.slice(1), options.env))
    return EXIT.ok
  }
  let exitCode: number = EXIT.ok
  let out: Output | undefined
  const run: CommandEnvironment['run'] = async (command, work, needs = {}) => {
    const globals = globalsOfCommand(command)
    const output = await outputFor(options, globals)
    out = output
    exitCode = await withContext({ ...options, ...needs, globals, out: output }, work)
  }
  try {
    const columns = () => options.stdout.columns
    const program = await createProgram(commandWord(options.argv), { run, print, columns })
    if (options.argv.length === 0) program.outputHelp()
    else await parse(program, options.argv)
    return exitCode
  } catch (thrown) {
    if (thrown instanceof CommanderError && thrown.exitCode === 0) return EXIT.ok
    out ??= await outputFor(options, globalsOf({ json: wantsJson(options.argv) }))
    return report(thrown, out)
  }
}

/** Parses the line and runs its command. Throws `usage` for a line that does not parse. */
async function parse(program: Command, argv: readonly string[]): Promise<void> {
  // Checks the command before parsing, because commander would print the program's help for `whoami --help`.
  const command = findCommand(program, plainWords(argv))
  try {
    await program.parseAsync(withHelpLast(program, argv), { from: 'user' })
  } catch (thrown) {
    throw thrown instanceof CommanderError && thrown.exitCode !== 0 ? usageOf(thrown, command) : thrown
  }
}

/**
 * Moves `--help` to the end, so that `rushes --help run image` prints the help of `run image`. commander would print
 * the help of the words before the flag.
 */
function withHelpLast(program: Command, argv: readonly string[]): string[] {
  const at = argv.findIndex((word) => ['-h', '--help', '--'].includes(word))
  const before = argv.slice(0, Math.max(at, 0))
  const isEarly = at !== -1 && argv[at] !== '--' && isCommandPath(program, before)
  return isEarly ? [...before, ...argv.slice(at + 1), '--help'] : [...argv]
}

/** Whether all words are commands and a subcommand must follow. Otherwise `--help` may be the value of a flag. */
const isCommandPath = (program: Command, words: readonly string[]): boolean =>
  plainWords(words).length === words.length && findCommand(program, words).commands.length > 0

async function outputFor(
  { stdout, stderr, env }: MainOptions,
  { json, quiet, debug, color }: Globals,
): Promise<Output> {
  const style = {
    out: await createStyle(stdout, env, { color }),
    err: await createStyle(stderr, env, { color }),
  }
  const isJobLog = env.GITHUB_ACTIONS === 'true'
  return createOutput({ stdout, stderr, mode: { json, quiet, debug }, style, isJobLog })
}

async function withContext(
  options: ContextOptions,
  work: (ctx: Context) => Promise<number>,
): Promise<number> {
  // Loaded here because help, version and usage errors need no context.
  const { createContext } = await import('./context/context.js')
  const ctx = createContext(options)
  try {
    // Reads the profile so that a missing profile is reported, also for a command that needs no setting.
    if (options.globals.profile !== undefined) await ctx.profile()
    const isLocal = !options.globals.local && options.ignoresLocal !== true && (await ctx.isLocal())
    return await work(isLocal ? ctx.withLocal() : ctx)
  } finally {
    await ctx.close()
  }
}

function report(thrown: unknown, out: Output): number {
  const error = asRushesError(thrown)
  const isSilent = thrown instanceof Interruption && thrown.isSilent
  if (!isSilent) out.error(error)
  const stack = thrown instanceof Error ? thrown.stack : undefined
  if (stack !== undefined && !isSilent) out.debug(withCauses(thrown as Error))
  return error.exitCode
}

const withCauses = (error: Error): string =>
  `${error.stack ?? error.message}${error.cause instanceof Error ? `\ncaused by: ${withCauses(error.cause)}` : ''}`
