/**
 * Writes to both streams. Standard output carries the answer only; standard error carries notes, warnings and errors, as
 * JSON lines under `--json`.
 */
import type { RushesError } from '../../errors.js'
import { onOneLine, printable, printableJson } from '../../protocol/text.js'
import type { OutputStream } from '../process/io.js'
import type { Style } from './style.js'

export interface OutputMode {
  readonly json: boolean
  readonly quiet: boolean
  readonly debug: boolean
}

export interface Output {
  readonly mode: OutputMode
  readonly stdoutIsTerminal: boolean
  /** Width of standard output when it is a terminal. */
  readonly columns: number | undefined
  readonly style: { readonly out: Style; readonly err: Style }
  /** One line of the answer. Text from a server must have gone through `printable`. */
  line(text: string): void
  json(value: unknown, indent?: number): void
  /** A line on standard error. Not under `--quiet` or `--json`. */
  note(text: string): void
  /** Printed even under `--quiet`. */
  warn(text: string): void
  debug(text: string): void
  error(error: RushesError): void
  /** Registers a function that clears the drawing on the terminal before a line is written. */
  setAside(hide: () => void): void
}

export interface OutputOptions {
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  readonly mode: OutputMode
  readonly style: Output['style']
  /** The output is the log of a job of GitHub Actions. */
  readonly isJobLog?: boolean
}

export function createOutput(options: OutputOptions): Output {
  const { stdout, stderr, mode, style, isJobLog = false } = options
  const safe = (text: string) => (isJobLog ? withoutCommands(text) : text)
  const safeJson = (value: unknown, indent?: number) =>
    isJobLog ? jsonWithoutCommands(printableJson(value, indent)) : printableJson(value, indent)
  let clearDrawing = () => {}
  const write = (text: string) => {
    clearDrawing()
    stderr.write(`${safe(text)}\n`)
  }
  const writeJson = (value: unknown) => write(safeJson(value))
  return {
    mode,
    style,
    stdoutIsTerminal: stdout.isTTY === true,
    columns: stdout.columns,
    line(text) {
      clearDrawing()
      stdout.write(`${safe(text)}\n`)
    },
    json(value, indent) {
      clearDrawing()
      stdout.write(`${safeJson(value, indent)}\n`)
    },
    note(text) {
      if (!mode.quiet && !mode.json) write(printable(text))
    },
    warn(text) {
      if (mode.json) writeJson({ warning: { message: text } })
      else write(`${style.err.yellow('warning:')} ${printable(text)}`)
    },
    debug(text) {
      if (!mode.debug) return
      if (mode.json) writeJson({ debug: text })
      else for (const line of text.split('\n')) write(style.err.dim(`debug: ${printable(line)}`))
    },
    error(error) {
      if (mode.json) writeJson(errorJson(error))
      else for (const line of errorLines(error, style.err)) write(line)
    },
    setAside(hide) {
      clearDrawing = hide
    },
  }
}

/** What happened, then what to do. The run id is added unless the message contains it. */
function errorLines(error: RushesError, style: Style): readonly string[] {
  const { runId } = error
  const id = runId === undefined ? undefined : printable(runId)
  const message = printable(error.message)
  const subject = id === undefined || message.includes(id) ? '' : `${id}: `
  const hint = error.hint?.split('\n').map((line) => `  ${printable(line.trim())}`) ?? []
  return [`${style.red('error:')} ${subject}${message}`, ...hint]
}

export const errorJson = (error: RushesError) => ({
  error: {
    code: error.code,
    message: error.message,
    hint: error.hint === undefined ? null : onOneLine(error.hint),
    http_status: error.httpStatus ?? null,
    exit_code: error.exitCode,
    run_id: error.runId ?? null,
  },
})

/**
 * The runner of GitHub Actions takes lines of a job's output for commands (`::stop-commands::x`, `##[error]x`), also those with
 * names, paths and messages. Breaks `::name` at the beginning of a line, and `##[name]` anywhere.
 */
const withoutCommands = (lines: string): string =>
  lines.replace(/^([\s\u0085]*):(?=:)/gm, '$1: ').replaceAll('##[', '## [')

/** The same value: `##[` can be in texts of the JSON only. */
const jsonWithoutCommands = (json: string): string => json.replaceAll('##[', '\\u0023#[')
