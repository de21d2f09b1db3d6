/**
 * The whole program as one function: takes an argument list, an environment and streams, and returns an exit code. It
 * does not use `process`, so that tests can run whole command lines in the test process.
 */
import { type Command, CommanderError } from 'commander'
import { EXIT, RushesError, usageError } from '../errors.js'
import { asRushesError, Interruption, type Interrupts } from '../host/interrupts.js'
import { describeReason } from '../host/system-error.js'
import { shortened } from '../protocol/text.js'
import type { CommandEnvironment, ReplaceableParts } from './context/context.js'
import { usageOf } from './help/usage-errors.js'
import type { Io } from './process/io.js'
import { createProgram, findCommand, globalsOfCommand } from './program.js'
import { commandWord, type Globals, globalsOf, wantsJson } from './settings/globals.js'
import { createOutput, createStyle, type Output } from './terminal/output.js'

interface MainOptions extends Io {
  readonly interrupts: Interrupts
  readonly parts?: ReplaceableParts
}

export async function main(options: MainOptions): Promise<number> {
  const { argv, stdout } = options
  let exitCode: number = EXIT.ok
  let opened: Output | undefined
  /** The output of the command, or of a line that names none. */
  const out = (globals = globalsOfLine(argv)) => {
    opened ??= outputFor(options, globals)
    return opened
  }
  const environment: CommandEnvironment = {
    print: (text) => void stdout.write(text),
    columns: () => stdout.columns,
    program: () => createProgram(undefined, environment, { loadsAll: true }),
    act(command, work, needs = {}) {
      command.action(async (...args: unknown[]) => {
        const globals = globalsOfCommand(command)
        const output = out(globals)
        // Loaded here because help, version and usage errors need no context.
        const { openApp, openSession } = await import('./context/session.js')
        const app = openApp({ ...options, out: output })
        try {
          const flags = command.opts()
          // The help is printed even if the profile is missing.
          const createsProfile = needs.createsProfile === true || flags.help === true
          const ctx = openSession(app, { ...needs, createsProfile, globals })
          // Reports a missing profile, also for a command that needs no setting.
          if (globals.profile !== undefined) ctx.profile()
          exitCode = await work(ctx, flags as never, ...(args.slice(0, -2) as never))
        } finally {
          await app.close()
        }
      })
    },
  }
  try {
    refuseOtherEncodings(argv)
    const program = await createProgram(commandWord(argv), environment)
    if (argv.length === 0) program.outputHelp()
    else await parse(program, argv, (text) => out().warn(text))
    return exitCode
  } catch (thrown) {
    if (thrown instanceof CommanderError && thrown.exitCode === 0) return EXIT.ok
    return report(thrown, out())
  }
}

/** Node replaces bytes that are not UTF-8: another text would be sent, or another file would be written. */
function refuseOtherEncodings(argv: readonly string[]): void {
  const word = argv.find((each) => each.includes('\ufffd'))
  if (word !== undefined)
    throw usageError(
      `The argument "${shortened(word, 60)}" is not valid UTF-8.`,
      'Check the encoding of the terminal or of the script. A prompt can be read from a file with --prompt-file.',
    )
}

/** Parses the line and runs its command. Throws `usage` for a line that does not parse. */
async function parse(program: Command, argv: readonly string[], warn: (text: string) => void): Promise<void> {
  const line = withHelpLater(program, argv)
  // Checks the command before parsing, because commander would print the program's help for `whoami --help`.
  const { command } = findCommand(program, line)
  warnOfDashes(command, line, warn)
  try {
    await program.parseAsync(line, { from: 'user' })
  } catch (thrown) {
    if (!(thrown instanceof CommanderError) || thrown.exitCode === 0) throw thrown
    throw usageOf(thrown, command)
  }
}

/** Warns of words such as `–n`, which editors and chat programs make of `-n`. They are text. */
function warnOfDashes(command: Command, argv: readonly string[], warn: (text: string) => void): void {
  const end = argv.indexOf('--')
  for (const word of end === -1 ? argv : argv.slice(0, end)) {
    const [, name] = /^[–—−]+([\w-]+)(?:=.*)?$/s.exec(word) ?? []
    if (name === undefined) continue
    const options = command.createHelp().visibleOptions(command)
    const flag = options.find(({ long, short }) => [long, short].some((each) => dashless(each) === name))
    if (flag !== undefined)
      warn(
        `"${word}" begins with another dash than "-", so it is text. The flag is ${name.length === 1 ? flag.short : flag.long}.`,
      )
  }
}

const dashless = (flag: string | undefined): string | undefined => flag?.replace(/^-+/, '')

/**
 * Moves `--help` behind the command, so that `rushes --help run image` and `rushes help run image` print the help of `run
 * image`. commander would print the help of the words before the flag. Elsewhere it could be a prompt, or the value of a
 * flag.
 */
function withHelpLater(program: Command, argv: readonly string[]): string[] {
  const [first, second = 'agents'] = argv
  const isHelp = first === 'help' && second !== 'agents' && !second.startsWith('-')
  const at = isHelp ? 0 : argv.findIndex((word) => ['-h', '--help', '--'].includes(word))
  const words = argv.toSpliced(at, 1)
  const isEarly = at !== -1 && argv[at] !== '--' && at < findCommand(program, argv).end
  return isHelp || isEarly ? words.toSpliced(findCommand(program, words).end, 0, '--help') : [...argv]
}

/** Reports that standard output, and so the answer of the command, was not written whole. Returns the exit code. */
export function reportLostOutput(options: MainOptions, error: Error): number {
  const message = `Cannot write standard output: ${describeReason(error)}.`
  const hint = 'If the command has created runs, `rushes list` shows them.'
  return report(new RushesError('download_failed', message, { hint, cause: error }), outputOfLine(options))
}

/** Prints a warning of Node, such as that certificates are not checked. */
export const reportWarning = (options: MainOptions, message: string): void =>
  outputOfLine(options).warn(message)

const outputOfLine = (options: MainOptions): Output => outputFor(options, globalsOfLine(options.argv))

/** The global flags of a line that is not parsed. */
const globalsOfLine = (argv: readonly string[]): Globals => globalsOf({ json: wantsJson(argv) })

function outputFor(
  { stdout, stderr, env }: MainOptions,
  { json, quiet, debug, color, profile }: Globals,
): Output {
  const style = { out: createStyle(stdout, env, { color }), err: createStyle(stderr, env, { color }) }
  const isJobLog = env.GITHUB_ACTIONS === 'true'
  const isNpx = env.npm_command === 'exec' && env.npm_lifecycle_event === 'npx'
  const program = isNpx ? 'npx rushes' : 'rushes'
  return createOutput({ stdout, stderr, mode: { json, quiet, debug }, style, isJobLog, program, profile })
}

function report(thrown: unknown, out: Output): number {
  const error = asRushesError(thrown)
  const isSilent = thrown instanceof Interruption && thrown.isSilent
  if (!isSilent) out.error(error)
  if (thrown instanceof Error && !isSilent) out.debug(withCauses(thrown))
  return error.exitCode
}

const withCauses = (error: Error): string =>
  `${error.stack ?? error.message}${error.cause instanceof Error ? `\ncaused by: ${withCauses(error.cause)}` : ''}`
