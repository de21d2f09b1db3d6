/** Reads the documents of a file, YAML or JSON. Problems have the path of their value, and those of the text a line. */
import { isScalar, type Node, visit } from 'yaml'
import { type RushesError, usageError } from '../../errors.js'
import { parseYamlDocuments, type YamlDocument } from '../../host/yaml.js'
import { integerOf } from '../../protocol/json.js'
import type { DocumentPath, ReportProblem } from '../../protocol/model-document.js'
import { printable, shortened } from '../../protocol/text.js'

export interface SourceProblem {
  readonly file: string
  readonly message: string
}

export interface SourceDocument {
  readonly value: unknown
  /** Path of the file, as it is shown. */
  readonly file: string
  /** Reports a problem at a path of the document. */
  readonly report: ReportProblem
}

/** Far more than any document needs. A recursive parser overflows the stack only at a far greater depth. */
const MAX_DEPTH = 60

const MAX_SHOWN_PROBLEMS = 200

/** `has`: `The models in a.yaml have`. A single problem is one line, unless `end` is given. */
export function problemsError(has: string, problems: readonly SourceProblem[], end = ''): RushesError {
  const lines = problems.slice(0, MAX_SHOWN_PROBLEMS).map(problemText)
  const more = problems.length - lines.length
  const [only = ''] = lines
  if (problems.length === 1 && end === '') return usageError(only)
  return usageError(
    `${has} ${problems.length === 1 ? '1 problem' : `${problems.length} problems`}${end}.`,
    [...lines, ...(more > 0 ? [`and ${more} more`] : [])].join('\n'),
  )
}

const problemText = ({ file, message }: SourceProblem): string => `${printable(file)}: ${message}`

/**
 * Returns the documents of a file: one, a list of them, or several that are separated by `---`. `problem` gets the errors of
 * the text, whose document is left out.
 */
export function readDocuments(
  text: string,
  file: string,
  problem: (problem: SourceProblem) => void,
): readonly SourceDocument[] {
  const report = (message: string) => problem({ file, message })
  const reportAt = (offset: number, message: string) =>
    report(`line ${text.slice(0, offset).split('\n').length}: ${message}`)
  // Tabs can begin a line in JSON, and not in YAML.
  const isJson = /^\s*[[{]/.test(text)
  const parsed = parseYamlDocuments(isJson ? text.replaceAll('\t', ' ') : text, MAX_DEPTH, { merge: true })
  if (parsed === undefined) {
    report(`the file is nested more than ${MAX_DEPTH} levels deep`)
    return []
  }
  // The first error has led to the others, in all documents of the text.
  const broken = parsed.find(({ errors }) => errors.length > 0)
  if (broken !== undefined) {
    const [{ pos, message } = { pos: [0], message: '' }] = broken.errors
    reportAt(pos[0] ?? 0, uncapitalized(message))
    return []
  }
  const written = parsed.filter((document) => !isEmpty(document))
  if (written.length === 0) report('the file has no document')
  const values = written.flatMap((document) => plainValue(document, reportAt) ?? [])
  return values.map((value, index) => ({
    ...{ value, file },
    report: (path, message) =>
      report(`${values.length > 1 ? `document ${index + 1}: ` : ''}${labelOf(path, message)}${message}`),
  }))
}

const isEmpty = ({ contents }: YamlDocument): boolean =>
  contents === null || (isScalar(contents) && contents.value === null)

const uncapitalized = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)

/** Returns the value without positions, or undefined after the report of a problem. */
function plainValue(document: YamlDocument, reportAt: (offset: number, message: string) => void): unknown {
  let isValid = true
  const report = (offset: number, message: string) => {
    isValid = false
    reportAt(offset, message)
  }
  for (const { pos, message } of document.warnings) report(pos[0], uncapitalized(message))
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === 'number' && !Number.isSafeInteger(node.value))
        node.value = integerOf(node.source ?? '') ?? node.value
    },
    Map(_, { items }) {
      const names = new Set<string>()
      for (const { key } of items) {
        if (!isScalar(key)) {
          report((key as Node).range?.[0] ?? 0, 'a key must be text')
          continue
        }
        const name = String(key.value)
        if (names.has(name) && name !== 'Symbol(<<)')
          report(key.range?.[0] ?? 0, `the key "${shortened(printable(name), 80)}" occurs twice`)
        names.add(name)
      }
    },
  })
  if (!isValid) return undefined
  try {
    return document.toJS() as unknown
  } catch (error) {
    // An alias without an anchor, or too many aliases.
    report(document.range[0], (error as Error).message)
    return undefined
  }
}

/**
 * `input.steps: minimum ` for the path of a minimum. A message that begins with a quoted name names the last key itself.
 */
function labelOf(path: DocumentPath, message: string): string {
  const names = path.map((step) => (typeof step === 'number' ? `[${step}]` : shortened(printable(step), 80)))
  const last = names.pop()
  if (last === undefined) return 'the document '
  const parent = names.filter((name) => name !== 'properties').join('.')
  return `${parent}${parent === '' ? '' : ': '}${message.startsWith('"') ? '' : `${last} `}`
}
