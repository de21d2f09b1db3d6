/** Reads YAML 1.2, and JSON, into plain values and their lines. Integers of 64 bits keep their digits. */
import {
  Composer,
  type Document,
  isMap,
  isNode,
  isScalar,
  LineCounter,
  type ParsedNode,
  Parser,
  visit,
  type YAMLError,
} from 'yaml'
import { messageOf } from '../errors.js'
import { integerOf } from '../protocol/json.js'
import { shortened } from '../protocol/text.js'

/** Thrown for a text that cannot be read. */
export class InvalidText extends Error {
  /** Counted from 1. */
  readonly line: number

  constructor(line: number, message: string) {
    super(message)
    this.line = line
  }
}

export interface YamlDocument {
  /** Null for an empty document. */
  readonly value: unknown
  /** The line of its beginning. */
  readonly line: number
  /** The line of a value, or of the innermost value around it that has one. */
  lineOf(path: readonly (string | number)[]): number
}

/** More uses of aliases would fill the memory. */
const MAX_ALIASES = 100_000

type Parsed = Document.Parsed<ParsedNode>

/** Returns the documents of a text. Throws `InvalidText`. */
export function readYaml(text: string): readonly YamlDocument[] {
  const counter = new LineCounter()
  const lineAt = (offset = 0) => counter.linePos(offset).line
  // Tabs can begin a line in JSON, and not in YAML.
  const isJson = /^\s*[[{]/.test(text)
  const tokens = [...new Parser(counter.addNewLine).parse(isJson ? text.replaceAll('\t', ' ') : text)]
  // The library's own check for keys that occur twice takes quadratic time.
  const documents = [...new Composer({ uniqueKeys: false, merge: true }).compose(tokens)] as readonly Parsed[]
  const [error] = documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])
  if (error !== undefined) throw new InvalidText(lineAt(error.pos[0]), problemOf(error))
  return documents.map((document) => {
    prepare(document, lineAt)
    const line = lineAt(document.range[0])
    return { value: plainValue(document, line), line, lineOf: (path) => lineAt(offsetOf(document, path)) }
  })
}

function problemOf({ code, message }: YAMLError): string {
  if (code === 'BLOCK_AS_IMPLICIT_KEY')
    return 'put the text in quotes: without them, a ": " in it starts a map'
  // The composer is recursive.
  if (message.includes('call stack')) return 'the text is nested too deeply'
  return message.charAt(0).toLowerCase() + message.slice(1)
}

/** Keeps the digits of integers of 64 bits. Throws for a key that occurs twice, and for a value that contains itself. */
function prepare(document: Parsed, lineAt: (offset?: number) => number): void {
  const anchors = new Map<string, unknown>()
  visit(document, {
    Alias(_, node, path) {
      if (path.some((each) => each === anchors.get(node.source)))
        throw new InvalidText(lineAt(node.range?.[0]), `*${node.source} is inside the value that it repeats`)
    },
    Scalar(_, node) {
      if (typeof node.value === 'number' && !Number.isSafeInteger(node.value))
        node.value = integerOf(node.source ?? '') ?? node.value
    },
    Collection(_, node) {
      if (node.anchor) anchors.set(node.anchor, node)
      if (!isMap(node)) return
      const names = new Set<string>()
      for (const { key } of node.items) {
        const line = lineAt(isNode(key) ? key.range?.[0] : undefined)
        if (!isScalar(key) || key.value === null) throw new InvalidText(line, 'a key must be text')
        const name = String(key.value)
        if (names.has(name) && name !== 'Symbol(<<)')
          throw new InvalidText(line, `the key "${shortened(name, 80)}" occurs twice`)
        names.add(name)
      }
    },
  })
}

function plainValue(document: Parsed, line: number): unknown {
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES })
  } catch (error) {
    // An alias without an anchor, or too many aliases.
    throw new InvalidText(line, messageOf(error))
  }
}

/** Of a value, or of the innermost value around it that has a place: an alias and a merged key have none. */
function offsetOf(document: Parsed, path: readonly (string | number)[]): number | undefined {
  for (let length = path.length; length > 0; length--) {
    const node = document.getIn(path.slice(0, length), true)
    if (isNode(node) && node.range) return node.range[0]
  }
  return document.contents?.range[0]
}
