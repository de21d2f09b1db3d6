/** Positions in the text of a manifest, and the problems found there. */
import { LineCounter } from 'yaml'

export interface Position {
  /** From 1. */
  readonly line: number
  /** From 1, in UTF-16 units, as most editors count. */
  readonly column: number
}

export interface ManifestProblem extends Position {
  readonly message: string
}

/** Records a problem; reading continues, so that all problems are reported together. */
export type ReportProblem = (at: Position, message: string) => void

export const START: Position = { line: 1, column: 1 }

export type PositionAt = (offset: number) => Position

/** Lines end with `\n`, whatever parser reads the text. */
export function positionsIn(text: string): PositionAt {
  const lines = new LineCounter()
  lines.addNewLine(0)
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines.addNewLine(at + 1)
  return (offset) => {
    const { line, col: column } = lines.linePos(offset)
    return { line, column }
  }
}

export interface ProblemCollector {
  readonly report: ReportProblem
  /** Ordered by position; the same message at the same position counts once. */
  list(): readonly ManifestProblem[]
}

export function createProblemCollector(): ProblemCollector {
  const found = new Map<string, ManifestProblem>()
  return {
    report({ line, column }, message) {
      found.set(`${line}:${column}:${message}`, { line, column, message })
    },
    list: () => [...found.values()].sort((a, b) => a.line - b.line || a.column - b.column),
  }
}
