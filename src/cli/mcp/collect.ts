/** Output that is kept as values: what a command would print becomes the answer of a tool. */
import type { RushesError } from '../../errors.js'
import type { Output } from '../terminal/output.js'

export interface Collected {
  /** What a command prints under `--json`. */
  readonly objects: readonly unknown[]
  readonly errors: readonly RushesError[]
  readonly warnings: readonly string[]
}

/** `base` is the output of the server, whose standard error is its log. */
export function createCollector(base: Output): { readonly out: Output; readonly collected: Collected } {
  const objects: unknown[] = []
  const errors: RushesError[] = []
  const warnings: string[] = []
  return {
    collected: { objects, errors, warnings },
    out: {
      mode: { json: true, quiet: true, debug: base.mode.debug },
      stdoutIsTerminal: false,
      columns: undefined,
      style: base.style,
      line: (text) => void objects.push(text),
      json: (value) => void objects.push(value),
      note: base.debug,
      warn: (text) => void warnings.push(text),
      debug: base.debug,
      error: (error) => void errors.push(error),
      setAside() {},
    },
  }
}
