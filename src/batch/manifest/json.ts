/** Strict JSON to positioned values, and JSON Lines. `JSON.parse` says nothing of where a value stands. */
import { positionsIn, type Report } from './position.js'
import { type Field, MAX_DEPTH, type Node, scalar } from './tree.js'

/** Undefined when the text is no JSON, which was reported then. */
export function parseJson(text: string, report: Report): Node | undefined {
  return readJson({ text, from: 0, to: text.length, positionAt: positionsIn(text), report })
}

/** A list with one value a line. */
export function parseJsonLines(text: string, report: Report): Node {
  const positionAt = positionsIn(text)
  const items: Node[] = []
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf('\n', from)
    const to = end === -1 ? text.length : end
    const item =
      text.slice(from, to).trim() === '' ? undefined : readJson({ text, from, to, positionAt, report })
    if (item !== undefined) items.push(item)
    from = to + 1
  }
  return { type: 'list', items, at: positionAt(0) }
}

interface Source {
  readonly text: string
  readonly from: number
  readonly to: number
  readonly positionAt: ReturnType<typeof positionsIn>
  readonly report: Report
}

class NotJson extends Error {
  readonly offset: number

  constructor(offset: number, message: string) {
    super(message)
    this.offset = offset
  }
}

function readJson({ text, from, to, positionAt, report }: Source): Node | undefined {
  let offset = from

  const skipSpace = (): void => {
    while (offset < to && ' \t\r\n'.includes(text.charAt(offset))) offset += 1
  }
  const isNext = (character: string): boolean => offset < to && text.charAt(offset) === character
  const unexpected = (wanted: string): NotJson => {
    const found = offset < to ? `"${String.fromCodePoint(text.codePointAt(offset) ?? 0)}"` : 'the end'
    return new NotJson(offset, `is no JSON: ${wanted} should stand here, not ${found}`)
  }
  const take = (character: string): void => {
    skipSpace()
    if (!isNext(character)) throw unexpected(`"${character}"`)
    offset += 1
  }

  function readText(): string {
    const start = offset
    for (offset += 1; offset < to && text.charAt(offset) !== '"'; offset += 1)
      if (text.charAt(offset) === '\\') offset += 1
    if (offset >= to) throw new NotJson(start, 'is no JSON: this text has no end')
    offset += 1
    try {
      return JSON.parse(text.slice(start, offset)) as string
    } catch {
      throw new NotJson(
        start,
        'is no JSON: this text holds a line end, a tab or an escape that JSON does not have',
      )
    }
  }

  /** Comma-separated things up to `end`; the opening bracket comes first. */
  function readAll(end: string, readOne: () => void): void {
    offset += 1
    skipSpace()
    if (!isNext(end)) {
      readOne()
      for (skipSpace(); isNext(','); skipSpace()) {
        offset += 1
        readOne()
      }
      if (!isNext(end)) throw unexpected(`"," or "${end}"`)
    }
    offset += 1
  }

  function readValue(depth: number): Node {
    skipSpace()
    const at = positionAt(offset)
    if (depth > MAX_DEPTH) throw new NotJson(offset, `is nested more than ${MAX_DEPTH} levels deep`)
    if (isNext('"')) return scalar(readText(), at)
    if (isNext('[')) {
      const items: Node[] = []
      readAll(']', () => items.push(readValue(depth + 1)))
      return { type: 'list', items, at }
    }
    if (isNext('{')) {
      const fields = new Map<string, Field>()
      readAll('}', () => readField(fields, depth))
      return { type: 'fields', fields, at }
    }
    const word = /[\w.+-]*/y
    word.lastIndex = offset
    const literal = (word.exec(text)?.[0] ?? '').slice(0, to - offset)
    if (!/^(true|false|null|-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?)$/.test(literal))
      throw unexpected('a value')
    offset += literal.length
    return scalar(JSON.parse(literal) as number | boolean | null, at, literal)
  }

  function readField(fields: Map<string, Field>, depth: number): void {
    skipSpace()
    if (!isNext('"')) throw unexpected('a name in double quotes')
    const at = positionAt(offset)
    const name = readText()
    take(':')
    const value = readValue(depth + 1)
    if (fields.has(name)) report(at, `"${name}" stands here twice`)
    else fields.set(name, { at, value })
  }

  try {
    const value = readValue(0)
    skipSpace()
    if (offset < to) throw unexpected('nothing more')
    return value
  } catch (error) {
    if (!(error instanceof NotJson)) throw error
    report(positionAt(error.offset), error.message)
    return undefined
  }
}
