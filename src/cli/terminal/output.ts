/**
 * Writes to both streams. Standard output carries the answer only; standard error carries notes, warnings and errors, as
 * JSON lines under `--json`.
 */
import type { RushesError } from '../../errors.js'
import { printable, printableJson } from '../../protocol/text.js'
import type { OutputStream } from '../process/io.js'
import { errorJson, errorLines } from './error-lines.js'
import type { Style } from './style.js'
import { jsonWithoutCommands, withoutCommands } from './workflow-commands.js'

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
  const say = (text: string) => {
    clearDrawing()
    stderr.write(`${safe(text)}\n`)
  }
  const sayJson = (value: unknown) => say(safeJson(value))
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
      if (!mode.quiet && !mode.json) say(printable(text))
    },
    warn(text) {
      if (mode.json) sayJson({ warning: { message: text } })
      else say(`${style.err.yellow('warning:')} ${printable(text)}`)
    },
    debug(text) {
      if (!mode.debug) return
      if (mode.json) sayJson({ debug: text })
      else for (const line of text.split('\n')) say(style.err.dim(`debug: ${printable(line)}`))
    },
    error(error) {
      if (mode.json) sayJson(errorJson(error))
      else for (const line of errorLines(error, style.err)) say(line)
    },
    setAside(hide) {
      clearDrawing = hide
    },
  }
}
