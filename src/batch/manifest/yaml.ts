/**
 * Parses YAML 1.2 into nodes: `16:9` and `yes` are texts. Anchors, aliases and merge keys (`<<`) work. An alias shares
 * its node and is not copied. Sizes count expanded aliases, so that an alias bomb is refused.
 */
import { isAlias, isMap, isScalar, isSeq, type ParsedNode, type Scalar, type YAMLMap } from 'yaml'
import { parseYamlDocuments } from '../../host/yaml.js'
import { shortened } from '../../protocol/text.js'
import {
  type Field,
  type ListNode,
  MAX_DEPTH,
  type MapNode,
  type Node,
  numberScalar,
  type Position,
  type PositionAt,
  positionsIn,
  type ReportProblem,
  START,
  scalar,
} from './nodes.js'

/** Maximum number of values in a manifest, with aliases expanded. */
const MAX_VALUES = 1_000_000

/** Parses YAML. If the text is invalid, reports the problems and returns undefined. `warn`: see `parseManifest`. */
export function parseYaml(text: string, report: ReportProblem, warn: ReportProblem): Node | undefined {
  const positionAt = positionsIn(text)
  const documents = parseYamlDocuments(text, MAX_DEPTH)
  if (documents === undefined) {
    report(positionAt(0), `the manifest is nested more than ${MAX_DEPTH} levels deep`)
    return undefined
  }
  const [document, ...others] = documents
  const yamlErrors = [...(document?.errors ?? []), ...(document?.warnings ?? [])]
  const quoted = new Set(yamlErrors.flatMap(({ code, pos }) => (code in NEEDS_QUOTES ? [pos[0]] : [])))
  for (const { code, pos, message } of yamlErrors) {
    const character = text.charAt(pos[0])
    const needed = NEEDS_QUOTES[code]?.(character)
    if (needed !== undefined) report(positionAt(pos[0]), needed)
    // Another error at the same place follows from the missing quotes.
    else if (!quoted.has(pos[0])) report(positionAt(pos[0]), lowerFirst(message))
  }
  for (const other of others)
    report(positionAt(other.range[0]), 'a second YAML document starts here; a manifest can have only one')
  if (yamlErrors.length > 0 || others.length > 0) return undefined
  if (document?.contents == null) {
    report(START, 'the manifest is empty')
    return undefined
  }
  return createReader(positionAt, report, warn)(document.contents as ParsedNode)
}

/** Errors of texts that need quotes, by the code of the library. */
const NEEDS_QUOTES: Readonly<Record<string, (character: string) => string>> = {
  BLOCK_AS_IMPLICIT_KEY: () => 'put the text in quotes: without them, a ": " in it starts a map',
  BAD_SCALAR_START: (character) =>
    `put the text in quotes: without them, it cannot start with "${character}"`,
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)

interface NodeSize {
  readonly values: number
  readonly depth: number
}

const ONE: NodeSize = { values: 1, depth: 0 }

function createReader(positionAt: PositionAt, report: ReportProblem, warn: ReportProblem) {
  /** Nodes by anchor. A node is added when it is complete, so that it cannot contain itself. */
  const anchors = new Map<string, Node>()
  const sizes = new WeakMap<Node, NodeSize>()
  let isTooLarge = false
  const at = (node: ParsedNode): Position => positionAt(node.range[0])

  function limitSize<Made extends ListNode | MapNode>(made: Made, children: readonly Node[]): Node {
    const inner = children.map((child) => sizes.get(child) ?? ONE)
    const size = {
      values: inner.reduce((sum, { values }) => sum + values, 1),
      depth: 1 + Math.max(0, ...inner.map(({ depth }) => depth)),
    }
    if (size.values > MAX_VALUES || size.depth > MAX_DEPTH) {
      // Report only the innermost node: the nodes around it are too large as well.
      if (!isTooLarge)
        report(
          made.at,
          size.depth > MAX_DEPTH
            ? 'the manifest is nested too deeply'
            : 'the manifest is too large after its aliases are expanded',
        )
      isTooLarge = true
      return scalar(null, made.at)
    }
    sizes.set(made, size)
    return made
  }

  function read(node: ParsedNode | null, fallbackPosition: Position): Node {
    if (node === null) return scalar(null, fallbackPosition)
    if (isAlias(node)) {
      const found = anchors.get(node.source)
      if (found === undefined) report(at(node), `*${node.source} has no anchor before it`)
      return found ?? scalar(null, at(node))
    }
    const made = readNew(node)
    if (node.anchor !== undefined) anchors.set(node.anchor, made)
    return made
  }

  function readNew(node: Exclude<ParsedNode, { source: string; type: 'alias' }>): Node {
    const here = at(node)
    if (isSeq(node)) {
      const items = node.items.map((item) => {
        if (isScalar(item)) warnOfComment(undefined, item as ParsedNode & Scalar)
        return read(item as ParsedNode | null, here)
      })
      return limitSize({ type: 'list', items, at: here }, items)
    }
    if (isMap(node)) return readMap(node as YAMLMap<ParsedNode, ParsedNode | null>, here)
    const value: unknown = isScalar(node) ? node.value : null
    if (typeof value === 'number' || typeof value === 'boolean') {
      const source = isScalar(node) && typeof node.source === 'string' ? node.source : String(value)
      return typeof value === 'number' ? numberScalar(value, here, source) : scalar(value, here, source)
    }
    return scalar(value === null || value === undefined ? null : String(value), here)
  }

  function readMap({ items }: YAMLMap<ParsedNode, ParsedNode | null>, here: Position): Node {
    const fields = new Map<string, Field>()
    const merged: MapNode[] = []
    for (const { key, value } of items) {
      const keyAt = key === null ? here : at(key)
      const name = isScalar(key) && key.value !== null ? nameOf(key) : undefined
      if (name !== undefined && isScalar(value)) warnOfComment(name, value)
      const made = read(value, keyAt)
      if (name === undefined) report(keyAt, 'invalid field name')
      else if (name === '<<') merged.push(...sourcesOf(made, keyAt))
      else if (fields.has(name)) report(keyAt, `the field "${name}" occurs twice`)
      else fields.set(name, { at: keyAt, value: made })
    }
    // A field of the map overrides a merged one. Earlier merge sources override later ones.
    for (const source of merged)
      for (const [name, field] of source.fields) if (!fields.has(name)) fields.set(name, field)
    const children = [...fields.values()].map(({ value }) => value)
    return limitSize({ type: 'fields', fields, at: here }, children)
  }

  /** Warns of a text that may end too early: without quotes, " #" starts a comment. */
  function warnOfComment(name: string | undefined, { type, comment, range }: ParsedNode & Scalar): void {
    if (type !== 'PLAIN' || comment == null) return
    // Other texts have comments on purpose, unless the comment is a colour.
    if (!/(^|_)prompt$/i.test(name ?? '') && !/^[\da-f]{3,8}\b/i.test(comment)) return
    const [first = ''] = comment.split('\n', 1)
    warn(
      positionAt(range[0]),
      `${name ?? 'the text'} ends before "#${shortened(first, 40)}", which YAML reads as a comment: ` +
        'to send the whole text, put it in quotes',
    )
  }

  function sourcesOf(node: Node, keyAt: Position): readonly MapNode[] {
    const sources = node.type === 'list' ? node.items : [node]
    if (!sources.every((each): each is MapNode => each.type === 'fields')) {
      report(keyAt, '<< needs a map, or a list of maps')
      return []
    }
    return sources
  }

  return (node: ParsedNode): Node => read(node, START)
}

const nameOf = ({ value, source }: { readonly value: unknown; readonly source?: string }): string =>
  typeof value === 'string' ? value : (source ?? String(value))
