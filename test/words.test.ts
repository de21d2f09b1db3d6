/**
 * The words of the program: every text in the source files that a user can read, and the help of every command, against
 * a table of phrases that read badly. Comments and names are not looked at.
 */
import { parseAst } from 'rolldown/parseAst'
import { describe, expect, test } from 'vitest'
import { fullName } from '../src/cli/help/find-command.js'
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

/** String literals, templates, and the text of elements. */
function textsIn(source: string, path: string): readonly Text[] {
  const found: Text[] = []
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    const text = textOf(value as Node)
    if (text !== undefined) {
      const line = () => source.slice(0, (value as Node).start).split('\n').length
      found.push({ at: () => `${path}:${line()}`, text })
    }
    for (const part of Object.values(value)) visit(part)
  }
  visit(parseAst(source, { lang: path.endsWith('x') ? 'tsx' : 'ts' }, path))
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
  test('is in plain words', () => {
    expect(files.length).toBeGreaterThan(200)
    expect(files.flatMap((path) => violations(textsIn(read(path), path)))).toEqual([])
  })

  test('would be found', () => {
    const source = [
      'const goesOn = 1 // b is no c',
      `f(\`\${d} is no duration\`, 'see --help', 'see rushes run --help')`,
    ].join('\n')
    expect(violations(textsIn(source, 'x.ts'))).toEqual([
      'x.ts:2: "is no " in "… is no duration" -> say "is not a valid …" or "has no …"',
      'x.ts:2: "--help" in "see --help" -> the whole command: `rushes status --help`',
    ])
  })
})

describe('the help of every command', () => {
  test('is in plain words', async () => {
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

  test('has descriptions that begin with a capital', async () => {
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
