/** Parses YAML 1.2 into documents with positions. */
import { Composer, type CST, type Document, type ParsedNode, Parser } from 'yaml'

export type YamlDocument = Document.Parsed<ParsedNode>

/**
 * Returns the documents with their errors; undefined if the text is nested more than `maxDepth` levels deep. Does not
 * check for duplicate keys, since the check of the library takes quadratic time.
 */
export function parseYamlDocuments(
  text: string,
  maxDepth: number,
  options: { readonly merge?: boolean } = {},
): readonly YamlDocument[] | undefined {
  const tokens = [...new Parser().parse(text)]
  // The composer is recursive: deep nesting would crash the process without an error.
  if (tokens.some((token) => depthOf(token) > 4 * maxDepth)) return undefined
  return [...new Composer({ uniqueKeys: false, ...options }).compose(tokens)] as readonly YamlDocument[]
}

interface TokenChildren {
  readonly items?: unknown
  readonly key?: unknown
  readonly value?: unknown
}

/** Returns the nesting of a token, about two levels per level of the text. Not recursive. */
function depthOf(token: CST.Token): number {
  let deepest = 0
  const open: object[] = [token]
  const depths: number[] = [0]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const depth = depths.pop() ?? 0
    if (depth > deepest) deepest = depth
    const visit = (child: unknown) => {
      if (typeof child !== 'object' || child === null) return
      open.push(child)
      depths.push(depth + 1)
    }
    const { key, value, items } = next as TokenChildren
    visit(key)
    visit(value)
    if (Array.isArray(items)) for (const item of items) visit(item)
  }
  return deepest
}
