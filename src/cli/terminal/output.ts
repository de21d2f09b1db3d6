/**
 * The two streams. Standard output carries the answer and nothing else; standard error carries the conversation.
 * Under `--json` standard error carries JSON lines and nothing else.
 */
import type { RushesError } from '../../errors.js'
import { printable, printableJson } from '../../protocol/text.js'
import type { OutputStream } from '../process/io.js'
import { errorJson, errorLines } from './error-lines.js'
import type { Style } from './style.js'

export interface OutputMode {
  readonly json: boolean
  readonly quiet: boolean
  readonly debug: boolean
}

export interface Output {
  readonly mode: OutputMode
  readonly stdoutIsTerminal: boolean
  /** Columns of standard output when it is a terminal. */
  readonly columns: number | undefined
  readonly style: { readonly out: Style; readonly err: Style }
  /** One line of the answer; what a server said must be printable by then. */
  line(text: string): void
  json(value: unknown, indent?: number): void
  /** A line of the conversation: what is going on. Not under `--quiet` or `--json`. */
  note(text: string): void
  /** Said even under `--quiet`. */
  warn(text: string): void
  debug(text: string): void
  error(error: RushesError): void
  /** Whoever draws on the terminal puts its drawing away while a line is written. */
  setAside(hide: () => void): void
}

export interface OutputOptions {
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  readonly mode: OutputMode
  readonly style: Output['style']
}

export function createOutput({ stdout, stderr, mode, style }: OutputOptions): Output {
  let hideDrawing = () => {}
  const say = (text: string) => {
    hideDrawing()
    stderr.write(`${text}\n`)
  }
  const sayJson = (value: unknown) => say(printableJson(value))
  return {
    mode,
    style,
    stdoutIsTerminal: stdout.isTTY === true,
    columns: stdout.columns,
    line(text) {
      hideDrawing()
      stdout.write(`${text}\n`)
    },
    json(value, indent) {
      hideDrawing()
      stdout.write(`${printableJson(value, indent)}\n`)
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
      hideDrawing = hide
    },
  }
}
