/**
 * Writes to both standard streams. Standard output contains only the results; standard error contains notes, warnings
 * and errors, as JSON lines with `--json`. Only this file uses chalk.
 */
import { Chalk } from 'chalk'
import type { RushesError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import type { Interrupts } from '../../host/interrupts.js'
import { quoteWord } from '../../host/shell.js'
import { onOneLine, printable, printableJson } from '../../protocol/text.js'
import { type Env, type Io, type OutputStream, variable } from '../process/io.js'
import { wrapWords } from './format.js'

export type Style = InstanceType<typeof Chalk>

/**
 * Creates the style of a stream: one may be a terminal and the other a pipe. `NO_COLOR` overrides `FORCE_COLOR`. Without
 * both, terminals get colour.
 */
export const createStyle = (stream: OutputStream, env: Env, { color }: { color: boolean }): Style =>
  new Chalk({ level: levelOf(stream, env, color) })

function levelOf(stream: OutputStream, env: Env, color: boolean): 0 | 1 {
  if (!color || variable(env, 'NO_COLOR') !== undefined) return 0
  const force = variable(env, 'FORCE_COLOR')
  if (force !== undefined) return force === '0' || force === 'false' ? 0 : 1
  return stream.isTTY === true && env.TERM !== 'dumb' ? 1 : 0
}

interface OutputMode {
  readonly json: boolean
  readonly quiet: boolean
  readonly debug: boolean
}

export interface Output {
  readonly mode: OutputMode
  readonly stdoutIsTerminal: boolean
  /** Width of standard output; undefined when it is not a terminal. */
  readonly columns: number | undefined
  readonly style: { readonly out: Style; readonly err: Style }
  /** Returns the text with its commands as this user types them: with npx, and with the profile of the line. */
  named(text: string): string
  /** Writes one line of the results. Pass text from a server through `printable` first. */
  line(text: string): void
  json(value: unknown, indent?: number): void
  /** Writes the answer of a command: JSON with `--json`, else the line, if there is one. */
  answer(json: object, line?: string): void
  /** Writes the escape codes of a picture to standard error. They end with a line end. */
  picture(codes: string): void
  /** Writes a line to standard error, except with `--quiet` or `--json`. */
  note(text: string): void
  /** Writes a warning to standard error, also with `--quiet`. */
  warn(text: string): void
  debug(text: string): void
  error(error: RushesError): void
  /** Registers a function that clears the spinner before a line is written. */
  setAside(hide: () => void): void
}

/** The streams of a command with what writes to them, its clock and its signals. */
export interface Terminal extends Io {
  readonly out: Output
  readonly clock: Clock
  readonly interrupts: Interrupts
}

interface OutputOptions {
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  readonly mode: OutputMode
  readonly style: Output['style']
  /** Whether the output is the log of a GitHub Actions job. */
  readonly isJobLog?: boolean
  /** How the user runs the program: `npx rushes`, for example. Messages name commands so. */
  readonly program?: string
  /** Profile of the line, which commands that change settings need too. */
  readonly profile?: string | undefined
}

const MESSAGE_INDENT = '  '

export function createOutput(options: OutputOptions): Output {
  const { stdout, stderr, mode, style, isJobLog = false, program = 'rushes', profile } = options
  const named = (text: string) =>
    (profile === undefined
      ? text
      : text.replaceAll(/`rushes (login|config set)(?![^`]*--profile)/g, `$& --profile ${quoteWord(profile)}`)
    ).replaceAll('`rushes ', `\`${program} `)
  const escapeCommands = (text: string) => (isJobLog ? withoutCommands(text) : text)
  const escapedJson = (value: unknown, indent?: number) =>
    isJobLog ? jsonWithoutCommands(printableJson(value, indent)) : printableJson(value, indent)
  let clearDrawing = () => {}
  const write = (text: string) => {
    clearDrawing()
    stderr.write(`${escapeCommands(text)}\n`)
  }
  /** Writes a message. On a terminal, words are not broken; further lines are indented, and aligned columns stay. */
  const say = (message: string, indent = '') => {
    const text = named(message)
    const { isTTY, columns = 0 } = stderr
    const isWrapped = isTTY === true && columns > 2 * MESSAGE_INDENT.length && !text.includes('  ')
    const lines = isWrapped ? wrapWords(text, columns - MESSAGE_INDENT.length) : [text]
    for (const [at, line] of lines.entries()) write(`${at === 0 ? indent : MESSAGE_INDENT}${line}`)
  }
  const writeJson = (value: unknown) => write(escapedJson(value))
  const print = (text: string) => {
    clearDrawing()
    stdout.write(`${text}\n`)
  }
  return {
    mode,
    style,
    named,
    stdoutIsTerminal: stdout.isTTY === true,
    columns: stdout.columns,
    line: (text) => print(escapeCommands(text)),
    json: (value, indent) => print(escapedJson(value, indent)),
    answer(json, line) {
      if (mode.json) print(escapedJson(json))
      else if (line !== undefined) print(escapeCommands(printable(line)))
    },
    picture(codes) {
      clearDrawing()
      stderr.write(codes)
    },
    note(text) {
      if (!mode.quiet && !mode.json) say(printable(text))
    },
    warn(text) {
      if (mode.json) writeJson({ warning: { message: text } })
      else say(`${style.err.yellow('warning:')} ${printable(text)}`)
    },
    debug(text) {
      if (!mode.debug) return
      if (mode.json) writeJson({ debug: text })
      else for (const line of text.split('\n')) write(style.err.dim(`debug: ${printable(line)}`))
    },
    error(given) {
      const error = withNextStep(given)
      if (mode.json) writeJson({ error: errorJson(error) })
      else {
        const { subject, hint } = errorTexts(error)
        say(`${style.err.red('error:')} ${subject}`)
        for (const line of hint) say(line, MESSAGE_INDENT)
      }
    },
    setAside(hide) {
      clearDrawing = hide
    },
  }
}

/** What the user can type next, by the code of the service. */
const NEXT_STEPS: Readonly<Record<string, string>> = {
  invalid_input: 'See the parameters with `rushes models`, and the request body with --dry-run.',
  model_not_found:
    'List the models with `rushes models --refresh`, and name one with --model <provider/name>.',
  missing_api_key: 'Store the key again with `rushes login`.',
  invalid_api_key:
    'A key in RUSHES_API_KEY or another variable comes before the stored one: `rushes doctor` names those that are set. ' +
    'To store another key: `rushes login`.',
}

function withNextStep(error: RushesError): RushesError {
  const step = Object.hasOwn(NEXT_STEPS, error.code) ? NEXT_STEPS[error.code] : undefined
  return step === undefined ? error : error.with({ hint: [error.hint, step].filter(Boolean).join('\n') })
}

/** Formats an error: what happened, then what to do. Adds the run id unless the message contains it. */
function errorTexts(error: RushesError): { readonly subject: string; readonly hint: readonly string[] } {
  const { runId } = error
  const id = runId === undefined ? undefined : printable(runId)
  const message = printable(error.message)
  const subject = id === undefined || message.includes(id) ? '' : `${id}: `
  const hint = error.hint?.split('\n').map((line) => printable(line.trim())) ?? []
  return { subject: `${subject}${message}`, hint }
}

export interface ErrorJson {
  readonly code: string
  readonly message: string
  readonly hint: string | null
  readonly http_status: number | null
  readonly exit_code: number
  readonly run_id: string | null
}

export const errorJson = (error: RushesError): ErrorJson => ({
  code: error.code,
  message: error.message,
  hint: error.hint === undefined ? null : onOneLine(error.hint),
  http_status: error.httpStatus ?? null,
  exit_code: error.exitCode,
  run_id: error.runId ?? null,
})

/**
 * Breaks workflow commands: `::name` at the start of a line, and `##[name]` anywhere. The GitHub Actions runner treats
 * such output (`::stop-commands::x`, `##[error]x`) as commands, even inside names, paths and messages.
 */
const withoutCommands = (lines: string): string =>
  lines.replace(/^([\s\u0085]*):(?=:)/gm, '$1: ').replaceAll('##[', '## [')

/** Breaks workflow commands in JSON without changing its value: `##[` can occur only inside JSON strings. */
const jsonWithoutCommands = (json: string): string => json.replaceAll('##[', '\\u0023#[')
