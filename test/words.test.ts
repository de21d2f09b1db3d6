/** The words of the program: every text in its source files that a user can read, against phrases that read badly. */
import { parseAst } from 'rolldown/parseAst'
import { expect, test } from 'vitest'
import { pathsBelow, read } from './support/project.js'

const UNCLEAR: readonly RegExp[] = [
  // Say "is not a valid …", "has no …", or name the thing.
  /\b(is|are|was|were) no (?!longer|more\b)/i,
  /\bthere (is|are|was) no\b.*\bthat\b/i,
  /\b(is|are|was|were) to be\b|\bwhat (is|are|was|were|became of)\b/i,
  /\b(whoever|whatever|nobody|somebody|anew|moreover|thereof|wherein|whereof|henceforth)\b/i,
  // Say fix, no limit, number of, continues, out of date, quarantined, redact, failed.
  /\bmend(s|ed|ing)?\b|\bfor ever\b|\b(so|that) many\b|\bgo(es|ing) on\b|\bstale\b|\bset aside\b|\bconceal|\btrouble\b/i,
  /\bmakes no sense\b|\bin the way\b|\b(is|are) sound\b|\bis good\b|\bof one's own\b|\ball the same\b|\bst(ands?|ood)\b/i,
  // Translate the error of the system: "x: no such file".
  /\bE(NOENT|ISDIR|ACCES|NOTDIR|EXIST|NOSPC|ROFS|PERM):/,
  // Name the whole command: `rushes status --help`.
  /(?<!(rushes|…)[^`\n]* |-h, )--help\b/,
]

interface Node {
  readonly type?: string
  readonly value?: unknown
  readonly quasis?: readonly { readonly value: { readonly cooked: string | null } }[]
}

/** Texts of several words. A placeholder of a template is `…`. */
function textsIn(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return []
  const { type, value: text, quasis } = value as Node
  const own =
    type === 'TemplateLiteral'
      ? (quasis ?? []).map((each) => each.value.cooked ?? '').join('…')
      : type === 'Literal' || type === 'JSXText'
        ? text
        : undefined
  const inner = Object.values(value).flatMap(textsIn)
  return typeof own === 'string' && /\S\s+\S/.test(own) ? [own, ...inner] : inner
}

test('every message uses plain words', () => {
  // No user reads the vocabulary of the preview renderer, and SQL never changes.
  const files = pathsBelow('src', /(?<!\.d)\.tsx?$/).filter(
    (path) => !/^src\/preview\/|migrations\.ts$/.test(path),
  )
  const textsOf = (path: string) =>
    textsIn(parseAst(read(path), { lang: path.endsWith('x') ? 'tsx' : 'ts' }, path))
  const unclear = files.flatMap((path) =>
    textsOf(path).flatMap((text) => {
      const [phrase] = UNCLEAR.flatMap((each) => each.exec(text)?.[0] ?? [])
      return phrase === undefined ? [] : [`${path}: "${phrase}" in ${JSON.stringify(text)}`]
    }),
  )
  expect(files.length).toBeGreaterThan(200)
  expect(unclear).toEqual([])
})
