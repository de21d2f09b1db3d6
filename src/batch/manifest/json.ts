/** Parses strict JSON and JSON Lines into nodes. `JSON.parse` reports no positions. */
// Imported by path: the main file of the package is UMD, and a bundler cannot follow its `require` calls.
import { printParseErrorCode, visit } from 'jsonc-parser/lib/esm/main.js'
import { shortened } from '../../protocol/text.js'
import {
  type Field,
  MAX_DEPTH,
  type Node,
  numberScalar,
  type Position,
  type PositionAt,
  positionsIn,
  type ReportProblem,
  scalar,
} from './nodes.js'

/** Parses JSON. If it is invalid, reports the error and returns undefined. Also reports duplicate fields. */
export function parseJsonText(text: string, report: ReportProblem, maxDepth = MAX_DEPTH): Node | undefined {
  return readJson(text, positionsIn(text), report, maxDepth)
}

/** Parses JSON inside another format. All values and problems get the position where the JSON starts. */
export const parseJsonAt = (at: Position, text: string, report: ReportProblem): Node | undefined =>
  readJson(text, () => at, report, MAX_DEPTH)

/** Parses JSON Lines into a list with one value per line. */
export function parseJsonLines(text: string, report: ReportProblem): Node {
  const positionAt = positionsIn(text)
  const items: Node[] = []
  let start = 0
  for (const line of text.split('\n')) {
    const lineStart = start
    start += line.length + 1
    if (line.trim() === '') continue
    const item = readJson(line, (offset) => positionAt(lineStart + offset), report, MAX_DEPTH)
    if (item !== undefined) items.push(item)
  }
  return { type: 'list', items, at: positionAt(0) }
}

/** Thrown to stop the parser at the first error: later errors would be guesses. */
class InvalidJson extends Error {
  readonly offset: number

  constructor(offset: number, message: string) {
    super(message)
    this.offset = offset
  }
}

type OpenValue =
  | { readonly type: 'list'; readonly items: Node[] }
  | {
      readonly type: 'fields'
      readonly fields: Map<string, Field>
      field: { readonly name: string; readonly offset: number }
    }

function readJson(
  text: string,
  positionAt: PositionAt,
  report: ReportProblem,
  maxDepth: number,
): Node | undefined {
  const open: OpenValue[] = []
  let root: Node | undefined

  function add(node: Node, offset: number): void {
    if (open.length > maxDepth) throw new InvalidJson(offset, `nested more than ${maxDepth} levels deep`)
    const parent = open.at(-1)
    if (parent === undefined) root = node
    else if (parent.type === 'list') parent.items.push(node)
    else {
      const { name, offset: nameOffset } = parent.field
      if (parent.fields.has(name)) report(positionAt(nameOffset), `the field "${name}" occurs twice`)
      else parent.fields.set(name, { at: positionAt(nameOffset), value: node })
    }
  }

  /** Says what the code of the parser says, such as `CommaExpected`. */
  function messageOf(code: string, offset: number, length: number): string {
    const words = code.replace(/(?!^)[A-Z]/g, (letter) => ` ${letter}`).toLowerCase()
    const found = offset < text.length ? `"${shortened(text.slice(offset, offset + length), 40)}"` : 'the end'
    return `invalid JSON: ${words}, found ${found}`
  }

  try {
    visit(
      text,
      {
        onObjectBegin(offset) {
          const fields = new Map<string, Field>()
          add({ type: 'fields', fields, at: positionAt(offset) }, offset)
          open.push({ type: 'fields', fields, field: { name: '', offset } })
        },
        onObjectProperty(name, nameOffset) {
          const parent = open.at(-1)
          if (parent?.type === 'fields') parent.field = { name, offset: nameOffset }
        },
        onArrayBegin(offset) {
          const items: Node[] = []
          add({ type: 'list', items, at: positionAt(offset) }, offset)
          open.push({ type: 'list', items })
        },
        onObjectEnd: () => void open.pop(),
        onArrayEnd: () => void open.pop(),
        onLiteralValue(value: string | number | boolean | null, offset, length) {
          // The parser reads `01` as two numbers.
          if (typeof value === 'number' && /[\w.+-]/.test(text.charAt(offset + length)))
            throw new InvalidJson(offset, messageOf('ValueExpected', offset, length))
          const written = typeof value === 'string' ? value : text.slice(offset, offset + length)
          const at = positionAt(offset)
          add(
            typeof value === 'number' ? numberScalar(value, at, written) : scalar(value, at, written),
            offset,
          )
        },
        onError(code, offset, length) {
          throw new InvalidJson(offset, messageOf(printParseErrorCode(code), offset, length))
        },
      },
      { disallowComments: true, allowTrailingComma: false },
    )
    return root
  } catch (error) {
    if (!(error instanceof InvalidJson)) throw error
    report(positionAt(error.offset), error.message)
    return undefined
  }
}
