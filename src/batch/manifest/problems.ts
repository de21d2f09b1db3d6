/** The problems of a manifest. Reading continues after each, so that all are reported together. */
import { nearest, shortened } from '../../protocol/text.js'

/** Names and indexes from the root to a value. */
export type Path = readonly (string | number)[]

export interface ManifestProblem {
  /** Counted from 1. */
  readonly line: number
  readonly message: string
}

/** Reports a problem of one run, or of a value below one of its fields. */
export type Report = (message: string, ...at: Path) => void

export class Problems {
  readonly #lineOf: (path: Path) => number
  readonly #found = new Map<string, ManifestProblem>()

  constructor(lineOf: (path: Path) => number) {
    this.#lineOf = lineOf
  }

  add(path: Path, message: string): void {
    const line = this.#lineOf(path)
    this.#found.set(`${line}:${message}`, { line, message })
  }

  /** Each problem once, in the order of their lines. */
  list(): readonly ManifestProblem[] {
    return [...this.#found.values()].sort((a, b) => a.line - b.line)
  }
}

export const unknownMessage = (what: string, name: string, known: readonly string[]): string => {
  const near = nearest(name, known)
  const hint = near === undefined ? `; expected one of: ${known.join(', ')}` : `. Did you mean "${near}"?`
  return `${what} "${shortened(name, 100)}"${hint}`
}
