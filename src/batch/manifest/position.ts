/** Where in a text something stands, and what is wrong there. */

export interface Position {
  /** From 1. */
  readonly line: number
  /** From 1, in UTF-16 units, as editors count. */
  readonly column: number
}

export interface Problem extends Position {
  readonly message: string
}

/** Takes a problem; whoever reads a manifest goes on after it, so that all of them are told at once. */
export type Report = (at: Position, message: string) => void

export const START: Position = { line: 1, column: 1 }

/** The position of an offset, found in a list of line starts that is made once. */
export function positionsIn(text: string): (offset: number) => Position {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return (offset) => {
    let [low, high] = [0, starts.length - 1]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if ((starts[middle] ?? 0) <= offset) low = middle
      else high = middle - 1
    }
    return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 }
  }
}

export interface Problems {
  readonly report: Report
  /** By position; the same words at the same place count once. */
  list(): readonly Problem[]
}

export function collectProblems(): Problems {
  const found = new Map<string, Problem>()
  return {
    report({ line, column }, message) {
      found.set(`${line}:${column}:${message}`, { line, column, message })
    },
    list: () => [...found.values()].sort((a, b) => a.line - b.line || a.column - b.column),
  }
}
