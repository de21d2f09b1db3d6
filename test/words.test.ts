/**
 * The words of the program: every text in the source files that a user can read, the help of every command, every comment and every
 * name, against tables of phrases that read badly.
 */
import { parseAst } from 'rolldown/parseAst'
import { describe, expect, test } from 'vitest'
import { fullName } from '../src/cli/help/format-help.js'
import { everyCommand, pathsBelow, read } from './support/project.js'

/** A phrase, and what to write instead. */
const RULES: readonly (readonly [RegExp, string])[] = [
  [/\b(is|are|was|were) no (?!longer|more\b)/i, 'say "is not a valid …" or "has no …"'],
  [/\bthere (is|are|was) no\b.*\bthat\b/i, 'say what does not exist: "No account has this name"'],
  [/\bmend(s|ed|ing)?\b/i, 'fix'],
  [/\bfor ever\b/i, 'no limit'],
  [/\b(so|that) many\b/i, 'number of …, newest N'],
  [/\bgoes on\b|\bgoing on\b/i, 'is still running, continues'],
  [/\bstale\b/i, 'out of date'],
  [/\bmakes no sense\b/i, 'an invalid response'],
  [/\bnothing else\b.*\bthan\b|\bno other than\b/i, 'only'],
  [/\bin the way\b/i, 'already exists, or cannot be used because'],
  [/\bset aside\b/i, 'quarantined'],
  [/\b(is|are) sound\b|\bis good\b/i, 'ok, valid, active'],
  [/\bof its own making\b|\bof one's own\b/i, 'another, your own'],
  [/\ball the same\b/i, 'anyway, or leave it out'],
  [/\bthe nearest is\b|\(nearest:/i, 'Did you mean …?'],
  [/\bconceal/i, 'redact'],
  [/\bstands?\b|\bstood\b/i, 'is'],
  [/\b(is|are|was|were) to be\b/i, 'must be, will be'],
  [/\bwhat (is|are|was|were)\b/i, 'name the thing'],
  [/\bwhoever\b|\bwhatever\b|\bnobody\b|\bsomebody\b/i, 'say who or what'],
  [/\bwhat became of\b/i, 'the outcome, the result'],
  [/\b(anew|moreover|thereof|wherein|whereof|henceforth)\b/i, 'again, or leave it out'],
  [/\btrouble\b/i, 'failed, problem'],
  [/\bE(NOENT|ISDIR|ACCES|NOTDIR|EXIST|NOSPC|ROFS|PERM):/, 'translate the system error: "x: no such file"'],
  [/--help\b/, 'the whole command: `rushes status --help`'],
]

/** Texts that no user reads: the vocabulary of the preview renderer, and SQL that never changes. */
const NOT_MESSAGES = /^src\/preview\/|migrations\.ts$/

interface Text {
  /** Where it is; only asked of the few that are wrong. */
  at(): string
  readonly text: string
}

interface Node {
  readonly type?: string
  readonly start: number
  readonly name?: unknown
  readonly value?: unknown
  readonly quasis?: readonly { readonly value: { readonly cooked: string | null } }[]
}

/** A placeholder of a template stands as `…`. */
function textOf(node: Node): string | undefined {
  if (node.type === 'JSXText') return typeof node.value === 'string' ? node.value.trim() : undefined
  if (node.type === 'Literal') return typeof node.value === 'string' ? node.value : undefined
  if (node.type !== 'TemplateLiteral') return undefined
  return node.quasis?.map(({ value }) => value.cooked ?? '').join('…')
}

interface Parsed {
  /** String literals, templates, and the text of elements. */
  readonly texts: readonly Text[]
  readonly names: ReadonlySet<string>
}

function parsed(source: string, path: string): Parsed {
  const texts: Text[] = []
  const names = new Set<string>()
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    const node = value as Node
    if (node.type === 'Identifier' && typeof node.name === 'string') names.add(node.name)
    const text = textOf(node)
    if (text !== undefined) {
      const line = () => source.slice(0, node.start).split('\n').length
      texts.push({ at: () => `${path}:${line()}`, text })
    }
    for (const part of Object.values(value)) visit(part)
  }
  visit(parseAst(source, { lang: path.endsWith('x') ? 'tsx' : 'ts' }, path))
  return { texts, names }
}

const known = new Map<string, Parsed>()

/** Parses each file once for all tests. */
function parsedFile(path: string): Parsed {
  const found = known.get(path) ?? parsed(read(path), path)
  known.set(path, found)
  return found
}

const files = pathsBelow('src', /\.tsx?$/).filter(
  (path) => !path.endsWith('.d.ts') && !NOT_MESSAGES.test(path),
)

/** Only prose: a word alone is a name, a key or a value. */
const isProse = ({ text }: Text): boolean => /\S\s+\S/.test(text)

/** A `--help` that is allowed: with its whole command, or as the flag itself in a list of options. */
const WHOLE_HELP = /(rushes|…)[^`\n]* --help|-h, --help/g

const violations = (texts: readonly Text[]): readonly string[] =>
  texts.filter(isProse).flatMap(({ at, text }) =>
    RULES.flatMap(([phrase, instead]) => {
      const [said] = phrase.exec(text.replaceAll(WHOLE_HELP, '')) ?? []
      return said === undefined
        ? []
        : [`${at()}: "${said}" in ${JSON.stringify(text.slice(0, 120))} -> ${instead}`]
    }),
  )

describe('every message', () => {
  test('uses plain words', () => {
    expect(files.length).toBeGreaterThan(200)
    expect(files.flatMap((path) => violations(parsedFile(path).texts))).toEqual([])
  })

  test('fails the check with an unclear word', () => {
    const source = [
      'const goesOn = 1 // b is no c',
      `f(\`\${d} is no duration\`, 'see --help', 'see rushes run --help')`,
    ].join('\n')
    expect(violations(parsed(source, 'x.ts').texts)).toEqual([
      'x.ts:2: "is no " in "… is no duration" -> say "is not a valid …" or "has no …"',
      'x.ts:2: "--help" in "see --help" -> the whole command: `rushes status --help`',
    ])
  })
})

describe('the help of every command', () => {
  test('uses plain words', async () => {
    const commands = await everyCommand()
    expect(commands.length).toBeGreaterThan(30)
    const lines = commands.flatMap((command) =>
      command
        .helpInformation()
        .split('\n')
        .map((text) => ({ at: () => `${fullName(command)} --help`, text })),
    )
    expect(violations(lines)).toEqual([])
  })

  test('begins each description with a capital', async () => {
    const wrong = (await everyCommand()).flatMap((command) => {
      const help = command.createHelp()
      const items = [
        ...help.visibleArguments(command).map((each) => [each.name(), each.description] as const),
        ...help.visibleOptions(command).map((each) => [each.flags, each.description] as const),
        ...(command.parent?.parent ? [['', command.description()] as const] : []),
        ...help.visibleCommands(command).map((each) => [each.name(), each.description()] as const),
      ]
      return items
        .filter(([, about]) => !/^[A-Z]/.test(about))
        .map(([name, about]) => `${fullName(command)} ${name}: ${about}`)
    })
    expect([...new Set(wrong)]).toEqual([])
  })
})

/** Of comments. Messages have their own, stricter table above. */
const COMMENT_RULES: readonly (readonly [RegExp, string])[] = [
  [/\b(whoever|whatever|whichever|nobody|somebody|anybody)\b/i, 'name who or what'],
  [/\btrouble\b/i, 'error, failure'],
  [/\black(s|ing|ed)?\b/i, 'is missing, without'],
  [/\bon (its|their|the) way\b/i, 'in progress, in flight'],
  [/\bof (its|their|his|your|one's) own\b/i, 'own, separate'],
  [/\b(is|are|was|were) to be\b/i, 'must, or an imperative'],
  [/\bany (longer|more)\b(?! than)/i, 'no longer'],
  [/\b(anew|afresh|moreover|thereof|wherein|whereof|henceforth)\b/i, 'again'],
  [/\b(stands|stood)\b/i, 'is'],
  [/\bgo(es)? on\b|\bgoing on\b/i, 'continues'],
  [/\b(so|that) many\b/i, 'number of'],
  [/\bfor ever\b/i, 'no limit'],
  [/\bwhat (is|are|was|were|has|have)\b/i, 'name the thing'],
  [/\b(is|are|was|were) (told|asked|said|given up)\b/i, 'an active verb'],
  [/\bmend(s|ed|ing)?\b/i, 'fix'],
  [/\bmakes no sense\b/i, 'invalid'],
  [/\bin the place of\b/i, 'instead of'],
  [/\b(by now|in vain|became of|all the same)\b/i, 'already, without effect, outcome, anyway'],
]

/** Parts of names: verbs of saying where a function prints, returns or notifies, and words that only this code would use. */
const NAME_WORDS =
  /^(say|says|said|tell|tells|told|whoever|nobody|somebody|trouble|troubled|lacking|journey|mend|bury|wish|wished|anew|whence|undone)$/i

/** Part of the library's public interface. */
const PUBLIC_NAMES: readonly string[] = ['onTrouble']

const COMMENT = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/[^\n]*/gm

const wordsOf = (name: string): readonly string[] =>
  name.replace(/([a-z0-9])([A-Z])/g, '$1 $2').split(/[\s_$]+/)

/** Sentences run over lines. */
const commentsIn = (source: string, path: string): readonly Text[] =>
  [...source.matchAll(COMMENT)].map(({ 0: text, index }) => ({
    at: () => `${path}:${source.slice(0, index).split('\n').length}`,
    text: text.replace(/\s*\n\s*(\*|\/\/)\s?/g, ' '),
  }))

const oddComments = (source: string, path: string): readonly string[] =>
  commentsIn(source, path).flatMap(({ at, text }) =>
    COMMENT_RULES.flatMap(([phrase, instead]) => {
      const [found] = phrase.exec(text) ?? []
      return found === undefined
        ? []
        : [`${at()}: "${found}" in ${JSON.stringify(text.slice(0, 120))} -> ${instead}`]
    }),
  )

const oddNames = ({ names }: Parsed, path: string): readonly string[] =>
  [...names]
    .filter((name) => !PUBLIC_NAMES.includes(name) && wordsOf(name).some((word) => NAME_WORDS.test(word)))
    .map((name) => `${path}: ${name}`)

describe('comments and names', () => {
  const code = [...pathsBelow('src', /\.tsx?$/), ...pathsBelow('test/support', /\.ts$/)]

  test('use plain words', () => {
    expect(code.length).toBeGreaterThan(300)
    expect(code.flatMap((path) => oddComments(read(path), path))).toEqual([])
    expect(code.flatMap((path) => oddNames(parsedFile(path), path))).toEqual([])
  })

  test('stay within 130 columns', () => {
    const wide = (path: string) =>
      read(path)
        .split('\n')
        .flatMap((line, at) => (line.length > 130 ? [`${path}:${at + 1}`] : []))
    expect(pathsBelow('src', /\.tsx?$/).flatMap(wide)).toEqual([])
  })

  test('fails the check with an unclear word', () => {
    const source = [
      '/** What is said of a run',
      ' * that nobody reads. */',
      "const sayHello = 'trouble' // see https://x.invalid/whoever",
      'const essay = 1',
    ].join('\n')
    expect(oddComments(source, 'x.ts')).toEqual([
      'x.ts:1: "nobody" in "/** What is said of a run that nobody reads. */" -> name who or what',
      'x.ts:1: "What is" in "/** What is said of a run that nobody reads. */" -> name the thing',
      'x.ts:1: "is said" in "/** What is said of a run that nobody reads. */" -> an active verb',
      'x.ts:3: "whoever" in "// see https://x.invalid/whoever" -> name who or what',
    ])
    expect(oddNames(parsed(source, 'x.ts'), 'x.ts')).toEqual(['x.ts: sayHello'])
  })
})
