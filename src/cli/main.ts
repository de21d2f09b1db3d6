/**
 * The whole program as one function: takes an argument list, an environment and streams, and returns an exit code. It
 * does not use `process`, so that tests can run whole command lines in the test process.
 */
import { type Command, CommanderError } from 'commander'
import { EXIT, usageError } from '../errors.js'
import { asRushesError, Interruption, type Interrupts } from '../host/interrupts.js'
import { printable, shortened } from '../protocol/text.js'
import type { CommandEnvironment, Context, ContextOptions, ReplaceableParts } from './context/context.js'
import { commandWord, type Globals, globalsOf, plainWords, wantsJson } from './flags/globals.js'
import { findCommand, usageOf } from './help/usage-errors.js'
import type { ModelProgram, ModelProgramOptions } from './models/model-program.js'
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
  const { argv } = options
  let exitCode: number = EXIT.ok
  let out: Output | undefined
  /** Context that opened the models of the line. The command continues with it, so that it reads its key only once. */
  let opened: Context | undefined
  const run: CommandEnvironment['run'] = async (command, work, needs = {}) => {
    const globals = globalsOfCommand(command)
    const output = outputFor(options, globals)
    out = output
    exitCode = await withContext({ ...options, ...needs, globals, out: output }, work, opened)
  }
  const freshModels = async (globals: Globals) => {
    const { createContext } = await import('./context/context.js')
    out = outputFor(options, globals)
    opened ??= createContext({ ...options, globals, out })
    return opened.models()
  }
  const warn = (text: string) => {
    out ??= outputFor(options, globalsOf({ json: wantsJson(argv) }))
    out.warn(text)
  }
  try {
    refuseOtherEncodings(argv)
    const environment: CommandEnvironment = {
      ...{ run, print, columns: () => options.stdout.columns },
      program: () => createProgram(undefined, environment, { loadsAll: true }),
    }
    const lineOptions = { env: options.env, environment, freshModels }
    const line = await programFor(argv, lineOptions)
    if (argv.length === 0) line.program.outputHelp()
    else
      await parse(line, argv, warn, async () => {
        // The service may have a list with the model of the line, and its flags.
        const models = await opened?.models()
        return (await models?.ask())?.kind === 'list' ? programFor(argv, lineOptions) : undefined
      })
    return exitCode
  } catch (thrown) {
    if (thrown instanceof CommanderError && thrown.exitCode === 0) return EXIT.ok
    out ??= outputFor(options, globalsOf({ json: wantsJson(argv) }))
    return report(thrown, out)
  } finally {
    await opened?.close()
  }
}

async function programFor(
  argv: readonly string[],
  options: Omit<ModelProgramOptions, 'argv'>,
): Promise<ModelProgram> {
  const word = commandWord(argv)
  if (word !== 'run') return { program: await createProgram(word, options.environment) }
  const { createModelProgram } = await import('./models/model-program.js')
  return createModelProgram({ argv, ...options })
}

/** Node replaces bytes that are not UTF-8: another text would be sent, or another file would be written. */
function refuseOtherEncodings(argv: readonly string[]): void {
  const word = argv.find((each) => each.includes('\ufffd'))
  if (word !== undefined)
    throw usageError(
      `The argument "${shortened(printable(word), 60)}" is not valid UTF-8.`,
      'Check the encoding of the terminal or of the script. A prompt can be read from a file with --prompt-file.',
    )
}

/**
 * Parses the line and runs its command. Throws `usage` for a line that does not parse. `again`: called for an unknown flag;
 * may return a program that has it.
 */
async function parse(
  { program, model }: ModelProgram,
  argv: readonly string[],
  warn: (text: string) => void,
  again?: () => Promise<ModelProgram | undefined>,
): Promise<void> {
  // Checks the command before parsing, because commander would print the program's help for `whoami --help`.
  const command = findCommand(program, plainWords(argv))
  warnOfDashes(command, argv, warn)
  try {
    await program.parseAsync(withHelpLater(program, argv), { from: 'user' })
  } catch (thrown) {
    if (!(thrown instanceof CommanderError) || thrown.exitCode === 0) throw thrown
    const other = thrown.code === 'commander.unknownOption' ? await again?.() : undefined
    if (other === undefined) throw usageOf(thrown, command, model)
    await parse(other, argv, () => {})
  }
}

/** Warns of words such as `–n`, which editors and chat programs make of `-n`. They are text. */
function warnOfDashes(command: Command, argv: readonly string[], warn: (text: string) => void): void {
  const end = argv.indexOf('--')
  for (const word of end === -1 ? argv : argv.slice(0, end)) {
    const [, name] = /^[–—−]+([\w-]+)(?:=.*)?$/s.exec(word) ?? []
    const flag = command.options.find(({ long, short }) =>
      [long, short].some((each) => dashless(each) === name),
    )
    if (name !== undefined && flag !== undefined)
      warn(
        `"${word}" begins with another dash than "-", so it is text. The flag is ${name.length === 1 ? flag.short : flag.long}.`,
      )
  }
}

const dashless = (flag: string | undefined): string | undefined => flag?.replace(/^-+/, '')

/**
 * Moves `--help` behind the command, so that `rushes --help run image` prints the help of `run image`. commander would
 * print the help of the words before the flag. At the end of the line it could become a prompt, or the value of a flag.
 */
function withHelpLater(program: Command, argv: readonly string[]): string[] {
  const at = argv.findIndex((word) => ['-h', '--help', '--'].includes(word))
  const before = argv.slice(0, Math.max(at, 0))
  const isEarly = at !== -1 && argv[at] !== '--' && isCommandPath(program, before)
  if (!isEarly) return [...argv]
  const words = argv.toSpliced(at, 1)
  let command: Command | undefined = program
  let end = 0
  for (const word of plainWords(words)) {
    command = command.commands.find((each) => each.name() === word)
    if (command === undefined) break
    end = words.indexOf(word, end) + 1
  }
  return words.toSpliced(end, 0, '--help')
}

/** Whether all words are commands and a subcommand must follow. Otherwise `--help` may be the value of a flag. */
const isCommandPath = (program: Command, words: readonly string[]): boolean =>
  plainWords(words).length === words.length && findCommand(program, words).commands.length > 0

function outputFor({ stdout, stderr, env }: MainOptions, { json, quiet, debug, color }: Globals): Output {
  const style = { out: createStyle(stdout, env, { color }), err: createStyle(stderr, env, { color }) }
  const isJobLog = env.GITHUB_ACTIONS === 'true'
  const isNpx = env.npm_command === 'exec' && env.npm_lifecycle_event === 'npx'
  const program = isNpx ? 'npx rushes' : 'rushes'
  return createOutput({ stdout, stderr, mode: { json, quiet, debug }, style, isJobLog, program })
}

async function withContext(
  options: ContextOptions,
  work: (ctx: Context) => Promise<number>,
  opened: Context | undefined,
): Promise<number> {
  // Loaded here because help, version and usage errors need no context.
  const { createContext } = await import('./context/context.js')
  const ctx = opened ?? createContext(options)
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
