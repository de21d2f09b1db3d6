/** Reads the documents of a file, YAML or JSON. Problems have the path of their value, and those of the text a line. */
import { type RushesError, usageError } from '../../errors.js'
import { InvalidText, readYaml } from '../../host/yaml.js'
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
 * Returns the documents of a file: one, a list of them, or several that are separated by `---`. `problem` gets the error of a
 * text that cannot be read.
 */
export function readDocuments(
  text: string,
  file: string,
  problem: (problem: SourceProblem) => void,
): readonly SourceDocument[] {
  const report = (message: string) => problem({ file, message })
  const values = valuesOf(text, report)
  return values.map((value, index) => ({
    ...{ value, file },
    report: (path, message) =>
      report(`${values.length > 1 ? `document ${index + 1}: ` : ''}${labelOf(path, message)}${message}`),
  }))
}

function valuesOf(text: string, report: (message: string) => void): readonly unknown[] {
  try {
    const values = readYaml(text).flatMap(({ value }) => value ?? [])
    if (values.length === 0) report('the file has no document')
    return values
  } catch (error) {
    if (!(error instanceof InvalidText)) throw error
    report(`line ${error.line}: ${error.message}`)
    return []
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
