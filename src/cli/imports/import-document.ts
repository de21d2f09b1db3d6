/** The document of an imported model: written as YAML, and read again. */
import { isScalar, isSeq, stringify, visit, Document as YamlDocument } from 'yaml'
import { RushesError } from '../../errors.js'
import type { Kind } from '../../protocol/models.js'
import { readDocuments, type SourceProblem } from '../../service/models/read-documents.js'
import { readOwnDocument } from '../../service/models/read-models.js'
import { mapInput } from './map-input.js'
import type { ModelAddress, Published } from './published.js'

type Json = Readonly<Record<string, unknown>>

export interface ImportedDocument {
  readonly value: Json
  readonly warnings: readonly string[]
}

export interface DocumentParts {
  readonly address: ModelAddress
  readonly published: Published
  readonly kind: Kind
}

export function createDocument({ address, published, kind }: DocumentParts): ImportedDocument {
  const { provider, model } = address
  const { version = address.version, isOfficial, description, cost } = published
  const { input, references, fixed, warnings } = mapInput(published.input, published.root)
  const isPinned =
    provider === 'replicate' && version !== undefined && (address.version !== undefined || !isOfficial)
  return {
    warnings,
    value: {
      ...{ name: model, kind },
      ...(description !== undefined && { description: description.slice(0, 300) }),
      engine: {
        ...{ type: provider, model: isPinned ? `${model}:${version}` : model },
        ...(references !== undefined && { references }),
        ...(Object.keys(fixed).length > 0 && { fixed }),
      },
      input,
      ...(cost && { cost }),
    },
  }
}

/** Returns the text of a file. `comment`: lines at its beginning. */
export function documentText(value: Json, comment: readonly string[]): string {
  const document = new YamlDocument(value, { aliasDuplicateObjects: false })
  document.commentBefore = comment.map((line) => ` ${line}`).join('\n')
  visit(document, {
    Seq(_, node) {
      if (isSeq(node) && node.items.every((item) => isScalar(item))) node.flow = true
    },
  })
  return stringify(document, { lineWidth: 120 })
}

/** Reads a text as `serve --models` does. Throws `bad_response` with the problems: the provider published the schema. */
export function checkText(text: string, name: string): void {
  const problems: SourceProblem[] = []
  const [source] = readDocuments(text, name, (problem) => problems.push(problem))
  const document = source && readOwnDocument(source)
  if (document !== undefined && problems.length === 0) return
  const [first] = problems
  throw new RushesError(
    'bad_response',
    `The schema of ${name} cannot be used: ${first?.message ?? 'it is empty'}.`,
  )
}
